#include "fabricd/server/server_rundir.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "fabricd/server/server_events.h"
#include "pmix/rundir/snapshots.h"
#include "topo/snapshot/folder_watch.h"

#define RETRY_MS 1000 /* between checks without a watch, or while a `pending` may be left over */

struct server_rundir {
    struct event_base *base;
    struct served *served;
    struct rundir_snapshots *snapshots;
    struct fab_folder_watch folder;
    struct watch *watch;
    struct timer *retry;
    struct server_rundir_calls calls;
    const char *rundir;
    uint64_t raising; /* the generation whose UPDATED is being raised; 0: none */
    bool busy;        /* an event was raised, and its handlers have not finished */
    bool again;       /* there was a change meanwhile */
};

/* ---- the served set --------------------------------------------------------------------------------- */

struct served_lent {
    struct rundir_snapshots *snapshots;
    struct rundir_content *content;
};

/* Called on any thread. */
static void served_release(void *arg)
{
    struct served_lent *lent = arg;
    rundir_snapshots_unpin(lent->snapshots, lent->content);
    free(lent);
}

static struct served_plane *served_from(struct server_rundir *source, const struct rundir_planes *planes,
                                        uint32_t i)
{
    struct served_plane *plane = NULL;
    struct fab_err err = {""};
    struct served_lent *lent = malloc(sizeof(*lent));
    if (lent == NULL)
        return NULL;
    *lent = (struct served_lent){source->snapshots, planes->contents[i]};
    if (served_plane_lent(lent->content->fab, lent->content->path, served_release, lent, &plane, &err) ==
        PMIXFAB_OK) {
        rundir_planes_pin(planes, i);
        return plane;
    }
    free(lent);
    return NULL;
}

static bool step_names(const struct order_step *step, const char *plane)
{
    for (uint32_t i = 0; step != NULL && i < step->n; i++)
        if (strcmp(step->changes[i].name, plane) == 0)
            return true;
    return false;
}

/* Keep the old plane where its file cannot be read now, unless the plane is gone. */
static void served_keep(const struct served_set *old, const struct order_step *step,
                        struct served_plane **planes, uint32_t *n)
{
    for (uint32_t i = 0; old != NULL && i < old->n; i++) {
        bool there = false;
        for (uint32_t k = 0; k < *n && !there; k++)
            there = planes[k]->info.index == old->planes[i]->info.index;
        if (!there && !step_names(step, old->planes[i]->info.name))
            planes[(*n)++] = served_plane_ref(old->planes[i]);
    }
}

/*
 * Serve the present snapshots. Returns the generation. step: the UPDATED that will be raised; NULL at the
 * start: none is raised.
 */
static uint64_t source_serve(struct server_rundir *source, const struct order_step *step)
{
    struct rundir_planes there;
    struct fab_err err = {""};
    struct served_set *old = served_get(source->served), *set = NULL;
    uint64_t generation = 0;
    int64_t published = 0;
    uint32_t n = 0;
    rundir_planes_get(source->snapshots, &there, &err);
    struct served_plane **planes = calloc((size_t)there.n + (old == NULL ? 0 : old->n) + 1, sizeof(*planes));
    for (uint32_t i = 0; planes != NULL && i < there.n; i++) {
        planes[n] = served_from(source, &there, i);
        n += planes[n] != NULL;
    }
    rundir_planes_put(&there);
    if (planes != NULL)
        served_keep(old, step, planes, &n);
    for (uint32_t i = 0; i < n; i++)
        if (planes[i]->info.generation > generation) {
            generation = planes[i]->info.generation;
            published = planes[i]->info.published;
        }
    for (uint32_t i = 0; step != NULL && i < step->n; i++)
        if (step->changes[i].generation > generation)
            generation = step->changes[i].generation;
    set = planes == NULL ? NULL : served_set_new(planes, n, generation, published);
    if (set == NULL) {
        log_error("out of memory: the old snapshots stay in service");
        for (uint32_t i = 0; i < n; i++)
            served_plane_put(planes[i]);
    } else {
        served_swap(source->served, set);
        if (step != NULL)
            log_info("fabric: generation %llu of %s is served", (unsigned long long)generation,
                     source->rundir);
        if (source->calls.served != NULL)
            source->calls.served(source->calls.cbdata);
    }
    free(planes);
    served_set_put(old);
    return generation;
}

/* ---- steps ------------------------------------------------------------------------------------------ */

static void source_look(struct server_rundir *source);

static void source_on_announced(void *arg)
{
    struct server_rundir *source = arg;
    source->busy = false;
    if (source->raising != 0 && source->calls.raised != NULL)
        source->calls.raised(source->raising, source->calls.cbdata);
    source_look(source);
}

static void source_look(struct server_rundir *source)
{
    struct order_step step;
    source->again = source->busy;
    if (source->busy)
        return;
    const bool watched = fab_folder_watch_arm(&source->folder);
    const bool waits = rundir_snapshots_look(source->snapshots);
    timer_cancel(source->retry);
    if (waits || !watched)
        timer_after(source->retry, RETRY_MS);
    if (!rundir_snapshots_next(source->snapshots, &step))
        return;
    source->raising = step.pending ? 0 : source_serve(source, &step);
    source->busy = true;
    events_announce(source->base, step.pending, step.changes, step.n, source_on_announced, source);
}

static void source_on_retry(void *arg)
{
    source_look(arg);
}

static void source_on_event(int fd, void *arg)
{
    struct server_rundir *source = arg;
    (void)fd;
    if (!fab_folder_watch_drain(&source->folder))
        return;
    if (source->calls.looked != NULL)
        source->calls.looked(source->calls.cbdata);
    source_look(source);
}

/* ---- start and stop --------------------------------------------------------------------------------- */

int server_rundir_start(struct event_base *base, const char *rundir, struct served *served,
                        const struct server_rundir_calls *calls, struct server_rundir **out,
                        struct fab_err *err)
{
    struct server_rundir *source = *out = calloc(1, sizeof(*source));
    int rc = PMIXFAB_ERR_NOMEM;
    if (source == NULL)
        goto failed;
    *source =
        (struct server_rundir){.base = base, .served = served, .folder = {.inotify = -1}, .rundir = rundir};
    if (calls != NULL)
        source->calls = *calls;
    rc = rundir_snapshots_new(rundir, &source->snapshots);
    if (rc == PMIXFAB_OK)
        rc = fab_folder_watch_open(rundir, &source->folder);
    if (rc != PMIXFAB_OK)
        goto failed;
    source->watch = watch_new(base, source->folder.inotify, WATCH_READ, source_on_event, source);
    source->retry = timer_new(base, source_on_retry, source);
    rc = PMIXFAB_ERR_NOMEM;
    if (source->watch == NULL || source->retry == NULL)
        goto failed;
    fab_folder_watch_arm(&source->folder);
    (void)rundir_snapshots_look(source->snapshots); /* read the snapshots that are there, */
    source_serve(source, NULL);                     /* and serve them */
    timer_fire(source->retry);
    return PMIXFAB_OK;

failed:
    server_rundir_stop(source);
    *out = NULL;
    return fab_fail(err, rc, "run directory %s: cannot be watched: %s", rundir, pmixfab_strerror(rc));
}

void server_rundir_stop(struct server_rundir *source)
{
    if (source == NULL)
        return;
    watch_free(source->watch);
    timer_free(source->retry);
    fab_folder_watch_close(&source->folder);
    served_swap(source->served, NULL); /* its planes belong to the snapshots */
    rundir_snapshots_free(source->snapshots);
    free(source);
}
