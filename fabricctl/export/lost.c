/*
 * lost.c - what a format cannot say.
 */
#include "fabricctl/export/output.h"

#include <stdarg.h>
#include <stdlib.h>

void ctl_export_lost(struct ctl_export *x, const char *fmt, ...)
{
    char *what = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&what, fmt, args) < 0)
        what = NULL;
    va_end(args);
    ctl_error("lost: %s", what != NULL ? what : "(out of memory)");
    free(what);
    x->n_lost++;
}
