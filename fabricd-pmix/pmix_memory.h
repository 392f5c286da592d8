/*
 * pmix_memory.h - which plane each requestor was given (pmix/answers/plane_memory.h), for the server after
 * this one: clients of a relay do not notice that there is another one.
 */
#ifndef FABRICD_PMIX_PMIX_MEMORY_H
#define FABRICD_PMIX_PMIX_MEMORY_H

/* Read what the server before has left in this folder, and leave there what is noted from now on. Where that
 * cannot be done, a line in the log. Before the server starts. */
void pmix_memory_open(const char *folder);

#endif
