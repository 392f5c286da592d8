/*
 * node_deliver.h - delivery of a node's report to the scheduler: the whole or a delta, repeated until it is
 * acknowledged. The run directory keeps the report over a restart.
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
    /* Called at the end of an attempt. 0: acknowledged, or nothing was to be done. After an error, further
     * attempts follow. */
    void (*done)(int code, const char *reason, void *cbdata);
    /* The scheduler requests a scan of this host. */
    void (*scan)(void *cbdata);
    void *cbdata;
};

int deliver_new(struct event_base *base, const struct config *config, struct counts *counts,
                struct channel_client *client, const struct deliver_calls *calls, struct deliver **out);
void deliver_free(struct deliver *deliver); /* NULL allowed */

/*
 * Deliver this finished report unless the scheduler holds it. Takes its contents and leaves it empty. failed,
 * unknown: see host_scan.h. must: deliver even if the scheduler seems to hold it. `done` follows, perhaps
 * before this returns.
 */
void deliver_report(struct deliver *deliver, struct fab_report *report, uint32_t failed, uint32_t unknown,
                    bool must);

/* Note whether there is a connection. Called at each change, and repeatedly. */
void deliver_connected(struct deliver *deliver, bool connected);

/* Note which report the scheduler holds of this host, and whether it requests a scan. at_once: its answer
 * came early. */
void deliver_heard(struct deliver *deliver, uint64_t acked, bool scan, bool at_once);
uint64_t deliver_acked(const struct deliver *deliver);

/*
 * Note that the scheduler rejects connections of this host, and the reason. code 0: the scheduler cannot be
 * reached.
 */
void deliver_refused(struct deliver *deliver, int code, const char *reason);

/* Return whether a retry after this code can soon succeed. */
bool deliver_may_pass(int code);

/*
 * Return the last report, perhaps from before a restart; NULL: none yet. unknown: the failed sources whose
 * data the report lacks.
 */
const struct fab_report *deliver_current(const struct deliver *deliver, uint32_t *unknown);

/* Write the state into the run directory again, after the directory was removed. */
void deliver_state(struct deliver *deliver);

struct deliver_status {
    uint64_t digest;   /* of the report */
    uint64_t acked;    /* of the report that the scheduler holds of this host, by its own message; 0: none, or
                          not known */
    int64_t delivered; /* time of the last acknowledgement, microseconds since 1970; 0: none */
    uint32_t unknown;  /* failed sources without data in the report; the scheduler keeps its data of them */
    bool under_way;    /* not acknowledged yet */
    bool refused;      /* refused for a reason other than a missing connection or a timeout; see reason */
    char reason[480];  /* of the last failure; "": none since the last success */
};
void deliver_status(const struct deliver *deliver, struct deliver_status *out);

#endif
