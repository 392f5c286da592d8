#include "fabricd/host/host_fabric.h"

#include <stdio.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/host/host_post.h"
#include "fabricd/server/server_events.h"
#include "fabricd/serving/rundir.h"
#include "pmix/rundir/rundir_watch.h"

#define MOST_PLANES 64

static struct event_base *fabric_base;
static struct served *fabric_served;
static const char *fabric_rundir;
static struct dir_watch *fabric_watch;

/* What is announced; one at a time. */
static struct {
    bool busy, again;
    struct served_set *set; /* not served yet */
    struct event_plane planes[MOST_PLANES];
    uint32_t n;
} change;

static void fabric_look(void *arg);

static void fabric_on_updated(void *cbdata)
{
    change.busy = false;
    if (change.again)
        fabric_look(cbdata);
}

static void fabric_on_pending(void *cbdata)
{
    const uint64_t generation = change.set->generation;
    served_swap(fabric_served, change.set);
    change.set = NULL;
    log_info("fabric: generation %llu of %s is served", (unsigned long long)generation, fabric_rundir);
    events_announce(fabric_base, false, change.planes, change.n, generation, fabric_on_updated, cbdata);
}

/* The planes that are new, or other ones than before. */
static void fabric_compare(const struct served_set *before)
{
    change.n = 0;
    for (uint32_t i = 0; i < change.set->n && change.n < MOST_PLANES; i++) {
        const struct served_plane *plane = change.set->planes[i];
        const struct served_plane *old = served_find(before, plane->info.index);
        if (old != NULL && old->info.generation == plane->info.generation &&
            old->info.published == plane->info.published)
            continue;
        struct event_plane *to = &change.planes[change.n++];
        to->index = plane->info.index;
        snprintf(to->name, sizeof(to->name), "%s", plane->info.name);
    }
}

static void fabric_look(void *arg)
{
    struct fab_err err = {""};
    change.again = change.busy;
    if (change.busy)
        return;
    if (rundir_load(fabric_rundir, &change.set, &err) != PMIXFAB_OK) {
        log_error("fabric: %s", err.text);
        return;
    }
    struct served_set *before = served_get(fabric_served);
    fabric_compare(before);
    const bool same = change.n == 0 && change.set->n == before->n;
    served_set_put(before);
    if (same || change.set->n == 0) { /* one that is away takes nothing away */
        served_set_put(change.set);
        change.set = NULL;
        return;
    }
    change.busy = true;
    events_announce(fabric_base, true, change.planes, change.n, change.set->generation, fabric_on_pending,
                    arg);
}

/* On the watching thread. */
static void fabric_on_news(struct dir_watch *watch, void *cbdata)
{
    (void)watch;
    if (!host_post(fabric_look, cbdata))
        log_error("fabric: out of memory: a change is not seen");
}

int host_fabric_start(struct event_base *base, const char *rundir, struct fab_err *err)
{
    struct served_set *set;
    fabric_base = base;
    fabric_rundir = rundir;
    fabric_served = served_new();
    int rc = fabric_served != NULL ? rundir_load(rundir, &set, err)
                                   : fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (rc != PMIXFAB_OK)
        return rc;
    served_swap(fabric_served, set);
    rc = dir_watch_start(rundir, fabric_on_news, NULL, &fabric_watch);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "run directory %s: cannot be watched", rundir);
}

struct served *host_fabric_served(void)
{
    return fabric_served;
}

void host_fabric_stop(void)
{
    dir_watch_stop(fabric_watch);
    fabric_watch = NULL;
    served_set_put(change.set);
    change.set = NULL;
    served_free(fabric_served);
    fabric_served = NULL;
}
