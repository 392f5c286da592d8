/*
 * library_log.h - log through the host's callback (pmixfab_set_log); without a callback messages are dropped.
 */
#ifndef FAB_TOPO_BASE_LIBRARY_LOG_H
#define FAB_TOPO_BASE_LIBRARY_LOG_H

#include "pmixfab.h"

/* Log one line. Control characters become '?'; a line longer than 1,000 bytes is cut. */
void fab_log(enum pmixfab_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
