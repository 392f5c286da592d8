/*
 * metrics.h - counters and gauges in Prometheus' text format: for `fabricctl metrics`, and in a file for the
 * node exporter's textfile collector.
 *
 * Names follow Prometheus' conventions: base units, _total for what only grows. On the loop.
 */
#ifndef FABRICD_METRICS_H
#define FABRICD_METRICS_H

#include <event2/event.h>
#include <stdio.h>

#include "fabricd/control/control_priv.h"

struct daemon;
struct node;

/* All of them; NULL: no memory. free() it. The owner is a struct daemon, or a struct node. */
typedef char *(*metrics_fn)(const void *owner);
char *metrics_of_scheduler(const void *daemon);
char *metrics_of_node(const void *node);

/* The op of the control socket, for either role. */
void control_op_metrics(struct connection *connection, json_t *request);
void node_op_metrics(struct connection *connection, json_t *request);

/* ---- in pieces: metrics_text.c ---- */

/* HELP and TYPE of what follows. */
void metrics_family(FILE *out, const char *name, const char *type, const char *help);
/* One sample. `label` NULL: without; else its value may be any text. */
void metrics_sample(FILE *out, const char *name, const char *label, const char *value, double number);
/* A family of one sample. */
void metrics_one(FILE *out, const char *name, const char *type, const char *help, double number);
/* Once, when the program starts. */
void metrics_started(void);
/* What both roles have: version, time since the start, counts. */
void metrics_of_both(FILE *out, const char *role);

/* ---- the file: metrics_file.c ---- */

struct metrics_file;

/*
 * Without a configured file it does nothing. Written is when metrics_write() is called, and 15 s after
 * something was counted; while nothing happens, nothing is done.
 */
int metrics_file_new(struct event_base *base, const struct config *config, metrics_fn make, const void *owner,
                     struct metrics_file **out, struct fab_err *err);
void metrics_file_free(struct metrics_file *file); /* NULL allowed; the file stays, its time tells its age */
void metrics_write(struct metrics_file *file);     /* NULL allowed */

#endif
