/*
 * library_log.h - the library's way to its host's log (pmixfab_set_log). Silent until a callback is
 * installed.
 */
#ifndef FAB_TOPO_BASE_LIBRARY_LOG_H
#define FAB_TOPO_BASE_LIBRARY_LOG_H

#include "pmixfab.h"

/* One line; a newline and other control characters in it become '?'. Longer than 1,000 bytes: cut. */
void fab_log(enum pmixfab_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
