/* show_cost.c - the cost between two devices, and the device for each process of a host. */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/show/show.h"

/* ---- the cost between two devices ---- */

/* One of the two devices. */
struct side {
    const char *asked;
    struct pmixfab_device device; /* in the plane below */
    size_t plane;
    bool found;
};

/* Find the first plane that contains the device. */
static void find_anywhere(const struct ctl_view *view, struct side *side)
{
    uint32_t index;
    for (size_t i = 0; i < view->n && !side->found; i++)
        if (pmixfab_find(view->planes[i], side->asked, &index) == 0 &&
            pmixfab_device(view->planes[i], index, &side->device) == 0) {
            side->plane = i;
            side->found = true;
        }
}

/*
 * Find the first plane in which both are found, the default plane before all: a host may be in several
 * planes.
 */
static bool find_together(const struct ctl_view *view, struct side *a, struct side *b)
{
    uint32_t ia, ib;
    for (size_t i = 0; i < view->n; i++)
        if (pmixfab_find(view->planes[i], a->asked, &ia) == 0 &&
            pmixfab_find(view->planes[i], b->asked, &ib) == 0 &&
            pmixfab_device(view->planes[i], ia, &a->device) == 0 &&
            pmixfab_device(view->planes[i], ib, &b->device) == 0) {
            a->plane = b->plane = i;
            a->found = b->found = true;
            return true;
        }
    find_anywhere(view, a);
    find_anywhere(view, b);
    return false;
}

static enum ctl_exit cost_unknown_device(const struct ctl *ctl, const char *what)
{
    char hint[CTL_SUGGESTION];
    return ctl_error(
        "no device %s: %s%s: name a host, host:device or a device id; `fabricctl devices` lists them%s", what,
        ctl->plane != NULL ? "plane " : "any plane of ",
        ctl->plane != NULL ? ctl->plane : ctl_source_location(ctl),
        ctl_suggest(ctl, what, ctl_names_of("cost"), hint));
}

/* Return whether the device is missing: its place and its costs are kept, but nothing reaches it now. */
static bool cost_end_is_missing(const struct side *side)
{
    return side->found && (side->device.seen & PMIXFAB_SEEN_MISSING) != 0;
}

static bool cost_tell_missing(const struct side *side)
{
    const bool missing = cost_end_is_missing(side);
    char label[CTL_LABEL_SIZE];
    if (missing) {
        ctl_device_label(&side->device, true, label, sizeof label);
        ctl_error("%s is missing: no sweep sees it; its place and its costs are kept: see fabricctl check",
                  label);
    }
    return missing;
}

static const struct ctl_column columns[] = {
    {"a", NULL, false},         {"b", NULL, false},         {"cost", NULL, true},    {"plane", NULL, false},
    {"a_index", NULL, true},    {"a_id", NULL, false},      {"b_index", NULL, true}, {"b_id", NULL, false},
    {"a_missing", NULL, false}, {"b_missing", NULL, false},
};

/* Write the data; JSON is one object, not an array of one. */
static enum ctl_exit write_data(const struct ctl *ctl, const char *plane, const struct side *a,
                                const struct side *b, uint16_t cost)
{
    json_t *rows = ctl->format == CTL_JSON ? json_array() : NULL;
    struct ctl_table *table =
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, rows, columns, CTL_COUNT(columns));
    enum ctl_exit status;
    ctl_put_text(table, a->asked);
    ctl_put_text(table, b->asked);
    ctl_put_index(table, cost == PMIXFAB_NO_PATH ? UINT32_MAX : cost);
    ctl_put_text(table, plane);
    ctl_put_number(table, a->device.index);
    ctl_put_text(table, a->device.id);
    ctl_put_number(table, b->device.index);
    ctl_put_text(table, b->device.id);
    ctl_put_bool(table, cost_end_is_missing(a));
    ctl_put_bool(table, cost_end_is_missing(b));
    ctl_table_row(table);
    status = ctl_table_close(table);
    if (status == CTL_DONE && ctl->format == CTL_JSON)
        status = ctl_json_print(stdout, json_incref(json_array_get(rows, 0)));
    json_decref(rows);
    return status;
}

static void cost_write_text(const char *plane, const struct side *a, const struct side *b, uint16_t cost)
{
    char la[CTL_LABEL_SIZE], lb[CTL_LABEL_SIZE];
    ctl_device_label(&a->device, true, la, sizeof la);
    ctl_device_label(&b->device, true, lb, sizeof lb);
    if (cost != PMIXFAB_NO_PATH)
        printf("%u  %s - %s, plane %s\n", cost, la, lb, plane);
    else if (plane != NULL)
        printf("no path  %s - %s, plane %s\n", la, lb, plane);
    else
        printf("no path  %s - %s, which are in different planes\n", la, lb);
}

enum ctl_exit ctl_cost(const struct ctl *ctl)
{
    struct side a = {.asked = ctl->args[0]}, b = {.asked = ctl->args[1]};
    struct pmixfab_plane plane = {.name = NULL};
    uint16_t cost = PMIXFAB_NO_PATH;
    struct ctl_view view;
    enum ctl_exit status = ctl_view_all(ctl, &view);
    if (status != CTL_DONE)
        return status;
    if (find_together(&view, &a, &b) &&
        (pmixfab_plane(view.planes[a.plane], &plane) != 0 ||
         pmixfab_cost(view.planes[a.plane], a.device.index, b.device.index, &cost) != 0))
        status = ctl_error("no answer: cost %s %s: the snapshot contradicts itself", a.asked, b.asked);
    else if (!a.found || !b.found)
        status = cost_unknown_device(ctl, a.found ? b.asked : a.asked);
    else if (ctl->format == CTL_TEXT)
        cost_write_text(plane.name, &a, &b, cost);
    else
        status = write_data(ctl, plane.name, &a, &b, cost);
    if (status == CTL_DONE) { /* each of them gets a message */
        const bool from = cost_tell_missing(&a), to = cost_tell_missing(&b);
        status = from || to ? CTL_FAILED : CTL_DONE;
    }
    if (status == CTL_DONE && cost == PMIXFAB_NO_PATH)
        status = CTL_FAILED;
    ctl_view_close(&view);
    return status;
}

/* ---- the device for each process of a host ---- */

#define MAX_RANKS 65536

/* The request. */
struct where {
    const char *host; /* its full name */
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    uint32_t host_index, n_devices;
    size_t n_ranks; /* 0: one for each device of the host */
    char *const *cpus;
    struct pmixfab_nearest *nearest;
};

static const struct ctl_column where_columns[] = {
    {"rank", "RANK", true},      {"cpus", "CPUS", false}, {"host", NULL, false},
    {"plane", "PLANE", false},   {"index", NULL, true},   {"id", NULL, false},
    {"device", "DEVICE", false}, {"port", "PORT", true},  {"distance", "DISTANCE", true},
    {"equal", NULL, true},       {"why", "WHY", false},
};

/* Read "HOST" or "HOST:N": names of hosts contain no colon. The caller frees *name with free(). */
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

/* Find the first plane that contains the host. */
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
    ctl_put_index(table, any ? device.index : UINT32_MAX);
    ctl_put_text(table, any ? device.id : NULL);
    ctl_put_text(table, device.name);
    ctl_put_index(table, any ? device.port : UINT32_MAX);
    ctl_put_index(table, any && nearest->distance != 0 ? nearest->distance : UINT32_MAX);
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
            status = ctl_usage(
                "not a list of processors: %s: give them as taskset(1) does, for example 0-11,24-35",
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
