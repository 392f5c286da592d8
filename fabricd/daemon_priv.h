/*
 * daemon_priv.h - inside the scheduler's daemon: its state, and what its files share.
 *
 * Two things go on, beside each other: rounds (a sweep of the fabric and a look at this host's devices), and
 * publishing (pending events, putting in place, updated events), one publication at a time. A round that is
 * done, or reports of nodes that are due, wait for the end of the publication before theirs; daemon_go_on()
 * is called whenever something has ended, and is the only place that decides what is next.
 *
 * daemon.c starts and stops, daemon_round.c holds the rounds, daemon_notice.c what is noticed between them,
 * daemon_publish.c publishes.
 */
#ifndef FABRICD_DAEMON_PRIV_H
#define FABRICD_DAEMON_PRIV_H

#include <event2/event.h>
#include <time.h>

#include "fabricd/backup.h"
#include "fabricd/control.h"
#include "fabricd/daemon.h"
#include "fabricd/gather.h"
#include "fabricd/hook.h"
#include "fabricd/look.h"
#include "fabricd/metrics.h"
#include "fabricd/nodes.h"
#include "fabricd/notice.h"
#include "fabricd/publish.h"
#include "fabricd/sweep.h"
#include "fabricd/trim.h"

struct daemon {
    const struct config *config;
    struct event_base *base;
    struct publisher *publisher;
    struct nodes *nodes;
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

    bool round;                /* one is going on, until what it brought is published */
    struct sweep *sweep;       /* its sweep, until that has answered */
    struct look *look;         /* its look, or that of the round before */
    struct sweep_result swept; /* its sweep's answer; without a sweep, how the look went */
    bool accept_partial;       /* of this round */
    bool look_failed;          /* a probe of the last look did: the next one is not waited for */
    uint64_t number;           /* of the round that goes on or was last */
    bool again, again_accept;  /* another one was asked for meanwhile */

    struct notice *notice; /* the cheap looks between rounds; NULL: none */
    struct event *notice_timer;
    struct gather gather;         /* when what they noticed is swept */
    struct probe_noticed noticed; /* and what that is */
    bool part;                    /* the round sweeps only that */
    bool part_asked;              /* somebody asked for such a round */
    struct fab_err why_whole;     /* and why it cannot be one; "": it can */
    void *last;                   /* what the last sweep saw, where the looks do not have it */
    size_t last_size;

    struct event *keep_timer; /* what is missing becomes lost, what is held is released */

    struct publication *publication; /* from pending to updated */
    bool ends_round;                 /* when that is updated, the round is at its end */
    bool reports_due;                /* nodes report something that is not published */

    struct event *progress; /* tells those who wait for a round how it goes; NULL: none did yet */
    int64_t round_began;    /* microseconds since 1970 */
    double whole_ms;        /* the last sweep of everything; 0: none yet */

    bool partial;                 /* in the last sweep, ports lead nowhere that did not before */
    struct publish_report report; /* of that */
    int last_code;
    struct daemon_status status;
};

/* Do what can be done now. */
void daemon_go_on(struct daemon *d);

/* ---- daemon_round.c ---- */

/* part: of what was noticed, instead of everything. */
void round_start(struct daemon *d, bool part);
/* Sweep and look have answered, as far as they are waited for. */
bool round_answered(const struct daemon *d);
/* Everything that the round was for is done, or failed: tell those who wait, and plan the next one. */
void round_end(struct daemon *d, int code, const char *message, bool changed);
void round_cancel(struct daemon *d);
/* "sweeping for 4 s; the last sweep took 8.1 s": after so many seconds, and then each time after so many. */
#define ROUND_FIRST_PROGRESS 2
#define ROUND_PROGRESS       5
#define ROUND_PROGRESS_TEXT  96
void round_progress_text(const struct daemon *d, int64_t since, char text[ROUND_PROGRESS_TEXT]);

/* ---- daemon_notice.c ---- */

int notices_start(struct daemon *d, struct fab_err *err);
void notices_stop(struct daemon *d);
/* What a sweep of what was noticed needs to know. False: everything is to be swept, and err says why. */
bool notices_part(struct daemon *d, struct sweep_again *again, struct fab_err *err);
/* A sweep has begun that sees what was noticed. */
void notices_taken(struct daemon *d);
/* When the first of what waits for a sweep was noticed, and of what the last sweep took: microseconds since
 * 1970, 0: nothing was. */
int64_t notices_since(const struct daemon *d);
int64_t notices_taken_since(const struct daemon *d);
/* It has answered: look on from there. */
void notices_swept(struct daemon *d, struct sweep_result *result);
/* What was noticed during a round is due. */
void notices_round_ended(struct daemon *d);

/* ---- daemon_keep.c ---- */

int keeping_start(struct daemon *d, struct fab_err *err);
void keeping_stop(struct daemon *d);
/* Something has ended: when is it time? */
void keeping_plan(struct daemon *d);
/* Is the last sweep good enough to retire what it did not see? */
bool keeping_may_retire(const struct daemon *d);

/* ---- daemon_publish.c ---- */

/* Publish what the round brought, or end it where that is nothing. */
void publish_round(struct daemon *d);
/* Memory that is freed stays for what comes next, since pages that are new cost more than what is done in
 * them: from a publication of reports until the trim a second later. */
void daemon_keep_memory(bool keep);
/* Publish what nodes report, with the fabric as it was swept last. */
void publish_reports(struct daemon *d);

#endif
