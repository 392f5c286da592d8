/*
 * scheduler_state.h - the scheduler's state, and declarations shared by its files. Only these files and
 * main/, which starts the scheduler, include it.
 *
 * Two activities run side by side, each one at a time:
 * - A round is a sweep of the fabric and a scan of this host's devices.
 * - A publication sends pending events, puts files in place and sends updated events.
 *
 * A finished round, or due reports of nodes, wait for the end of the running publication. `decide` fires
 * whenever an activity has ended. Only `decide` chooses the next step.
 */
#ifndef FABRICD_ENGINE_SCHEDULER_STATE_H
#define FABRICD_ENGINE_SCHEDULER_STATE_H

#include <event2/event.h>

#include "fabricd/base/components.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/metrics.h"
#include "fabricd/base/rate.h"
#include "fabricd/base/timer.h"
#include "fabricd/channel/channel.h"
#include "fabricd/control/control.h"
#include "fabricd/engine/findings.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/jobs/exports.h"
#include "fabricd/jobs/history_trim.h"
#include "fabricd/jobs/hook.h"
#include "fabricd/sources/host_reports.h"
#include "fabricd/sources/host_scan.h"
#include "fabricd/sources/monitor.h"
#include "fabricd/sources/sweep.h"

struct scheduler {
    const struct config *config;
    struct event_base *base;
    struct counts *counts;
    struct process_lock *lock; /* of the run directory */
    struct publisher *publisher;
    struct pmix_server *pmix;
    struct channel_server *channel; /* of the nodes */
    struct host_reports *nodes;
    struct control *control;
    struct findings *findings;              /* the memory of findings */
    struct component_unfit component_unfit; /* as of the start */
    struct timer *look;                     /* for the next check; NULL: no checks (--once) */
    bool look_soon;
    bool checking; /* a check runs on a thread; the last findings are available */
    struct hooks *hooks;
    struct exports *exports;
    struct trim *trimmer; /* of the history */
    struct metrics_file *metrics;
    int64_t publish_began; /* microseconds of CLOCK_MONOTONIC */
    struct timer *timer;
    struct timer *decide; /* calls the decision */
    struct timer *trim;   /* returns memory after a sweep, and after a publication of reports */
    bool serving;         /* the PMIx server runs */
    struct history_check *history_check;

    bool round;                  /* a round runs, until its result is published */
    struct sweep *sweep;         /* of the round, until it has ended */
    struct host_scan *host_scan; /* of this round, or of the one before */
    struct sweep_result swept;   /* the result of the sweep; without a sweep, that of the host scan */
    bool accept_partial;         /* in this round */
    bool scan_failed;            /* a probe of the last host scan failed: do not wait for the next scan */
    uint64_t number;             /* of the running or last round */
    bool pending_round, pending_accept; /* another round was requested meanwhile */

    struct monitor *monitor; /* the light sweeps between rounds; NULL: none */
    struct timer *monitor_timer;
    struct debounce debounce;                 /* decides when the dirty switches are swept */
    struct dirty_switches dirty;              /* the dirty switches */
    struct manager managers[CONFIG_MAX_LIST]; /* of each of the fabric's probes, by its number */
    bool part;                                /* the round sweeps only the dirty switches */
    bool scope_asked;                         /* such a round was requested */
    struct fab_err why_full;                  /* why it cannot be one; "": it can */
    void *last; /* inventory of the last sweep, unless the light sweeps have it */
    size_t last_size;

    struct counter_watch counter_watch; /* watched ports */
    struct counters *counters;          /* the child that reads counters; NULL: none */
    struct counter_job *counter_jobs;   /* the first one is that child's */
    struct timer *counter_timer;
    int64_t counters_due; /* time of the next reading, microseconds since 1970 */
    struct all_counters {
        struct counter_watch watch;
        struct timer *timer;
        struct publish_port at; /* the last port that was read in this round */
        bool under_way;
        int64_t began;   /* start of this round, microseconds since 1970 */
        uint64_t rounds; /* complete ones */
    } all_counters;

