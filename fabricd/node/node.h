/*
 * node.h - the role node. fabricd on a compute node scans its host, delivers the report to the scheduler,
 * mirrors the scheduler's snapshots, and serves the programs of its host.
 */
#ifndef FABRICD_NODE_NODE_H
#define FABRICD_NODE_NODE_H

#include "fabricd/config/config.h"
#include "fabricd/node/node_deliver.h"

/* Run the program in this role, after the options; returns its exit status. */
int node_run(struct config *config);

/*
 * The same in three steps, for a caller that runs the loop itself: begin (on error the reason is in the log),
 * run node_loop(), end. The configuration outlives the node. With --once, node_end() returns the error.
 */
struct node;
struct loop;
int node_begin(struct config *config, struct node **out);
struct loop *node_loop(struct node *node);
int node_end(struct node *node);

/* ---- for its control socket and its metrics ---- */

/* Times are microseconds since 1970, 0: none. */
struct node_status {
    struct deliver_status deliver;
    uint64_t generation; /* of the served set */
    int64_t published, stale_since, last_scan;
    double scan_ms;
    unsigned probes, probes_failed;
    bool connected, stale, scanning;
    char stale_reason[480];
    char probe_error[480]; /* of the first probe that failed in the last scan; "": none */
};
void node_status(const struct node *node, struct node_status *out);

/*
 * Request a scan that begins after now, and its delivery. Returns the number of the scan. Callers that wait
 * for this scan or an earlier one get an answer when the scheduler has acknowledged the report, or when an
 * attempt has failed.
 */
uint64_t node_scan(struct node *node);

#endif
