/* order.c - hosts in an order in which neighbours are near. */
#include <stdlib.h>
#include <string.h>

#include "place/classes.h"
#include "topo/base/order.h"

struct order {
    const struct pmixfab *fab;
    struct fab_classes classes;
    uint32_t *walk, *rows; /* orders of the classes */
};

/* Always on to the nearest that is left: in a tree that leaves no part before all of it is there. Of equally
 * near ones it is one of the same unit, then the first. */
static int order_walk(struct order *o)
{
    const struct fab_classes *classes = &o->classes;
    uint32_t *near = malloc((o->fab->costs.n_edges + (size_t)1) * sizeof(*near));
    uint16_t *row = malloc((classes->n + (size_t)1) * sizeof(*row));
    bool *done = calloc(classes->n + (size_t)1, sizeof(*done));

    for (uint32_t i = 1, at = 0; i < classes->n && near != NULL && row != NULL && done != NULL; i++) {
        uint32_t best = FAB_NONE;
        done[at] = true;
        fab_class_row(o->fab, classes, at, near, row);
        for (uint32_t c = 0; c < classes->n; c++) {
            if (done[c] || (best != FAB_NONE && row[c] > row[best]))
                continue;
            if (best == FAB_NONE || row[c] < row[best] ||
                (classes->units[best] != classes->units[at] && classes->units[c] == classes->units[at]))
                best = c;
        }
        o->walk[i] = at = best;
    }
    const int rc = near != NULL && row != NULL && done != NULL ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
    free(near);
    free(row);
    free(done);
    return rc;
}

static const uint32_t *order_coords(const struct order *o, uint32_t c)
{
    const uint32_t host = o->classes.hosts[o->classes.classes[c].first_host];
    return o->fab->logical + (size_t)fab_reader_first_used(o->fab, host) * o->fab->meta->dims;
}

/* Row by row; each second one backwards. */
static int order_row_cmp(const void *a, const void *b, void *arg)
{
    const struct order *o = arg;
    const uint32_t *x = order_coords(o, *(const uint32_t *)a), *y = order_coords(o, *(const uint32_t *)b);
    uint32_t before = 0;

    for (uint32_t i = 0; i < o->fab->meta->dims; before += x[i++])
        if (x[i] != y[i])
            return before % 2 == 0 ? FAB_ORDER(x[i], y[i]) : FAB_ORDER(y[i], x[i]);
    return FAB_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Once around all classes. */
static uint64_t order_cost(const struct order *o, const uint32_t *list)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i < o->classes.n; i++)
        cost += fab_class_cost(o->fab, &o->classes, list[i], list[(i + 1) % o->classes.n]);
    return cost;
}

static int order_classes(struct order *o, const uint32_t **list)
{
    const char *kind = fab_reader_string(o->fab, o->fab->meta->kind);

    o->walk = calloc(o->classes.n + (size_t)1, sizeof(*o->walk));
    o->rows = malloc((o->classes.n + (size_t)1) * sizeof(*o->rows));
    if (o->walk == NULL || o->rows == NULL)
        return PMIXFAB_ERR_NOMEM;
    *list = o->walk;
    const int rc = order_walk(o);
    if (rc != PMIXFAB_OK || (strncmp(kind, "torus", 5) != 0 && strncmp(kind, "mesh", 4) != 0))
        return rc;
    for (uint32_t c = 0; c < o->classes.n; c++)
        o->rows[c] = c;
    qsort_r(o->rows, o->classes.n, sizeof(*o->rows), order_row_cmp, o);
    if (order_cost(o, o->rows) < order_cost(o, o->walk))
        *list = o->rows;
    return PMIXFAB_OK;
}

int pmixfab_order(const struct pmixfab *fab, uint32_t *hosts, size_t n)
{
    struct order o = {.fab = fab};
    const uint32_t *list = NULL;

    if (fab == NULL || hosts == NULL || n == 0)
        return PMIXFAB_ERR_INVAL;
    int rc = fab_classes_find(fab, hosts, n, FAB_CLASSES_UNITS, &o.classes);
    if (rc == PMIXFAB_OK && o.classes.n_hosts != n)
        rc = PMIXFAB_ERR_INVAL; /* one is there twice */
    if (rc == PMIXFAB_OK)
        rc = order_classes(&o, &list);
    for (uint32_t i = 0, at = 0; rc == PMIXFAB_OK && i < o.classes.n; i++) {
        const struct fab_class *class = &o.classes.classes[list[i]];
        memcpy(hosts + at, o.classes.hosts + class->first_host, class->n_hosts * sizeof(*hosts));
        at += class->n_hosts;
    }
    free(o.walk);
    free(o.rows);
    fab_classes_destroy(&o.classes);
    return rc;
}
