#include "pmix/launch/places.h"

#include <stdlib.h>
#include <string.h>
/* Without memory a name is not found; by default the macros would end the process. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "topo/base/natural.h"
#include "topo/base/search.h"
#include "topo/model/host_name.h"
#include "topo/model/model.h"

static const char *places_host_name(const struct pmixfab *fab, uint32_t host)
{
    const char *name = "";
    uint32_t first, n;
    pmixfab_host(fab, host, &name, &first, &n);
    return name;
}

/* Find the exact name; hosts are in natural order. */
static uint32_t places_exact(const struct pmixfab *fab, uint32_t n_hosts, const char *name)
{
    uint32_t at = FAB_LOWER_BOUND(0, n_hosts, i, fab_natural_cmp(places_host_name(fab, i), name) < 0);
    return at < n_hosts && strcmp(places_host_name(fab, at), name) == 0 ? at : FAB_NONE;
}

/* A plane's hosts by their names up to the first dot. */
struct short_name {
    uint32_t host; /* FAB_NONE: several have this name */
    size_t length;
    UT_hash_handle hh;
};

struct short_names {
    struct short_name *all, *table;
};

static bool short_names_read(const struct pmixfab *fab, uint32_t n_hosts, struct short_names *out)
{
    out->all = calloc(n_hosts, sizeof(*out->all));
    if (out->all == NULL)
        return false;
    for (uint32_t i = 0; i < n_hosts; i++) {
        const char *name = places_host_name(fab, i);
        struct short_name *one = &out->all[i], *same;
        *one = (struct short_name){.host = i, .length = strcspn(name, ".")};
        HASH_FIND(hh, out->table, name, one->length, same);
        if (same != NULL)
            same->host = FAB_NONE;
        else
            HASH_ADD_KEYPTR(hh, out->table, name, one->length, one);
    }
    return true;
}

/* Match a name with and without domain, if no other host could be meant; an ambiguous host gets no match. */
static uint32_t places_by_short(const struct pmixfab *fab, const struct short_names *names, const char *name)
{
    struct short_name *found;
    HASH_FIND(hh, names->table, name, strcspn(name, "."), found);
    if (found == NULL || found->host == FAB_NONE)
        return FAB_NONE;
    return fab_same_host(places_host_name(fab, found->host), name) ? found->host : FAB_NONE;
}

/* Only a job with hosts that are not in the plane under their exact names needs a table of all names. */
static pmix_status_t places_find_in(struct launch_places *places, uint32_t p)
{
    const struct fab_launch_job *job = places->job;
    const struct pmixfab *fab = job->planes[p];
    struct short_names names = {NULL, NULL};
    struct pmixfab_plane plane;
    pmix_status_t rc = PMIX_SUCCESS;
    if (pmixfab_plane(fab, &plane) != PMIXFAB_OK)
        return PMIX_ERR_BAD_PARAM;
    for (uint32_t h = 0; rc == PMIX_SUCCESS && h < job->n_hosts; h++) {
        uint32_t *at = &places->host[(size_t)h * job->n_planes + p];
        *at = places_exact(fab, plane.n_hosts, job->hosts[h]);
        if (*at == FAB_NONE && names.all == NULL && plane.n_hosts > 0 &&
            !short_names_read(fab, plane.n_hosts, &names))
            rc = PMIX_ERR_NOMEM;
        else if (*at == FAB_NONE)
            *at = places_by_short(fab, &names, job->hosts[h]);
        if (*at != FAB_NONE && places->plane == FAB_NONE)
            places->plane = p;
    }
    HASH_CLEAR(hh, names.table);
    free(names.all);
    return rc;
}

/* Sort ranks in the order of their hosts, and within each host by rank. */
static void places_sort_ranks(struct launch_places *places)
{
    const struct fab_launch_job *job = places->job;
    uint32_t *first = places->first;
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (job->host_of[r] < job->n_hosts)
            first[job->host_of[r] + 1]++;
    for (uint32_t h = 0; h < job->n_hosts; h++)
        first[h + 1] += first[h];
    for (uint32_t r = 0; r < job->n_ranks; r++)
        if (job->host_of[r] < job->n_hosts)
            places->ranks[first[job->host_of[r]]++] = r;
    /* each is now the beginning of the next host */
    memmove(first + 1, first, job->n_hosts * sizeof(*first));
    first[0] = 0;
}

pmix_status_t launch_places_find(const struct fab_launch_job *job, struct launch_places *out)
{
    pmix_status_t rc = PMIX_SUCCESS;
    *out = (struct launch_places){.job = job, .plane = FAB_NONE};
    out->host = calloc((size_t)job->n_hosts * job->n_planes + 1, sizeof(*out->host));
    out->first = calloc((size_t)job->n_hosts + 1, sizeof(*out->first));
    out->ranks = calloc((size_t)job->n_ranks + 1, sizeof(*out->ranks));
    if (out->host == NULL || out->first == NULL || out->ranks == NULL)
        return PMIX_ERR_NOMEM;
    places_sort_ranks(out);
    for (uint32_t p = 0; rc == PMIX_SUCCESS && p < job->n_planes; p++)
        rc = places_find_in(out, p);
    for (uint32_t h = 0; rc == PMIX_SUCCESS && h < job->n_hosts; h++)
        out->devices += launch_device_count(out, h);
    return rc;
}

void launch_places_free(struct launch_places *places)
{
    free(places->host);
    free(places->first);
    free(places->ranks);
}

/* ---- devices ---------------------------------------------------------------------------------------- */

bool launch_device_next(const struct launch_places *places, struct launch_device *at)
{
    const struct fab_launch_job *job = places->job;
    if (at->left_ > 0) {
        at->left_--;
        at->index++;
        return true;
    }
    while (at->plane_ < job->n_planes) {
        uint32_t p = at->plane_++, host = places->host[(size_t)at->host * job->n_planes + p], n = 0;
        const char *name;
        if (host == FAB_NONE || pmixfab_host(job->planes[p], host, &name, &at->index, &n) != PMIXFAB_OK ||
            n == 0)
            continue;
        at->fab = job->planes[p];
        at->left_ = n - 1;
        return true;
    }
    return false;
}

uint32_t launch_device_count(const struct launch_places *places, uint32_t host)
{
    struct launch_device at = {.host = host};
    uint32_t n = 0;
    while (launch_device_next(places, &at))
        n++;
    return n;
}
