/*
 * monitor.h - light sweeps between sweeps: a child makes them repeatedly, and reports changes.
 *
 * The child is one process that stays, because it holds the last inventory and the paths to its switches. It
 * is replaced with each new inventory, and with growing pauses if it ends by itself.
 */
#ifndef FABRICD_SOURCES_MONITOR_H
#define FABRICD_SOURCES_MONITOR_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "probes/core/probe.h"

struct monitor;

struct monitor_status {
    uint64_t light_sweeps; /* since the start */
    uint64_t dirty;        /* light sweeps that found a change */
    uint64_t requests;     /* of the last one */
    double poll_ms;        /* duration of the last one */
    bool monitoring;       /* the child runs and has made a light sweep */
};

/* Called on the loop: the result of a light sweep, and the subnet manager of the probe of that number, if it
 * was queried. They must not call monitor_watch() or monitor_free(). */
struct monitor_fns {
    void (*dirty)(const struct dirty_switches *dirty, void *cbdata);
    void (*manager)(unsigned probe, const struct probe_manager *saw, void *cbdata);
    void *cbdata;
};
int monitor_new(struct event_base *base, const struct config *config, const struct monitor_fns *fns,
                struct monitor **out);
void monitor_free(struct monitor *monitor); /* NULL allowed; its child has ended on return */

/* Ask the child to end, after the loop has stopped; monitor_free() will wait for it, a second at most. NULL
 * allowed. */
void monitor_leave(struct monitor *monitor);

/* Return whether light sweeps are configured, and a probe can make them. */
bool monitor_wanted(const struct config *config);

/* Compare with this sweep from now on (the bytes of struct sweep_result). Takes the bytes over. The child
 * continues if they are the same as before. */
void monitor_watch(struct monitor *monitor, void *bytes, size_t size);

/* Return the inventory in use, NULL before the first; valid until the next monitor_watch(). */
const void *monitor_inventory(const struct monitor *monitor, size_t *size);

void monitor_status(const struct monitor *monitor, struct monitor_status *out);

/* The child: the last sweep on its standard input, lines on descriptor 3 (monitor_child.c). */
int monitor_child(int argc, char **argv);
#define MONITOR_CHILD_OPTION "--monitor-child"

/*
 * The child's steps. Open the probes (argv: the child's own, with n_specs probes from argv[7] on) with the
 * last sweep, read by child_read(). Make one light sweep, whose lines are written by child_write(). Close
 * *out after an error, too. PMIXFAB_ERR_UNSUPPORTED: no probe can monitor this.
 */
struct light_sweeps;
int light_sweeps_open(char **argv, unsigned n_specs, struct light_sweeps **out, struct fab_err *err);
int light_sweeps_look(struct light_sweeps *sweeps, struct fab_err *err);
void light_sweeps_close(struct light_sweeps *sweeps); /* NULL allowed */

/* Clear the dirty switches. */
void monitor_forget(struct dirty_switches *dirty);

/* The daemon's reader of the child's lines. */
struct monitor_lines {
    struct dirty_switches dirty; /* of the light sweep that is being read */
    struct monitor_status status;
};
/* Process a line, without its end. True: a light sweep is complete. Invalid lines are ignored. */
bool monitor_line(struct monitor_lines *lines, const char *line);
/* Parse a line about a subnet manager: the probe's number and the manager. False: another line. */
bool monitor_manager_line(const char *line, unsigned *probe, struct probe_manager *out);

#endif
