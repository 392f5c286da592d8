/*
 * node.h - the room of the role node: fabricd on a compute node looks at its host, delivers to the scheduler,
 * mirrors what that publishes, and serves the programs of its host.
 */
#ifndef FABRICD_NODE_NODE_H
#define FABRICD_NODE_NODE_H

#include "fabricd/config/config.h"
#include "fabricd/node/node_deliver.h"

/* The whole program in this role, after the options; its exit status. */
int node_run(struct config *config);

/*
 * The same in its three steps, for whoever runs the loop: begin (on error the reason is in the log), run
 * node_loop(), end. The configuration outlives the node. node_end() returns with --once what went wrong.
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
    uint64_t generation; /* of what is served */
    int64_t published, stale_since, last_scan;
    double scan_ms;
    unsigned probes, probes_failed;
    bool connected, stale, scanning;
    char stale_reason[480];
    char probe_error[480]; /* of the first probe that failed in the last scan; "" */
};
void node_status(const struct node *node, struct node_status *out);

/*
 * Ask for a scan that begins after now, and for its delivery. Returns its number: who waits for it or an
 * earlier one is answered when the scheduler has acknowledged it, or an attempt has failed.
 */
uint64_t node_scan(struct node *node);

#endif
