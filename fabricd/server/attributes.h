/* attributes.h - what this server says it supports: PMIx_Register_attributes, which pattrs shows. */
#ifndef FABRICD_SERVER_ATTRIBUTES_H
#define FABRICD_SERVER_ATTRIBUTES_H

/* To be called once, after PMIx_server_init(). What the library refuses is logged; it is information only. */
void attributes_register(void);

#endif
