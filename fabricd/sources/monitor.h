/*
 * monitor.h - between sweeps: a child that makes light sweeps of the fabric, again and again, and says what
 * changed.
 *
 * It is one process that stays, because it knows the last inventory and the ways to its switches; it is begun
 * anew with each new inventory, and with growing pauses where it ends by itself.
 */
#ifndef FABRICD_SOURCES_MONITOR_H
#define FABRICD_SOURCES_MONITOR_H

#include <event2/event.h>

#include "fabricd/config/config.h"
#include "probes/core/probe.h"

struct monitor;

struct monitor_status {
    uint64_t light_sweeps; /* since the start */
    uint64_t dirty;        /* how many of them found a change */
    uint64_t requests;     /* of the last one */
    double poll_ms;        /* how long the last one took */
    bool monitoring;       /* the child runs and has looked */
};

/* Called on the loop: what a light sweep found, and the subnet manager of the probe of that number, where it
 * was asked for. They must not call monitor_watch() or monitor_free(). */
struct monitor_fns {
    void (*dirty)(const struct dirty_switches *dirty, void *cbdata);
    void (*manager)(unsigned probe, const struct probe_manager *saw, void *cbdata);
    void *cbdata;
};
int monitor_new(struct event_base *base, const struct config *config, const struct monitor_fns *fns,
                struct monitor **out);
void monitor_free(struct monitor *monitor); /* NULL allowed; its child is gone, too */

/* The loop does not run any more: ask the child to end, for which monitor_free() is going to wait, a second
 * at most. NULL allowed. */
void monitor_leave(struct monitor *monitor);

/* Does the configuration ask for it, and is there a probe that can? */
bool monitor_wanted(const struct config *config);

/* From now on against what this sweep saw (the bytes of struct sweep_result), which are taken over. The child
 * goes on where they are the same as before. */
void monitor_watch(struct monitor *monitor, void *bytes, size_t size);

/* What it looks at, NULL before the first; valid until the next monitor_watch(). */
const void *monitor_inventory(const struct monitor *monitor, size_t *size);

void monitor_status(const struct monitor *monitor, struct monitor_status *out);

/* The child: what was swept on its standard input, lines on descriptor 3 (monitor_child.c). */
int monitor_child(int argc, char **argv);
#define MONITOR_CHILD_OPTION "--monitor-child"

/*
 * Its steps. Open the probes (argv: the child's own, with n_specs probes from argv[7] on) with what was
 * swept, which is read by child_read(); make one light sweep, whose lines are written by child_write(). *out
 * is to be closed after an error, too. PMIXFAB_ERR_UNSUPPORTED: no probe can monitor this.
 */
struct light_sweeps;
int light_sweeps_open(char **argv, unsigned n_specs, struct light_sweeps **out, struct fab_err *err);
int light_sweeps_look(struct light_sweeps *sweeps, struct fab_err *err);
void light_sweeps_close(struct light_sweeps *sweeps); /* NULL allowed */

/* Nothing is dirty any more. */
void monitor_forget(struct dirty_switches *dirty);

/* What the daemon reads of the child. */
struct monitor_lines {
    struct dirty_switches dirty; /* by the light sweep that is being told */
    struct monitor_status status;
};
/* One line, without its end. True: a light sweep is told entirely. Lines that are none are left out. */
bool monitor_line(struct monitor_lines *lines, const char *line);
/* Is it about a subnet manager, of which probe, and what? */
bool monitor_manager_line(const char *line, unsigned *probe, struct probe_manager *out);

#endif
