/*
 * daemon_priv.h - inside the scheduler's daemon: its state, and what its files share.
 *
 * Two things go on, beside each other: rounds (a sweep of the fabric and a scan at this host's devices), and
 * publishing (pending events, putting in place, updated events), one publication at a time. A round that is
 * done, or reports of nodes that are due, wait for the end of the publication before theirs; daemon_go_on()
 * is called whenever something has ended, and is the only place that decides what is next.
 *
 * daemon.c starts and stops, daemon_round.c holds the rounds, round_partial.c what is dirty between them,
 * daemon_publish.c publishes.
 */
#ifndef FABRICD_DAEMON_PRIV_H
#define FABRICD_DAEMON_PRIV_H

#include <event2/event.h>
#include <time.h>

#include "fabricd/control/control.h"
#include "fabricd/discovery/debounce.h"
#include "fabricd/discovery/host_scan.h"
#include "fabricd/discovery/monitor.h"
#include "fabricd/discovery/sweep.h"
#include "fabricd/ingest/host_reports.h"
#include "fabricd/jobs/backup.h"
#include "fabricd/jobs/history_trim.h"
#include "fabricd/jobs/hook.h"
#include "fabricd/operator/ops_metrics.h"
#include "fabricd/publish/publish.h"
#include "fabricd/scheduler/scheduler.h"

struct daemon {
    const struct config *config;
    struct event_base *base;
    struct publisher *publisher;
    struct host_reports *nodes;
    struct control *control;
    struct hooks *hooks;
    struct trim *trimmer; /* of the history */
    struct backup *backup;
    struct metrics_file *metrics;
    struct timespec publish_began;
    struct event *timer, *signals[3];
    struct event *trim; /* gives memory back when reports have been published */
    bool serving;       /* the PMIx server runs */
    bool taking;        /* and nodes can deliver */

    bool round;                  /* one is going on, until what it brought is published */
    struct sweep *sweep;         /* its sweep, until that has answered */
    struct host_scan *host_scan; /* its light sweep, or that of the round before */
    struct sweep_result swept;   /* its sweep's answer; without a sweep, how the light sweep went */
    bool accept_partial;         /* of this round */
    bool scan_failed;            /* a probe of the last light sweep did: the next one is not waited for */
    uint64_t number;             /* of the round that goes on or was last */
    bool pending_round, pending_accept; /* another one was asked for meanwhile */

    struct monitor *monitor; /* the light sweeps between rounds; NULL: none */
    struct event *monitor_timer;
    struct debounce debounce;    /* when what they dirty is swept */
    struct dirty_switches dirty; /* and what that is */
    bool part;                   /* the round sweeps only that */
    bool scope_asked;            /* somebody asked for such a round */
    struct fab_err why_full;     /* and why it cannot be one; "": it can */
    void *last;                  /* what the last sweep saw, where the light sweeps do not have it */
    size_t last_size;

    struct event *retain_timer; /* what is missing becomes lost, what is suppressed is released */

    struct publication *publication; /* from pending to updated */
    bool ends_round;                 /* when that is updated, the round is at its end */
    bool reports_due;                /* nodes report something that is not published */

    struct event *progress; /* tells those who wait for a round how it goes; NULL: none did yet */
    int64_t round_began;    /* microseconds since 1970 */
    double whole_ms;        /* the last sweep of everything; 0: none yet */

    bool partial;                 /* in the last sweep, ports lead nowhere that did not before */
    struct sweep_findings report; /* of that */
    int last_code;
    struct daemon_status status;
};

/* Do what can be done now. */
void daemon_go_on(struct daemon *d);

/* ---- daemon_round.c ---- */

/* part: of what was dirty, instead of everything. */
void round_start(struct daemon *d, bool part);
/* Sweep and scan have answered, as far as they are waited for. */
bool round_answered(const struct daemon *d);
/* Everything that the round was for is done, or failed: tell those who wait, and plan the next one. */
void round_end(struct daemon *d, int code, const char *message, bool changed);
void round_cancel(struct daemon *d);
/* "sweeping for 4 s; the last sweep took 8.1 s": after so many seconds, and then each time after so many. */
#define ROUND_FIRST_PROGRESS 2
#define ROUND_PROGRESS       5
#define ROUND_PROGRESS_TEXT  96
void round_progress_text(const struct daemon *d, int64_t since, char text[ROUND_PROGRESS_TEXT]);

/* ---- round_partial.c ---- */

int monitoring_start(struct daemon *d, struct fab_err *err);
void monitoring_stop(struct daemon *d);
/* The switches of this name (or GUID) are swept as if they had been dirty, and waited for long enough. */
void notices_ask(struct daemon *d, const char *name);
/* What a sweep of what was dirty needs to know. False: everything is to be swept, and err says why. */
bool monitoring_scope(struct daemon *d, struct partial_sweep *again, struct fab_err *err);
/* A sweep has begun that sees what was dirty. */
void monitoring_covered(struct daemon *d);
/* When the first of what waits for a sweep was dirty, and of what the last sweep took: microseconds since
 * 1970, 0: nothing was. */
int64_t monitoring_since(const struct daemon *d);
int64_t monitoring_covered_since(const struct daemon *d);
/* It has answered: look on from there. */
void monitoring_swept(struct daemon *d, struct sweep_result *result);
/* What was dirty during a round is due. */
void monitoring_round_ended(struct daemon *d);

/* ---- daemon_keep.c ---- */

int round_timers_start(struct daemon *d, struct fab_err *err);
void round_timers_stop(struct daemon *d);
/* Something has ended: when is it time? */
void round_timers_plan(struct daemon *d);
/* Is the last sweep good enough to retire what it did not see? */
bool round_timers_may_retire(const struct daemon *d);

/* ---- daemon_publish.c ---- */

/* Publish what the round brought, or end it where that is nothing. */
void publish_round(struct daemon *d);
/* Memory that is freed stays for what comes next, since pages that are new cost more than what is done in
 * them: from a publication of reports until the trim a second later. */
void daemon_retain_memory(bool keep);
/* Publish what nodes report, with the fabric as it was swept last. */
void publish_reports(struct daemon *d);

#endif
