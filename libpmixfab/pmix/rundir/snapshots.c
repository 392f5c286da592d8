#include "pmix/rundir/snapshots.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "topo/base/library_log.h"

struct rundir_snapshots {
    pthread_mutex_t lock;
    struct pnet_published published;
    struct event_order *order;
    bool (*wanted)(const char *plane, void *cbdata); /* NULL: all planes */
    void *cbdata;
    bool watched; /* what there was at the start is no news */
};

int rundir_snapshots_new(const char *rundir, struct rundir_snapshots **out)
{
    *out = NULL;
    if (rundir == NULL || rundir[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    struct rundir_snapshots *snapshots = calloc(1, sizeof(*snapshots));
    if (snapshots == NULL)
        return PMIXFAB_ERR_NOMEM;
    snapshots->published.rundir = strdup(rundir);
    snapshots->order = event_order_new();
    if (snapshots->published.rundir == NULL || snapshots->order == NULL) {
        event_order_free(snapshots->order);
        free(snapshots->published.rundir);
        free(snapshots);
        return PMIXFAB_ERR_NOMEM;
    }
    snapshots->published.trusted_only = true;
    pthread_mutex_init(&snapshots->lock, NULL);
    *out = snapshots;
    return PMIXFAB_OK;
}

void rundir_snapshots_free(struct rundir_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    pnet_published_forget(&snapshots->published);
    event_order_free(snapshots->order);
    free(snapshots->published.rundir);
    pthread_mutex_destroy(&snapshots->lock);
    free(snapshots);
}

void rundir_snapshots_for_objects(struct rundir_snapshots *snapshots,
                                  bool (*wanted)(const char *plane, void *cbdata), void *cbdata)
{
    snapshots->published.trusted_only = false;
    snapshots->wanted = wanted;
    snapshots->cbdata = cbdata;
}

/* ---- planes ----------------------------------------------------------------------------------------- */

static int planes_cmp(const void *left, const void *right)
{
    const struct pnet_content *const *one = left, *const *other = right;
    const struct pmixfab_plane *a = &(*one)->plane, *b = &(*other)->plane;
    if (a->is_default != b->is_default)
        return a->is_default ? -1 : 1;
    if (a->is_default && a->generation != b->generation)
        return a->generation > b->generation ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool planes_list(const struct pnet_published *published, struct rundir_planes *out)
{
    struct pnet_plane *plane;
    uint32_t room = 0;
    DL_COUNT(published->planes, plane, room);
    out->planes = calloc((size_t)room + 1, sizeof(*out->planes));
    out->contents = calloc((size_t)room + 1, sizeof(*out->contents));
    if (out->planes == NULL || out->contents == NULL)
        return false;
    DL_FOREACH(published->planes, plane)
    {
        if (plane->readable)
            out->contents[out->n++] = plane->content;
    }
    qsort(out->contents, out->n, sizeof(*out->contents), planes_cmp);
    for (uint32_t i = 0; i < out->n; i++)
        out->planes[i] = out->contents[i]->fab;
    return true;
}

int rundir_planes_get(struct rundir_snapshots *snapshots, struct rundir_planes *out, struct fab_err *err)
{
    *out = (struct rundir_planes){.of = snapshots};
    pthread_mutex_lock(&snapshots->lock);
    int rc = pnet_published_refresh(&snapshots->published, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (!planes_list(&snapshots->published, out))
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for the planes");
    if (out->n == 0)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: no readable snapshot is there",
                        snapshots->published.rundir);
    return PMIXFAB_OK;
}

void rundir_planes_put(struct rundir_planes *planes)
{
    free(planes->planes);
    free(planes->contents);
    pthread_mutex_unlock(&planes->of->lock);
}

struct pnet_plane *rundir_snapshots_plane(const struct rundir_snapshots *snapshots, const char *name)
{
    return pnet_published_find(&snapshots->published, name);
}

void rundir_snapshots_forget(struct rundir_snapshots *snapshots)
{
    pthread_mutex_lock(&snapshots->lock);
    pnet_published_forget(&snapshots->published);
    pthread_mutex_unlock(&snapshots->lock);
}

struct pnet_content *rundir_planes_pin(const struct rundir_planes *planes, uint32_t i)
{
    pnet_content_pin(planes->contents[i]);
    return planes->contents[i];
}

void rundir_snapshots_unpin(struct rundir_snapshots *snapshots, struct pnet_content *content)
{
    pthread_mutex_lock(&snapshots->lock);
    pnet_content_unpin(content);
    pthread_mutex_unlock(&snapshots->lock);
}

/* ---- news ------------------------------------------------------------------------------------------- */

static void snapshots_know(struct rundir_snapshots *snapshots, const struct pnet_plane *plane)
{
    const struct order_plane known = pnet_plane_order(plane);
    event_order_know(snapshots->order, &known);
}

void rundir_snapshots_know(struct rundir_snapshots *snapshots, const char *name)
{
    pthread_mutex_lock(&snapshots->lock);
    const struct pnet_plane *plane = pnet_published_find(&snapshots->published, name);
    if (plane != NULL && plane->content != NULL)
        snapshots_know(snapshots, plane);
    snapshots->watched = true;
    pthread_mutex_unlock(&snapshots->lock);
}

bool rundir_snapshots_look(struct rundir_snapshots *snapshots)
{
    const struct pnet_plane *plane;
    pthread_mutex_lock(&snapshots->lock);
    pnet_published_refresh(&snapshots->published, NULL);
    DL_FOREACH(snapshots->published.planes, plane)
    {
        if (!snapshots->watched && plane->content != NULL)
            snapshots_know(snapshots, plane);
    }
    snapshots->watched = true;
    if (pnet_published_look(&snapshots->published, snapshots->order, snapshots->wanted, snapshots->cbdata) !=
        PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_ERROR, "%s: out of memory: changes are reported late",
                snapshots->published.rundir);
    const bool waits = event_order_waits(snapshots->order);
    pthread_mutex_unlock(&snapshots->lock);
    return waits;
}

bool rundir_snapshots_next(struct rundir_snapshots *snapshots, struct order_step *step)
{
    pthread_mutex_lock(&snapshots->lock);
    const bool any = event_order_next(snapshots->order, step);
    pthread_mutex_unlock(&snapshots->lock);
    return any;
}

bool rundir_snapshots_changed(struct rundir_snapshots *snapshots)
{
    struct order_step step;
    bool changed = false;
    while (rundir_snapshots_next(snapshots, &step))
        changed |= !step.pending;
    return changed;
}
