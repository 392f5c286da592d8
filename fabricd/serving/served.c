#include "fabricd/serving/served.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/snapshot/snapshot.h"

struct served {
    pthread_mutex_t lock;
    struct served_set *current;
    atomic_bool stale;
};

struct served *served_new(void)
{
    struct served *served = calloc(1, sizeof(*served));
    if (served != NULL)
        pthread_mutex_init(&served->lock, NULL);
    return served;
}

void served_free(struct served *served)
{
    if (served == NULL)
        return;
    served_set_put(served->current);
    pthread_mutex_destroy(&served->lock);
    free(served);
}

int served_plane_opened(void *bytes, size_t size, struct pmixfab *fab, const char *rundir,
                        struct served_plane **out, struct fab_err *err)
{
    *out = NULL;
    struct served_plane *plane = calloc(1, sizeof(*plane));
    if (plane == NULL) {
        pmixfab_close(fab);
        free(bytes);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    atomic_init(&plane->refs, 1);
    plane->bytes = bytes;
    plane->size = size;
    plane->fab = fab;
    int rc = pmixfab_plane(plane->fab, &plane->info);
    if (rc == PMIXFAB_OK && asprintf(&plane->path, "%s/%s.snap", rundir, plane->info.name) < 0) {
        plane->path = NULL;
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    if (rc != PMIXFAB_OK) {
        served_plane_put(plane);
        return rc;
    }
    *out = plane;
    return PMIXFAB_OK;
}

int served_plane_lent(struct pmixfab *fab, const char *path, void (*release)(void *cbdata), void *cbdata,
                      struct served_plane **out, struct fab_err *err)
{
    struct served_plane *plane = *out = calloc(1, sizeof(*plane));
    char *copy = strdup(path);
    if (plane == NULL || copy == NULL || pmixfab_plane(fab, &plane->info) != PMIXFAB_OK) {
        free(copy);
        free(plane);
        *out = NULL;
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    atomic_init(&plane->refs, 1);
    plane->fab = fab;
    plane->path = copy;
    plane->release = release;
    plane->cbdata = cbdata;
    return PMIXFAB_OK;
}

int served_plane_new(void *bytes, size_t size, const char *rundir, struct served_plane **out,
                     struct fab_err *err)
{
    struct pmixfab *fab;
    *out = NULL;
    int rc = fab_snapshot_borrow(bytes, size, &fab, err);
    if (rc == PMIXFAB_OK)
        return served_plane_opened(bytes, size, fab, rundir, out, err);
    free(bytes);
    return rc;
}

struct served_plane *served_plane_ref(struct served_plane *plane)
{
    atomic_fetch_add(&plane->refs, 1);
    return plane;
}

void served_plane_put(struct served_plane *plane)
{
    if (plane == NULL || atomic_fetch_sub(&plane->refs, 1) != 1)
        return;
    if (plane->release != NULL)
        plane->release(plane->cbdata);
    else
        pmixfab_close(plane->fab);
    free(plane->bytes);
    free(plane->path);
    free(plane);
}

static int by_index(const void *a, const void *b)
{
    const struct served_plane *const *x = a, *const *y = b;
    return ((*x)->info.index > (*y)->info.index) - ((*x)->info.index < (*y)->info.index);
}

struct served_set *served_set_new(struct served_plane **planes, uint32_t n, uint64_t generation,
                                  int64_t published)
{
    struct served_set *set = malloc(sizeof(*set) + n * sizeof(set->planes[0]));
    if (set == NULL)
        return NULL;
    atomic_init(&set->refs, 1);
    set->generation = generation;
    set->published = published;
    set->n = n;
    for (uint32_t i = 0; i < n; i++)
        set->planes[i] = planes[i];
    qsort(set->planes, n, sizeof(set->planes[0]), by_index);
    return set;
}

void served_set_put(struct served_set *set)
{
    if (set == NULL || atomic_fetch_sub(&set->refs, 1) != 1)
        return;
    for (uint32_t i = 0; i < set->n; i++)
        served_plane_put(set->planes[i]);
    free(set);
}

struct served_set *served_get(struct served *served)
{
    pthread_mutex_lock(&served->lock);
    struct served_set *set = served->current;
    if (set != NULL)
        atomic_fetch_add(&set->refs, 1);
    pthread_mutex_unlock(&served->lock);
    return set;
}

void served_swap(struct served *served, struct served_set *set)
{
    pthread_mutex_lock(&served->lock);
    struct served_set *old = served->current;
    served->current = set;
    pthread_mutex_unlock(&served->lock);
    served_set_put(old);
}

void served_set_stale(struct served *served, bool stale)
{
    atomic_store(&served->stale, stale);
}

bool served_is_stale(const struct served *served)
{
    return atomic_load(&served->stale);
}

const struct served_plane *served_find(const struct served_set *set, uint32_t index)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (set->planes[i]->info.index == index)
            return set->planes[i];
    return NULL;
}
