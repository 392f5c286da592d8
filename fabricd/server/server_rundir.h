/*
 * server_rundir.h - serve the snapshots of a run directory and their changes, with the pair of events around
 * each change. For fabricd-pmix and fabric-host.
 */
#ifndef FABRICD_SERVER_SERVER_RUNDIR_H
#define FABRICD_SERVER_SERVER_RUNDIR_H

#include <event2/event.h>

#include "fabricd/serving/served.h"

struct server_rundir;

/* Called on the loop; each may be NULL. */
struct server_rundir_calls {
    void (*served)(void *cbdata);                      /* another set is served */
    void (*raised)(uint64_t generation, void *cbdata); /* the UPDATED of this generation was raised */
    void (*looked)(void *cbdata);                      /* the run directory has changed */
    void *cbdata;
};

/*
 * Fill `served` with the snapshots of the run directory, now and at each change; there may be none yet. Call
 * it before the PMIx server starts; events are raised from the first turn of the loop on. calls NULL: none.
 */
int server_rundir_start(struct event_base *base, const char *rundir, struct served *served,
                        const struct server_rundir_calls *calls, struct server_rundir **out,
                        struct fab_err *err);

/* Call this after the PMIx server has stopped, when no set of `served` is referenced. NULL allowed. */
void server_rundir_stop(struct server_rundir *source);

#endif
