/*
 * forward.h - which variables of the starter's environment go to a job's processes.
 *
 * Patterns are names, divided by ';' or ',': a '?' stands for any character, a '*' at the end for any rest.
 */
#ifndef FAB_PMIX_LAUNCH_FORWARD_H
#define FAB_PMIX_LAUNCH_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The job is told its security key in this variable, as hexadecimal digits. */
#define FAB_FORWARD_SECRET "FABRICD_SECURITY_KEY"

/* Does a pattern fit this name, which is `length` characters long? NULL fits none. */
bool fab_forward_fits(const char *patterns, const char *name, size_t length);

/* Not a pattern: a '*' before its end, or a '='. */
bool fab_forward_wrong(const char *patterns);

/* What no pattern takes along: the library says it to each process itself, and so do we. */
bool fab_forward_reserved(const char *name, size_t length);

/*
 * Of env ("NAME=value" up to NULL) those that fit one of the n lists of patterns and not `except`, as
 * pointers into it, each once; free() the array. NULL: no memory.
 */
const char **fab_forward_harvest(char *const *env, const char *const *patterns, size_t n, const char *except,
                                 uint32_t *found);

#endif
