/*
 * server_rundir.h - serve what stands in a run directory, and what comes later, with the pair of events
 * around each change. fabricd-pmix and fabric-host do this.
 */
#ifndef FABRICD_SERVER_SERVER_RUNDIR_H
#define FABRICD_SERVER_SERVER_RUNDIR_H

#include <event2/event.h>

#include "fabricd/serving/served.h"

struct server_rundir;

/* Called on the loop; each may be NULL. */
struct server_rundir_calls {
    void (*served)(void *cbdata);                      /* something else is served */
    void (*raised)(uint64_t generation, void *cbdata); /* the UPDATED of this generation was raised */
    void (*looked)(void *cbdata);                      /* something has happened in the run directory */
    void *cbdata;
};

/*
 * From here on `served` has the snapshots of the run directory, which need not be there yet. Before the PMIx
 * server starts; events are raised from the first turn of the loop on. calls NULL: none.
 */
int server_rundir_start(struct event_base *base, const char *rundir, struct served *served,
                        const struct server_rundir_calls *calls, struct server_rundir **out,
                        struct fab_err *err);

/* After the PMIx server has stopped, when nobody has a set of `served` any more. NULL allowed. */
void server_rundir_stop(struct server_rundir *source);

#endif
