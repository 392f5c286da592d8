#include "pmix/rundir/snapshots.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct rundir_snapshots {
    pthread_mutex_t lock;
    struct pnet_published published;
    struct event_order *order;
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

/* ---- planes ----------------------------------------------------------------------------------------- */

static int planes_cmp(const void *left, const void *right)
{
    const struct pnet_plane *const *one = left, *const *other = right;
    const struct pmixfab_plane *a = &(*one)->content->plane, *b = &(*other)->content->plane;
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
    struct pnet_plane **sorted = calloc((size_t)room + 1, sizeof(struct pnet_plane *));
    out->planes = calloc((size_t)room + 1, sizeof(*out->planes));
    out->paths = calloc((size_t)room + 1, sizeof(*out->paths));
    if (sorted != NULL && out->planes != NULL && out->paths != NULL) {
        DL_FOREACH(published->planes, plane)
        {
            if (plane->readable)
                sorted[out->n++] = plane;
        }
        qsort(sorted, out->n, sizeof(struct pnet_plane *), planes_cmp);
        for (uint32_t i = 0; i < out->n; i++) {
            out->planes[i] = sorted[i]->content->fab;
            out->paths[i] = sorted[i]->content->path;
        }
    }
    bool listed = sorted != NULL && out->planes != NULL && out->paths != NULL;
    free(sorted);
    return listed;
}

void rundir_planes_get(struct rundir_snapshots *snapshots, struct rundir_planes *out, struct fab_err *err)
{
    *out = (struct rundir_planes){.of = snapshots};
    pthread_mutex_lock(&snapshots->lock);
    if (pnet_published_refresh(&snapshots->published, err) != PMIXFAB_OK)
        return;
    if (!planes_list(&snapshots->published, out))
        fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for the planes");
    else if (out->n == 0)
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: no readable snapshot is there", snapshots->published.rundir);
}

void rundir_planes_put(struct rundir_planes *planes)
{
    free(planes->planes);
    free(planes->paths);
    pthread_mutex_unlock(&planes->of->lock);
}

struct pnet_content *rundir_planes_pin(const struct rundir_planes *planes, uint32_t i)
{
    struct pnet_plane *plane;
    DL_FOREACH(planes->of->published.planes, plane)
    {
        if (plane->content != NULL && plane->content->fab == planes->planes[i])
            break;
    }
    if (plane == NULL)
        return NULL;
    pnet_content_pin(plane->content);
    return plane->content;
}

void rundir_snapshots_unpin(struct rundir_snapshots *snapshots, struct pnet_content *content)
{
    pthread_mutex_lock(&snapshots->lock);
    pnet_content_unpin(content);
    pthread_mutex_unlock(&snapshots->lock);
}

/* ---- news ------------------------------------------------------------------------------------------- */

bool rundir_snapshots_look(struct rundir_snapshots *snapshots)
{
    const struct pnet_plane *plane;
    pthread_mutex_lock(&snapshots->lock);
    pnet_published_refresh(&snapshots->published, NULL);
    DL_FOREACH(snapshots->published.planes, plane)
    {
        if (!snapshots->watched && plane->content != NULL) {
            const struct order_plane known = pnet_plane_order(plane);
            event_order_know(snapshots->order, &known);
        }
    }
    snapshots->watched = true;
    (void)pnet_published_look(&snapshots->published, snapshots->order, NULL, NULL);
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