    struct timer *retain_timer; /* missing devices become lost, suppressed objects are released */

    struct publication *publication; /* from pending to updated */
    bool ends_round;                 /* the round ends with this publication */
    bool reports_due;                /* reports wait for their publication */

    struct timer *progress; /* sends progress lines to waiting callers; NULL: not created yet */
    int64_t round_began;    /* microseconds since 1970 */
    double whole_ms;        /* duration of the last full sweep; 0: none yet */

    struct scheduler_status status;
};

/*
 * Create the events of the loop d->base. The second function adds light sweeps and timers. It is not called
 * with --once.
 */
int scheduler_new_events(struct scheduler *d); /* PMIXFAB_ERR_NOMEM */
int scheduler_monitor(struct scheduler *d, struct fab_err *err);
void scheduler_free_events(struct scheduler *d);

/* Restart the timers whose settings have changed. */
void scheduler_reconfigured(struct scheduler *d, const struct config_reload *reload);

/* Take over the state that the publisher serves at the start. */
void scheduler_take_over(struct scheduler *d);

void scheduler_on_reports(void *scheduler); /* nodes have delivered */

/* ---- scheduler_findings.c ---- */

int scheduler_look_start(struct scheduler *d, struct fab_err *err);
/* Check now, and return the events for the hook. */
json_t *scheduler_look_now(struct scheduler *d);
/* Run a computation that takes long for a large fabric: the served one, or one of so many nodes. `status` is
 * answered meanwhile. */
void scheduler_beside(struct scheduler *d, uint32_t nodes, void (*run)(void *arg), void *arg);

/* ---- rounds.c ---- */

/* Make a removed run directory again. True: it was removed. */
bool round_repair_rundir(struct scheduler *d);

/* ---- noticing.c ---- */

bool managers_any_gone(const struct scheduler *d);

/* Start the light sweeps. `due` (of the scheduler) is called when the dirty switches should be swept. */
int monitoring_start(struct scheduler *d, timer_fn due, struct fab_err *err);
void monitoring_stop(struct scheduler *d);
/* Settings of the light sweeps have changed: restart them from their inventory. */
void monitoring_again(struct scheduler *d);
/* Return whether a sweep of dirty switches is due. */
bool monitoring_is_due(const struct scheduler *d);
/* Mark the switches of this name (or GUID) as dirty, without debounce. */
void monitoring_ask(struct scheduler *d, const char *name);
/* Return the inventory of the last sweep, for a child that does not sweep itself; NULL: no sweep yet. */
const void *monitoring_inventory(const struct scheduler *d, size_t *size);
/* Fill in the order for a sweep of the dirty switches. False: everything must be swept, and err has the
 * reason. */
bool monitoring_scope(struct scheduler *d, struct switch_sweep *parts, struct fab_err *err);
/* Note the start of a sweep that covers the dirty switches. */
void monitoring_covered(struct scheduler *d);
/*
 * Return the time at which the first change was noticed that waits for a sweep. The second function returns
 * the time for the first change that the last sweep covered. Microseconds since 1970; 0: none.
 */
int64_t monitoring_since(const struct scheduler *d);
int64_t monitoring_covered_since(const struct scheduler *d);
/* Continue light sweeps from the result of a sweep. */
void monitoring_swept(struct scheduler *d, struct sweep_result *result);
/* Make the changes due that were noticed during a round. */
void monitoring_round_ended(struct scheduler *d);

/* ---- counter_rounds.c ---- */

int counters_begin(struct scheduler *d, struct fab_err *err);
void counters_again(struct scheduler *d); /* settings have changed */
void counters_end(struct scheduler *d);
/* Watch changed links for a while. */
void counters_changed(struct scheduler *d, const struct publish_ports *ports);

#endif
