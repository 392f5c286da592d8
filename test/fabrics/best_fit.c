#include "test/fabrics/best_fit.h"

#include <stdbool.h>
#include <stdlib.h>

struct fit {
    const struct pmixfab *fab;
    uint32_t pods, leaves; /* leaves of a pod */
    uint32_t *leaf_of;     /* per free host: pod * leaves + leaf */
    uint32_t *left;        /* per leaf: free hosts */
};

static uint32_t fit_leaf(const struct fit *fit, uint32_t host)
{
    const uint32_t *coords;
    uint32_t dims, first, n;
    const char *name;
    if (pmixfab_host(fit->fab, host, &name, &first, &n) != 0 ||
        pmixfab_coords(fit->fab, first, PMIXFAB_LOGICAL, &coords, &dims) != 0)
        abort();
    return coords[0] * fit->leaves + coords[1];
}

/* UINT32_MAX: no pod has so many. */
static uint32_t fit_pod(const struct fit *fit, uint32_t n)
{
    uint32_t best = UINT32_MAX, best_free = UINT32_MAX;
    for (uint32_t pod = 0; pod < fit->pods; pod++) {
        uint32_t in_pod = 0;
        for (uint32_t leaf = 0; leaf < fit->leaves; leaf++)
            in_pod += fit->left[pod * fit->leaves + leaf];
        if (in_pod >= n && in_pod < best_free) {
            best_free = in_pod;
            best = pod;
        }
    }
    return best;
}

/* The next leaf for n hosts that are still wanted; UINT32_MAX: none is left. */
static uint32_t fit_next(const struct fit *fit, uint32_t pod, uint32_t n)
{
    const uint32_t *left = fit->left;
    uint32_t best = UINT32_MAX;
    for (uint32_t l = 0; l < fit->pods * fit->leaves; l++) {
        if (left[l] == 0 || (pod != UINT32_MAX && l / fit->leaves != pod))
            continue;
        const bool enough = left[l] >= n, best_enough = best != UINT32_MAX && left[best] >= n;
        if (best == UINT32_MAX || (enough && (!best_enough || left[l] < left[best])) ||
            (!enough && !best_enough && left[l] > left[best]))
            best = l;
    }
    return best;
}

static int fit_take(struct fit *fit, const uint32_t *from, uint32_t n_from, uint32_t n, uint32_t *hosts)
{
    const uint32_t pod = fit_pod(fit, n);
    for (uint32_t got = 0; got < n;) {
        const uint32_t leaf = fit_next(fit, pod, n - got);
        if (leaf == UINT32_MAX)
            return PMIXFAB_ERR_NOTFOUND;
        for (uint32_t i = 0; i < n_from && got < n; i++)
            if (fit->leaf_of[i] == leaf)
                hosts[got++] = from[i];
        fit->left[leaf] = 0;
    }
    return PMIXFAB_OK;
}

int fabric_best_fit(const struct pmixfab *fab, const uint32_t *from, uint32_t n_from, uint32_t n,
                    uint32_t *hosts)
{
    struct pmixfab_plane plane;
    int rc = pmixfab_plane(fab, &plane);
    struct fit fit = {.fab = fab, .pods = plane.shape[0], .leaves = plane.shape[1]};
    fit.leaf_of = calloc(n_from + (size_t)1, sizeof(*fit.leaf_of));
    fit.left = calloc((size_t)fit.pods * fit.leaves, sizeof(*fit.left));
    if (rc == PMIXFAB_OK && (fit.leaf_of == NULL || fit.left == NULL))
        rc = PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n_from && rc == PMIXFAB_OK; i++)
        fit.left[fit.leaf_of[i] = fit_leaf(&fit, from[i])]++;
    if (rc == PMIXFAB_OK)
        rc = fit_take(&fit, from, n_from, n, hosts);
    free(fit.leaf_of);
    free(fit.left);
    return rc;
}
