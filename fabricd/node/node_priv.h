/* node_priv.h - the node's state, and what it is called for. node_main.c makes its parts. */
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
 * Two things go on side by side. Looking: idle -> scanning -> delivering -> idle; what is asked for meanwhile
 * is done next. Mirroring: what the scheduler has published is fetched when it says that there is something.
 */
struct node {
    struct config *config;
    struct loop loop;
    struct control *control;
    struct metrics_file *metrics;
    struct channel_client *client;
    struct node_wait *wait; /* for the scheduler's news */
    struct deliver *deliver;
    struct mirror *mirror;
    struct pmix_server *pmix;
    struct served *served; /* that */
    struct counts *counts;
    struct process_lock *lock; /* of the run directory */
    struct devices *devices;
    struct host_scan *scan;
    struct timer *timer;
    bool serving;           /* a PMIx server does, to the programs of this host */
    bool again, must;       /* another scan was asked for; its report is to be delivered in any case */
    bool scans_for_devices; /* the scan that runs was begun because a device changed */
    bool device_changed;    /* the next one will be */
    uint64_t number;        /* of the scan that runs or ran last */
    uint64_t delivering;    /* number of the scan whose report is delivered; 0: none */
    bool mirrored;
    bool scheduler_stale; /* it says so of itself */
    int once_code;        /* --once: what went wrong */
    struct node_status status;
    /* What came of a scan and its delivery, for those who wait for it. */
    void (*on_scanned)(const struct node *node, uint64_t number, int code, const char *reason);
};

/* What `systemctl status` shows. */
void node_tell_manager(const struct node *node);

/* Scan as soon as the scan that runs has ended. */
void node_scan_soon(struct node *node);

/* Somebody removed the run directory: make it anew, so that callers find us again. */
void node_repair_rundir(struct node *node);

/* Put right what is not in the run directory as it is served. Returns of how many planes that was so. */
uint32_t node_mend(void *node);

/* The time until the next scan has changed. (A scan that goes on plans the next one when it ends.) */
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

/* ---- what node_main.c hands to the control socket ---- */

/* docs/control.md; their owner is a struct node. */
extern const struct control_op node_control_ops[];

/* For `await`. (an await_facts_fn) */
void node_await_facts(const void *node, struct await_facts *out);

/* What came of a scan and its delivery, for those who wait for it. */
void node_control_scanned(const struct node *node, uint64_t number, int code, const char *reason);

/* For `metrics`, and the metrics file. (a metrics_fn) */
void metrics_of_node(FILE *out, const void *node);

#endif
