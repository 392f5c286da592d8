#include "mca/pmdl/snapshots.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct pmdl_snapshots {
    pthread_mutex_t lock;
    struct pnet_published published;
};

int pmdl_snapshots_new(const char *rundir, struct pmdl_snapshots **out)
{
    *out = NULL;
    if (rundir == NULL || rundir[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    struct pmdl_snapshots *snapshots = calloc(1, sizeof(*snapshots));
    if (snapshots == NULL || (snapshots->published.rundir = strdup(rundir)) == NULL) {
        free(snapshots);
        return PMIXFAB_ERR_NOMEM;
    }
    snapshots->published.trusted_only = true;
    pthread_mutex_init(&snapshots->lock, NULL);
    *out = snapshots;
    return PMIXFAB_OK;
}

void pmdl_snapshots_free(struct pmdl_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    pnet_published_forget(&snapshots->published);
    free(snapshots->published.rundir);
    pthread_mutex_destroy(&snapshots->lock);
    free(snapshots);
}

static int planes_cmp(const void *left, const void *right)
{
    struct pmixfab_plane a = {0}, b = {0};
    pmixfab_plane(*(const struct pmixfab *const *)left, &a);
    pmixfab_plane(*(const struct pmixfab *const *)right, &b);
    if (a.is_default != b.is_default)
        return a.is_default ? -1 : 1;
    if (a.is_default && a.generation != b.generation)
        return a.generation > b.generation ? -1 : 1;
    return a.index < b.index ? -1 : a.index > b.index;
}

void pmdl_planes_get(struct pmdl_snapshots *snapshots, struct pmdl_planes *out, struct fab_err *err)
{
    struct pnet_plane *plane;
    uint32_t n = 0;
    *out = (struct pmdl_planes){.of = snapshots};
    pthread_mutex_lock(&snapshots->lock);
    if (pnet_published_refresh(&snapshots->published, err) != PMIXFAB_OK)
        return;
    DL_COUNT(snapshots->published.planes, plane, n);
    out->planes = calloc((size_t)n + 1, sizeof(*out->planes));
    if (out->planes == NULL) {
        fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for %u planes", n);
        return;
    }
    DL_FOREACH(snapshots->published.planes, plane)
    {
        if (plane->readable)
            out->planes[out->n++] = plane->content->fab;
    }
    qsort(out->planes, out->n, sizeof(*out->planes), planes_cmp);
    if (out->n == 0)
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: no readable snapshot is there", snapshots->published.rundir);
}

void pmdl_planes_put(struct pmdl_planes *planes)
{
    free(planes->planes);
    pthread_mutex_unlock(&planes->of->lock);
}
