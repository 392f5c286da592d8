/*
 * capture_file.h - recorded fabrics: ibnetdiscover's text, libibnetdisc's cache and OpenSM's list of a
 * subnet.
 *
 * The readers take memory and believe nothing of it. `file` is the name for messages. inv is initialised and
 * empty; on success it is finished, on error of no use.
 */
#ifndef FAB_PROBES_CAPTURE_CAPTURE_FILE_H
#define FAB_PROBES_CAPTURE_CAPTURE_FILE_H

#include <stdbool.h>

#include "probes/core/probe.h"

extern const struct probe probe_file, probe_opensm_lst;

#define LINE_LIMIT 4096u /* bytes in a line of text; ibnetdiscover's are below 300 */

/* ibnetdiscover's text, plain or grouped (-g), with -s, -f and -m or without; or its report of ports (-p).
 * Errors begin file:line:column. sink (may be NULL) gets remarks. */
int capture_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                  struct fab_inventory *inv, struct fab_err *err);

/* What OpenSM writes as opensm-subnet.lst. As above. */
int subnet_parse(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                 struct fab_inventory *inv, struct fab_err *err);

/* Do the bytes begin like a libibnetdisc cache? */
bool cache_is(const void *bytes, size_t len);

/* A cache. Errors begin file:byte. sink (may be NULL) gets remarks on what was left out. */
int cache_parse(const char *file, const void *bytes, size_t len, const struct probe_sink *sink,
                struct fab_inventory *inv, struct fab_err *err);

#endif
