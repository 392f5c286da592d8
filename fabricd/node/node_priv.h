/* node_priv.h - the node's state, and the calls between its parts. node_main.c creates the parts. */
#ifndef FABRICD_NODE_NODE_PRIV_H
#define FABRICD_NODE_NODE_PRIV_H

#include "fabricd/base/loop.h"
#include "fabricd/base/metrics.h"
#include "fabricd/base/timer.h"
#include "fabricd/control/connection.h"
#include "fabricd/node/node.h"
#include "fabricd/node/node_mirror.h"
#include "fabricd/node/node_netlink.h"
#include "fabricd/node/node_wait.h"
#include "fabricd/sources/host_scan.h"

/*
 * Two activities run side by side. The states of a scan are idle -> scanning -> delivering -> idle. A request
 * during a scan starts the next scan. The mirror fetches a new generation when the scheduler announces it.
 */
struct node {
    struct config *config;
    struct loop loop;
    struct control *control;
    struct metrics_file *metrics;
    struct channel_client *client;
    struct node_wait *wait; /* long poll for the scheduler's news */
    struct deliver *deliver;
    struct mirror *mirror;
    struct pmix_server *pmix;
    struct served *served; /* the served set */
    struct counts *counts;
    struct process_lock *lock; /* of the run directory */
    struct devices *devices;
    struct host_scan *scan;
    struct timer *timer;
    bool serving;           /* a PMIx server serves the programs of this host */
    bool again, must;       /* another scan is requested; must: its report has to be delivered in any case */
    bool scans_for_devices; /* the running scan was triggered by a change of a device */
    bool device_changed;    /* the next scan will be */
    uint64_t number;        /* of the running or last scan */
    uint64_t delivering;    /* number of the scan whose report is delivered; 0: none */
    bool mirrored;
    bool scheduler_stale; /* the scheduler reports itself as stale */
    int once_code;        /* --once: the error */
    struct node_status status;
    /* Called with the result of a scan and its delivery, for the callers that wait for it. */
    void (*on_scanned)(const struct node *node, uint64_t number, int code, const char *reason);
};

/* Send the status line of `systemctl status`. */
void node_tell_manager(const struct node *node);

/* Scan as soon as the running scan has ended. */
void node_scan_soon(struct node *node);

/* Make a removed run directory again, so that callers find the daemon. */
void node_repair_rundir(struct node *node);

/* Repair the files of the run directory that differ from the served set. Returns the number of planes
 * repaired. */
uint32_t node_mend(void *node);

/* Note a change of the time between scans. (A running scan plans the next one at its end.) */
void node_interval_changed(struct node *node);

/* Called by the parts; each takes a struct node. */
uint64_t node_acked(void *node);
void node_on_news(const struct channel_news *news, bool at_once, void *node);
void node_on_connected(bool connected, void *node);
void node_on_not_connected(int code, const char *reason, void *node);
void node_on_mirrored(int code, const char *reason, void *node);
void node_on_mirror_changes(bool pending, const struct event_plane *planes, uint32_t n, uint64_t generation,
                            void (*next)(void *cbdata), void *cbdata, void *node);
void node_on_mirror_served(void *node);
void node_on_upload(int code, const char *reason, void *node);
void node_on_scan_request(void *node);
void node_on_device(void *node);
void node_on_timeout(void *node);

/* ---- for node_main.c: the control socket ---- */

/* See docs/control.md; their owner is a struct node. */
extern const struct control_op node_control_ops[];

/* For `await`. (an await_facts_fn) */
void node_await_facts(const void *node, struct await_facts *out);

/* Answer the callers that wait for this scan and its delivery. */
void node_control_scanned(const struct node *node, uint64_t number, int code, const char *reason);

/* For `metrics`, and the metrics file. (a metrics_fn) */
void metrics_of_node(FILE *out, const void *node);

#endif
