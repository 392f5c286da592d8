/*
 * error.h - error messages for people.
 *
 * The room base has no knowledge of fabrics and is used by all other rooms: errors, text, order of numbers,
 * arrays, frames of bytes.
 */
#ifndef FAB_TOPO_BASE_ERROR_H
#define FAB_TOPO_BASE_ERROR_H

#include <stdarg.h>

#include "pmixfab.h"

/* The message of a failure is one line without newline. It says what failed, on what, and what to do. */
struct fab_err {
    char text[480];
};

/*
 * Write the message (err may be NULL) and return `code`. A function that can fail returns such a code, and
 * PMIXFAB_OK is 0, so first() ?: second() calls second() only if first() succeeded.
 */
int fab_fail(struct fab_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int fab_vfail(struct fab_err *err, int code, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
