/*
 * record.h - recorded machines: the results of a host's local probes, as JSON.
 *
 *   {"host": "node1", "items": [
 *     {"source": "verbs", "name": "mlx5_0", "port": "1", "gid": ["fe80::1", "fe80::2"]},
 *     {"source": "ucx", "name": "mlx5_0", "port": "1", "estimates": {"bandwidth": "98000"}}
 *   ]}
 *
 * The keys of an item are those of fab_fact_name(). The values are strings, or arrays of strings for kinds
 * with many values. One file has the results of all local probes, and each probe reads the items of its
 * source. probe_record() (probe.h) writes the file.
 */
#ifndef FAB_PROBES_CORE_RECORD_H
#define FAB_PROBES_CORE_RECORD_H

#include <stdio.h>

#include "probes/core/probe.h"

#define RECORD_MAX_SIZE (16u << 20) /* bytes of a file */

/*
 * Add the items of one source to the report (initialised, not finished); a report without host gets the
 * record's. PMIXFAB_ERR_UNSUPPORTED: the record has no items of this source. PMIXFAB_ERR_IO, _NOTFOUND,
 * _SYNTAX, _RANGE, _NOMEM; err names the file and the position. The whole record is checked, the items of
 * other sources included.
 */
int record_scan(const char *path, enum fab_source source, struct fab_report *report, struct fab_err *err);

/* As above, for a record in memory; `name` is used in errors. */
int record_parse(const char *text, size_t size, const char *name, enum fab_source source,
                 struct fab_report *report, struct fab_err *err);

/*
 * Read all bytes of a file of any kind, and close it. Return 0 on success, else a number of errno. EFBIG: the
 * file has more than `limit` bytes. Free *bytes with free().
 */
int record_read(FILE *file, size_t limit, char **bytes, size_t *size);

#endif
