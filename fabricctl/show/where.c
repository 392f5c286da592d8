/*
 * where.c - the device that each process of a host is to use.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/show/fabric.h"
#include "fabricctl/show/list.h"

#define MAX_RANKS 65536

/* What is asked for. */
struct where {
    const char *host; /* as it is called */
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    uint32_t host_index, n_devices;
    size_t n_ranks; /* 0: as many as the host has devices */
    char *const *cpus;
    struct pmixfab_nearest *nearest;
};

static const struct ctl_column where_columns[] = {
    {"rank", "RANK", true},      {"cpus", "CPUS", false}, {"host", NULL, false},
    {"plane", "PLANE", false},   {"index", NULL, true},   {"id", NULL, false},
    {"device", "DEVICE", false}, {"port", "PORT", true},  {"distance", "DISTANCE", true},
    {"equal", NULL, true},       {"why", "WHY", false},
};

/* "HOST" or "HOST:N": names of hosts have no colon. Free *name with free(). */
static enum ctl_exit where_read(const struct ctl *ctl, char **name, size_t *n_ranks)
{
    const char *asked = ctl->args[0], *colon = strchr(asked, ':');
    const size_t n_cpus = (size_t)ctl->n_args - 1;
    char *end = NULL;

    *name = NULL;
    *n_ranks = n_cpus;
    if (colon != NULL) {
        *n_ranks = strtoul(colon + 1, &end, 10);
        if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || *n_ranks == 0 || *n_ranks > MAX_RANKS)
            return ctl_usage("not a number of ranks: %s: give HOST, or HOST:N with N from 1 to %d", asked,
                             MAX_RANKS);
        if (n_cpus > 0 && n_cpus != *n_ranks)
            return ctl_usage("%zu rank%s bound, not %zu: give the processors of each, or of none", n_cpus,
                             n_cpus == 1 ? " is" : "s are", *n_ranks);
    }
    *name = colon != NULL ? strndup(asked, (size_t)(colon - asked)) : strdup(asked);
    return *name != NULL ? CTL_DONE : ctl_nomem();
}

/* The first plane that the host is in. */
static bool where_find(struct where *where, const struct ctl_view *view)
{
    const char *name;
    uint32_t first;

    for (size_t i = 0; i < view->n; i++) {
        where->fab = view->planes[i];
        if (pmixfab_find_host(where->fab, where->host, &where->host_index) == 0)
            return pmixfab_host(where->fab, where->host_index, &name, &first, &where->n_devices) == 0 &&
                   pmixfab_plane(where->fab, &where->plane) == 0;
    }
    return false;
}

static bool where_row(struct ctl_table *table, const struct where *where, size_t rank)
{
    const struct pmixfab_nearest *nearest = &where->nearest[rank];
    struct pmixfab_device device = {.name = NULL};
    const bool any = pmixfab_device(where->fab, nearest->device, &device) == 0;
    char why[256];

    pmixfab_nearest_text(where->fab, nearest, why, sizeof why);
    ctl_put_number(table, (int64_t)rank);
    ctl_put_text(table, where->cpus != NULL ? where->cpus[rank] : NULL);
    ctl_put_text(table, where->host);
    ctl_put_text(table, where->plane.name);
    if (any)
        ctl_put_number(table, device.index);
    else
        ctl_put_null(table);
    ctl_put_text(table, any ? device.id : NULL);
    ctl_put_text(table, device.name);
    if (any)
        ctl_put_number(table, device.port);
    else
        ctl_put_null(table);
    if (any && nearest->distance != 0)
        ctl_put_number(table, nearest->distance);
    else
        ctl_put_null(table);
    ctl_put_number(table, nearest->equal);
    ctl_put_text(table, why);
    return ctl_table_row(table);
}

static enum ctl_exit where_show(const struct ctl *ctl, const struct where *where)
{
    struct ctl_table *table =
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, NULL, where_columns, CTL_COUNT(where_columns));
    enum ctl_exit status;

    for (size_t r = 0; table != NULL && r < where->n_ranks && where_row(table, where, r); r++)
        continue;
    status = ctl_table_close(table);
    return status == CTL_DONE && where->nearest[0].device == UINT32_MAX ? CTL_FAILED : status;
}

static enum ctl_exit where_answer(const struct ctl *ctl, struct where *where)
{
    enum ctl_exit status = CTL_DONE;

    where->cpus = ctl->n_args > 1 ? ctl->args + 1 : NULL;
    if (where->n_ranks == 0)
        where->n_ranks = where->n_devices;
    where->nearest = calloc(where->n_ranks, sizeof *where->nearest);
    if (where->nearest == NULL)
        return ctl_nomem();
    if (pmixfab_nearest(where->fab, where->host_index, 0, (const char *const *)where->cpus, where->n_ranks,
                        where->nearest) != 0)
        status = ctl_nomem();
    for (size_t r = 0; status == CTL_DONE && where->cpus != NULL && r < where->n_ranks; r++)
        if (where->nearest[r].distance == 0)
            status = ctl_usage("not a list of processors: %s: give them as taskset(1) does, as 0-11,24-35",
                               where->cpus[r]);
    if (status == CTL_DONE)
        status = where_show(ctl, where);
    free(where->nearest);
    return status;
}

enum ctl_exit ctl_where(const struct ctl *ctl)
{
    struct where where = {.nearest = NULL};
    struct ctl_view view;
    char *name;
    enum ctl_exit status = where_read(ctl, &name, &where.n_ranks);

    if (status != CTL_DONE)
        return status;
    status = ctl_view_all(ctl, &view);
    if (status == CTL_DONE) {
        where.host = ctl_find_host(ctl, &view, name);
        if (where.host == NULL)
            status = CTL_FAILED;
        else if (where_find(&where, &view))
            status = where_answer(ctl, &where);
        else
            status = ctl_error("no answer: where %s: the snapshot contradicts itself", name);
        ctl_view_close(&view);
    }
    free(name);
    return status;
}
