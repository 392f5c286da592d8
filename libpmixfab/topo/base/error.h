/*
 * error.h - what a failure says to a person. The room base holds what every other room may lean on and what
 * knows nothing of fabrics: errors, text, numbers in order, arrays, frames of bytes.
 */
#ifndef FAB_TOPO_BASE_ERROR_H
#define FAB_TOPO_BASE_ERROR_H

#include <stdarg.h>

#include "pmixfab.h"

/* Where a failure is explained to a person: what, where, what to do; one line, no newline. */
struct fab_err {
    char text[480];
};

/* Write the message (err may be NULL) and return code. What can fail returns such a code, PMIXFAB_OK is 0: so
 * first() ?: second() does the second where the first has not failed. */
int fab_fail(struct fab_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int fab_vfail(struct fab_err *err, int code, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
