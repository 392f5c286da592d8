/*
 * metrics.h - counters and gauges in Prometheus' text format. `fabricctl metrics` shows them. The node
 * exporter's textfile collector reads them from a file. They can also be read over HTTP.
 *
 * Names follow Prometheus' conventions: base units, and _total for counters. All functions run on the loop.
 */
#ifndef FABRICD_BASE_METRICS_H
#define FABRICD_BASE_METRICS_H

#include <event2/event.h>
#include <stdio.h>

#include "fabricd/base/counts.h"

/* Writes all metrics of a role. */
typedef void (*metrics_fn)(FILE *out, const void *owner);

/* Return the metrics as text; NULL: no memory. Free it with free(). */
char *metrics_text(metrics_fn tell, const void *owner);

/* ---- families and samples ---- */

/* Write HELP and TYPE of the samples that follow. */
void metrics_family(FILE *out, const char *name, const char *type, const char *help);
/* Write one sample. label NULL: no label; otherwise `value` may be any text. */
void metrics_sample(FILE *out, const char *name, const char *label, const char *value, double number);
/* Write one sample with two labels. */
void metrics_sample_of(FILE *out, const char *name, const char *const labels[2], const char *const values[2],
                       double number);
/* Write a family of one sample. */
void metrics_one(FILE *out, const char *name, const char *type, const char *help, double number);
/* Write a counter as a family. */
void metrics_counted(FILE *out, const struct counts *counts, const char *name, const char *help,
                     enum count what);
/* A family of `n` counters, one for each result of an operation. */
struct metrics_result {
    const char *result;
    enum count what;
};
void metrics_results(FILE *out, const struct counts *counts, const char *name, const char *help,
                     const struct metrics_result *results, unsigned n);
/* Note the start time. Call once, when the program starts. */
void metrics_started(void);
/* Write the metrics of both roles: version, time since the start, counters. */
void metrics_of_both(FILE *out, const char *role, const struct counts *counts);

/* ---- the file and the HTTP server ---- */

struct metrics_file;

/*
 * Create the metrics file and the HTTP server. path, listen: [metrics] file and listen of the configuration,
 * or NULL for neither. metrics_write() writes the file, and so does a timer 15 s after a change of `counts`;
 * without changes nothing is written. If the address is not available, metrics_write() tries again.
 * PMIXFAB_ERR_NOMEM.
 */
int metrics_file_new(struct event_base *base, const char *path, const char *listen, struct counts *counts,
                     metrics_fn tell, const void *owner, struct metrics_file **out);
/* NULL allowed. The file stays; its modification time shows its age. */
void metrics_file_free(struct metrics_file *file);
void metrics_write(struct metrics_file *file); /* NULL allowed */
/*
 * Return the current error of the file (which 0) or of the address (which 1); NULL: none. *where becomes
 * the path or address.
 */
const char *metrics_fault(const struct metrics_file *file, unsigned which, const char **where);

#endif
