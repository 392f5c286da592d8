/*
 * metrics.h - counters and gauges in Prometheus' text format: for `fabricctl metrics`, in a file for the node
 * exporter's textfile collector, and over HTTP.
 *
 * Names follow Prometheus' conventions: base units, _total for what only grows. On the loop.
 */
#ifndef FABRICD_BASE_METRICS_H
#define FABRICD_BASE_METRICS_H

#include <event2/event.h>
#include <stdio.h>

#include "fabricd/base/counts.h"

/* Tells all of a role's metrics. */
typedef void (*metrics_fn)(FILE *out, const void *owner);

/* As text; NULL: no memory. free() it. */
char *metrics_text(metrics_fn tell, const void *owner);

/* ---- in pieces ---- */

/* HELP and TYPE of what follows. */
void metrics_family(FILE *out, const char *name, const char *type, const char *help);
/* One sample. `label` NULL: without; else its value may be any text. */
void metrics_sample(FILE *out, const char *name, const char *label, const char *value, double number);
/* The same with two labels. */
void metrics_sample_of(FILE *out, const char *name, const char *const labels[2], const char *const values[2],
                       double number);
/* A family of one sample. */
void metrics_one(FILE *out, const char *name, const char *type, const char *help, double number);
/* A counter. */
void metrics_counted(FILE *out, const struct counts *counts, const char *name, const char *help,
                     enum count what);
/* A family of counters, by what came of something; `n` of them. */
struct metrics_result {
    const char *result;
    enum count what;
};
void metrics_results(FILE *out, const struct counts *counts, const char *name, const char *help,
                     const struct metrics_result *results, unsigned n);
/* Once, when the program starts. */
void metrics_started(void);
/* What both roles have: version, time since the start, counts. */
void metrics_of_both(FILE *out, const char *role, const struct counts *counts);

/* ---- where they are found ---- */

struct metrics_file;

/*
 * path, listen: [metrics] file and listen of the configuration, or NULL; without either nothing is done. The
 * file is written when metrics_write() is called, and 15 s after something was counted in `counts`; while
 * nothing happens, nothing is done. Where the address cannot be listened at, metrics_write() tries again.
 * PMIXFAB_ERR_NOMEM.
 */
int metrics_file_new(struct event_base *base, const char *path, const char *listen, struct counts *counts,
                     metrics_fn tell, const void *owner, struct metrics_file **out);
void metrics_file_free(struct metrics_file *file); /* NULL allowed; the file stays, its time tells its age */
void metrics_write(struct metrics_file *file);     /* NULL allowed */
/* What is wrong with the file (0) or the address (1) now; NULL: nothing. *where: its path or address. */
const char *metrics_fault(const struct metrics_file *file, unsigned which, const char **where);

#endif
