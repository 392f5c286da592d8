/*
 * rundir_watcher.h - a thread that sees what is published, and brings it to the registered objects,
 * with the event of each step.
 */
#ifndef FAB_MCA_PNET_RUNDIR_WATCHER_H
#define FAB_MCA_PNET_RUNDIR_WATCHER_H

#include <stdbool.h>

#include "mca/pnet/plane_registry.h"

struct rundir_watcher;

/*
 * Announce a change in this process. Returns when the handlers have finished, or when it is told by other
 * means that the process has no more time. Called on the watching thread, without any lock.
 */
typedef void (*pnet_announce_fn)(bool pending, const struct order_change *change, void *cbdata);

/* Start watching a registry's run directory. PMIXFAB_ERR_NOMEM or _IO. The registry must outlive the watcher.
 */
int rundir_watcher_start(struct pnet_registry *registry, const char *rundir, pnet_announce_fn announce,
                         void *cbdata, struct rundir_watcher **out);

/* Ends the thread and waits for it. NULL allowed. */
void rundir_watcher_stop(struct rundir_watcher *watcher);

#endif
