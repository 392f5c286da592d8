#include "pmix/rundir/snapshots.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct rundir_snapshots {
    pthread_mutex_t lock;
    struct pnet_published published;
    bool watched; /* what there was at the start is no news */
};

int rundir_snapshots_new(const char *rundir, struct rundir_snapshots **out)
{
    *out = NULL;
    if (rundir == NULL || rundir[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    struct rundir_snapshots *snapshots = calloc(1, sizeof(*snapshots));
    if (snapshots == NULL || (snapshots->published.rundir = strdup(rundir)) == NULL) {
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

static bool plane_news(struct pnet_plane *plane, bool first, struct rundir_change *out)
{
    if (plane->content == NULL || (!plane->readable && !plane->gone))
        return false;
    const struct pmixfab_plane *now = &plane->content->plane;
    if (plane->told_generation == now->generation && plane->told_published == now->published &&
        plane->told_gone == plane->gone)
        return false;
    plane->told_generation = now->generation;
    plane->told_published = now->published;
    plane->told_gone = plane->gone;
    *out = (struct rundir_change){.index = now->index, .generation = now->generation};
    memcpy(out->name, plane->name, sizeof(out->name));
    return !first;
}

void rundir_snapshots_news(struct rundir_snapshots *snapshots, struct rundir_change **changes, size_t *n)
{
    struct pnet_plane *plane;
    size_t room = 0;
    *n = 0;
    pthread_mutex_lock(&snapshots->lock);
    pnet_published_refresh(&snapshots->published, NULL);
    DL_COUNT(snapshots->published.planes, plane, room);
    *changes = calloc(room + 1, sizeof(**changes));
    DL_FOREACH(snapshots->published.planes, plane)
    {
        if (*changes != NULL && plane_news(plane, !snapshots->watched, &(*changes)[*n]))
            ++*n;
    }
    snapshots->watched = true;
    pthread_mutex_unlock(&snapshots->lock);
    if (*n == 0) {
        free(*changes);
        *changes = NULL;
    }
}
