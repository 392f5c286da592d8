/*
 * pmix_memory.h - record for the next server the plane that each requestor was given
 * (pmix/answers/plane_memory.h). So clients of a relay do not notice that the server was replaced.
 */
#ifndef FABRICD_PMIX_PMIX_MEMORY_H
#define FABRICD_PMIX_PMIX_MEMORY_H

/* Read the record of the last server in this folder, and continue it. On failure, log a line. Before the
 * server starts. */
void pmix_memory_open(const char *folder);

#endif
