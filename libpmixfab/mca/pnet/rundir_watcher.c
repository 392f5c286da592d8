#include "mca/pnet/rundir_watcher.h"

#include <stdlib.h>
#include <string.h>

#include "pmix/rundir/rundir_watch.h"
#include "topo/base/library_log.h"

struct rundir_watcher {
    struct dir_watch *watch;
    struct pnet_registry *registry;
    char *rundir;
    pnet_announce_fn announce;
    void *cbdata;
};

/* Everything that is new, until nothing is: a generation may be published while another is announced. */
static bool bring_news(struct dir_watch *watch, void *cbdata)
{
    struct rundir_watcher *watcher = cbdata;
    bool pending, waits = false;
    uint32_t n = 1;
    while (n > 0 && !dir_watch_stopping(watch)) {
        struct order_change *changes;
        waits = pnet_look(watcher->registry);
        if (pnet_next(watcher->registry, &pending, &changes, &n) != PMIXFAB_OK)
            fab_log(PMIXFAB_LOG_ERROR, "%s: a new generation is there, but no memory for its events",
                    watcher->rundir);
        for (uint32_t i = 0; i < n && !dir_watch_stopping(watch); i++)
            watcher->announce(pending, &changes[i], watcher->cbdata);
        free(changes);
    }
    return waits;
}

static void rundir_watcher_free(struct rundir_watcher *watcher)
{
    free(watcher->rundir);
    free(watcher);
}

int rundir_watcher_start(struct pnet_registry *registry, const char *rundir, pnet_announce_fn announce,
                         void *cbdata, struct rundir_watcher **out)
{
    *out = NULL;
    struct rundir_watcher *watcher = calloc(1, sizeof(*watcher));
    if (watcher == NULL)
        return PMIXFAB_ERR_NOMEM;
    *watcher = (struct rundir_watcher){
        .registry = registry, .rundir = strdup(rundir), .announce = announce, .cbdata = cbdata};
    int rc = watcher->rundir == NULL ? PMIXFAB_ERR_NOMEM
                                     : dir_watch_start(rundir, bring_news, watcher, &watcher->watch);
    if (rc != PMIXFAB_OK) {
        rundir_watcher_free(watcher);
        return rc;
    }
    *out = watcher;
    return PMIXFAB_OK;
}

void rundir_watcher_stop(struct rundir_watcher *watcher)
{
    if (watcher == NULL)
        return;
    dir_watch_stop(watcher->watch);
    rundir_watcher_free(watcher);
}
