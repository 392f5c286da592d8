/* schema.h - the files of schema/, in order: entry i brings a database from version i to i+1. NULL ends it.
 */
#ifndef FABRICD_STORE_SCHEMA_H
#define FABRICD_STORE_SCHEMA_H

extern const char *const schema_sql[];

#endif
