/*
 * scheduler_state.h - the scheduler's state, and what its files share. For them and for main/, which starts
 * it.
 *
 * Two things go on, beside each other: rounds (a sweep of the fabric and a scan of this host's devices), and
 * publishing (pending events, putting in place, updated events), one publication at a time. A round that is
 * done, or reports of nodes that are due, wait for the end of the publication before theirs; `decide` fires
 * whenever something has ended: it is the only place that decides what is next.
 */
#ifndef FABRICD_ENGINE_SCHEDULER_STATE_H
#define FABRICD_ENGINE_SCHEDULER_STATE_H

#include <event2/event.h>

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
    struct findings *findings; /* what looks wrong */
    struct timer *look;        /* at that; NULL: not looked at (--once) */
    bool look_soon;
    bool checking; /* what looks wrong is being computed; that of before is at hand */
    struct hooks *hooks;
    struct exports *exports;
    struct trim *trimmer; /* of the history */
    struct metrics_file *metrics;
    int64_t publish_began; /* microseconds of CLOCK_MONOTONIC */
    struct timer *timer;
    struct timer *decide; /* what is next? */
    struct timer *trim;   /* gives memory back after a sweep, and when reports have been published */
    bool serving;         /* the PMIx server does */
    struct history_check *history_check;

    bool round;                  /* one is going on, until what it brought is published */
    struct sweep *sweep;         /* its sweep, until that has answered */
    struct host_scan *host_scan; /* its host scan, or that of the round before */
    struct sweep_result swept;   /* its sweep's answer; without a sweep, how the host scan went */
    bool accept_partial;         /* of this round */
    bool scan_failed;            /* a probe of the last host scan did: the next one is not waited for */
    uint64_t number;             /* of the round that goes on or was last */
    bool pending_round, pending_accept; /* another one was asked for meanwhile */

    struct monitor *monitor; /* the light sweeps between rounds; NULL: none */
    struct timer *monitor_timer;
    struct debounce debounce;                 /* when what they noticed is swept */
    struct dirty_switches dirty;              /* and what that is */
    struct manager managers[CONFIG_MAX_LIST]; /* of each of the fabric's probes, by its number */
    bool part;                                /* the round sweeps only that */
    bool scope_asked;                         /* somebody asked for such a round */
    struct fab_err why_full;                  /* and why it cannot be one; "": it can */
    void *last; /* what the last sweep saw, where the light sweeps do not have it */
    size_t last_size;

    struct counter_watch counter_watch; /* ports whose counters are looked at */
    struct counters *counters;          /* the child that reads some; NULL: none does */
    struct counter_job *counter_jobs;   /* the first one is that child's */
    struct timer *counter_timer;
    int64_t counters_due; /* when all of them are read again, microseconds since 1970 */
    struct all_counters {
        struct counter_watch watch;
        struct timer *timer;
        struct publish_port at; /* the last one that was read of this round */
        bool under_way;
        int64_t began;   /* this round, microseconds since 1970 */
        uint64_t rounds; /* that are complete */
    } all_counters;

    struct timer *retain_timer; /* what is missing becomes lost, what is suppressed is released */

    struct publication *publication; /* from pending to updated */
    bool ends_round;                 /* when that is updated, the round is at its end */
    bool reports_due;                /* nodes report something that is not published */

    struct timer *progress; /* tells those who wait for a round how it goes; NULL: none did yet */
    int64_t round_began;    /* microseconds since 1970 */
    double whole_ms;        /* the last sweep of everything; 0: none yet */

    struct scheduler_status status;
};

/* The events of the loop d->base; and, unless it is for one round only, light sweeps and what time brings. */
int scheduler_new_events(struct scheduler *d); /* PMIXFAB_ERR_NOMEM */
int scheduler_monitor(struct scheduler *d, struct fab_err *err);
void scheduler_free_events(struct scheduler *d);

/* Settings have changed: what waits by them waits anew. */
void scheduler_reconfigured(struct scheduler *d, const struct config_reload *reload);

/* What the publisher serves since the start. */
void scheduler_take_over(struct scheduler *d);

void scheduler_on_reports(void *scheduler); /* nodes have delivered */

/* ---- scheduler_findings.c ---- */

int scheduler_look_start(struct scheduler *d, struct fab_err *err);
/* Look; what came and went, for the hook. */
json_t *scheduler_look_now(struct scheduler *d);
/* Run what takes long for a large fabric: of what is served, or of so many nodes. `status` is answered
 * meanwhile. */
void scheduler_beside(struct scheduler *d, uint32_t nodes, void (*run)(void *arg), void *arg);

/* ---- rounds.c ---- */

/* Make the run directory anew if it was removed. True: it was. */
bool round_repair_rundir(struct scheduler *d);

/* ---- noticing.c ---- */

bool managers_any_gone(const struct scheduler *d);

/* `due` (of the scheduler) is called when it is time to sweep what is dirty. */
int monitoring_start(struct scheduler *d, timer_fn due, struct fab_err *err);
void monitoring_stop(struct scheduler *d);
/* How it looks has changed: light sweeps begin anew from the inventory that they had. */
void monitoring_again(struct scheduler *d);
/* Is something to be swept? */
bool monitoring_is_due(const struct scheduler *d);
/* The switches of this name (or GUID) are swept as if they had been noticed, and waited for long enough. */
void monitoring_ask(struct scheduler *d, const char *name);
/* What the last sweep saw, for a child that does not sweep itself; NULL: nothing was swept yet. */
const void *monitoring_inventory(const struct scheduler *d, size_t *size);
/* What a sweep of what was dirty needs to know. False: everything is to be swept, and err says why. */
bool monitoring_scope(struct scheduler *d, struct switch_sweep *parts, struct fab_err *err);
/* A sweep has begun that sees what was dirty. */
void monitoring_covered(struct scheduler *d);
/* When the first of what waits for a sweep was noticed, and of what the last sweep took: microseconds since
 * 1970, 0: nothing was. */
int64_t monitoring_since(const struct scheduler *d);
int64_t monitoring_covered_since(const struct scheduler *d);
/* It has answered: look on from there. */
void monitoring_swept(struct scheduler *d, struct sweep_result *result);
/* What was noticed during a round is due. */
void monitoring_round_ended(struct scheduler *d);

/* ---- counter_rounds.c ---- */

int counters_begin(struct scheduler *d, struct fab_err *err);
void counters_again(struct scheduler *d); /* settings have changed */
void counters_end(struct scheduler *d);
/* Links are not what they were: look at them for a while. */
void counters_changed(struct scheduler *d, const struct publish_ports *ports);

#endif
