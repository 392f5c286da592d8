/* note.c - a probe's remarks. */
#include <stdarg.h>
#include <stdio.h>

#include "probes/core/probe.h"

void probe_note(const struct probe_sink *sink, enum pmixfab_level level, const char *fmt, ...)
{
    char line[256];
    va_list ap;
    if (sink == NULL || sink->note == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    sink->note(level, line, sink->cbdata);
}
