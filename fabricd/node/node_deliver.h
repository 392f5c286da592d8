/*
 * node_deliver.h - a node's report on its way to the scheduler: whole or what changed, repeated until it is
 * acknowledged. It is kept in the run directory, over a restart.
 *
 * All on the loop.
 */
#ifndef FABRICD_NODE_NODE_DELIVER_H
#define FABRICD_NODE_NODE_DELIVER_H

#include "fabricd/base/counts.h"
#include "fabricd/channel/channel.h"
#include "fabricd/config/config.h"
#include "topo/model/report.h"

struct deliver;

struct deliver_calls {
    /* An attempt is over. 0: acknowledged, or nothing was to be done. Others go on by themselves. */
    void (*done)(int code, const char *reason, void *cbdata);
    /* The scheduler wants this host to be scanned. */
    void (*scan)(void *cbdata);
    void *cbdata;
};

int deliver_new(struct event_base *base, const struct config *config, struct counts *counts,
                struct channel_client *client, const struct deliver_calls *calls, struct deliver **out);
void deliver_free(struct deliver *deliver); /* NULL allowed */

/*
 * Deliver this report (finished; its contents are taken, it is left empty) where the scheduler does not hold
 * it. failed, unknown: as host_scan.h says. must: also where it seems to. `done` follows, perhaps before this
 * returns.
 */
void deliver_report(struct deliver *deliver, struct fab_report *report, uint32_t failed, uint32_t unknown,
                    bool must);

/* Is there a connection? Called at each change, and now and then. */
void deliver_connected(struct deliver *deliver, bool connected);

/* What the scheduler holds of this host, and whether it asks for a scan. at_once: it was quick to say so. */
void deliver_heard(struct deliver *deliver, uint64_t acked, bool scan, bool at_once);
uint64_t deliver_acked(const struct deliver *deliver);

/* The scheduler takes no connection of this host, because of this; code 0: it cannot be reached. */
void deliver_refused(struct deliver *deliver, int code, const char *reason);

/* Can the same delivery soon lead to another answer than this code? */
bool deliver_may_pass(int code);

/* The report that was made last, perhaps before a restart, and of which failed sources it says nothing; NULL:
 * none yet. */
const struct fab_report *deliver_current(const struct deliver *deliver, uint32_t *unknown);

/* Write it into the run directory again, which somebody removed. */
void deliver_state(struct deliver *deliver);

struct deliver_status {
    uint64_t digest;   /* of the report */
    uint64_t acked;    /* of what the scheduler says that it holds of this host; 0: nothing, or not known */
    int64_t delivered; /* when it was acknowledged last, microseconds since 1970; 0: never */
    uint32_t unknown;  /* failed sources of which it says nothing; what the scheduler holds of them stands */
    bool under_way;    /* it is not acknowledged */
    bool refused;      /* not for want of a connection or of time: the reason says why */
    char reason[480];  /* of the last failure; "": none since the last success */
};
void deliver_status(const struct deliver *deliver, struct deliver_status *out);

#endif
