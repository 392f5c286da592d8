/*
 * record.h - recorded machines: what a host's local probes once saw, as JSON.
 *
 *   {"host": "node1", "items": [
 *     {"source": "verbs", "name": "mlx5_0", "port": "1", "gid": ["fe80::1", "fe80::2"]},
 *     {"source": "ucx", "name": "mlx5_0", "port": "1", "estimates": {"bandwidth": "98000"}}
 *   ]}
 *
 * The keys of an item are those of fab_fact_name(), the values strings, or arrays of strings where an item
 * may hold many. One file holds what all local probes saw; each takes the items of its source. Written by
 * probe_record() (probe.h).
 */
#ifndef FAB_PROBES_CORE_RECORD_H
#define FAB_PROBES_CORE_RECORD_H

#include <stdio.h>

#include "probes/core/probe.h"

#define RECORD_MAX_SIZE (16u << 20) /* bytes of a file */

/*
 * Add the items of one source to the report (initialised, not finished); a report that has no host yet gets
 * the record's. PMIXFAB_ERR_UNSUPPORTED: the record has no items of this source. PMIXFAB_ERR_IO, _NOTFOUND,
 * _SYNTAX, _RANGE, _NOMEM; err names the file and the place in it. The whole record is checked, the items of
 * other sources too.
 */
int record_scan(const char *path, enum fab_source source, struct fab_report *report, struct fab_err *err);

/* The same of a record in memory; `name` is what errors call it. */
int record_parse(const char *text, size_t size, const char *name, enum fab_source source,
                 struct fab_report *report, struct fab_err *err);

/* All bytes of a file of any kind, which is closed. A number of errno, 0: none; EFBIG: more than `limit`.
 * free(*bytes). */
int record_read(FILE *file, size_t limit, char **bytes, size_t *size);

#endif
