/*
 * node_state.h - a node's state that survives a restart: its last report, and the scheduler's last
 * acknowledgement. It is a file in the run directory, put in place by renaming.
 */
#ifndef FABRICD_NODE_NODE_STATE_H
#define FABRICD_NODE_NODE_STATE_H

#include "topo/model/report.h"

/* Sources are bits, 1 << enum fab_source. */
struct state_announced {
    uint64_t digest; /* of the last acknowledged report; 0: none */
    uint64_t acked;  /* digest that the scheduler then held */
    uint32_t failed; /* failed and unknown sources in that delivery, see topo/model/delivery.h */
    uint32_t unknown;
};

struct node_state {
    struct fab_report report; /* not finished: there is none */
    uint32_t failed, unknown; /* probes that failed, and those of them whose data the report lacks */
    struct state_announced announced;
};

#define NODE_STATE_FILE "node.report"

/* Write RUNDIR/NODE_STATE_FILE; the report is finished. PMIXFAB_ERR_IO, _NOMEM: the old file stays. */
int node_state_write(const char *rundir, const struct node_state *state, struct fab_err *err);

/*
 * Read the file. *out is initialised here, and stays empty if there is no file. Returns PMIXFAB_ERR_... with
 * a reason in err for a damaged file, or one of another version or host; *out is empty then.
 */
int node_state_read(const char *rundir, const char *host, struct node_state *out, struct fab_err *err);

#endif
