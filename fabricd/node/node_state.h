/*
 * node_state.h - what a node keeps over a restart: its last report, and what the scheduler last said of it. A
 * file in the run directory, put in place by renaming.
 */
#ifndef FABRICD_NODE_NODE_STATE_H
#define FABRICD_NODE_NODE_STATE_H

#include "topo/model/report.h"

/* Sources are bits, 1 << enum fab_source. */
struct state_announced {
    uint64_t digest; /* of the report that the scheduler acknowledged last; 0: none */
    uint64_t acked;  /* what it then said that it holds */
    uint32_t failed; /* what else that delivery said, see topo/model/delivery.h */
    uint32_t unknown;
};

struct node_state {
    struct fab_report report; /* unfinished: there is none */
    uint32_t failed, unknown; /* probes that failed when it was made, and of which of them it says nothing */
    struct state_announced announced;
};

#define NODE_STATE_FILE "node.report"

/* RUNDIR/NODE_STATE_FILE; the report is finished. PMIXFAB_ERR_IO, _NOMEM: what was there before stays. */
int node_state_write(const char *rundir, const struct node_state *state, struct fab_err *err);

/*
 * *out is initialised here, and empty where there is no such file. One that is damaged, another version's or
 * another host's is as none: PMIXFAB_ERR_..., err says why.
 */
int node_state_read(const char *rundir, const char *host, struct node_state *out, struct fab_err *err);

#endif
