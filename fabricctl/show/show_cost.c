/*
 * show_cost.c - the cost between two devices.
 */
#include <string.h>

#include "fabricctl/core/source.h"
#include "fabricctl/core/suggest.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/fabric.h"
#include "fabricctl/show/wanted.h"

/* One side of the question. */
struct side {
    const char *asked;
    struct pmixfab_device device; /* in the plane below */
    size_t plane;
    bool found;
};

/* The first plane in which `what` is. */
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

/* A host may stand in several planes: the first in which both are answers, the default plane before all. */
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

/* Its place is kept, and so are the costs to it, but nothing gets there now. */
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

static void put_cost(struct ctl_table *table, uint16_t cost)
{
    if (cost == PMIXFAB_NO_PATH)
        ctl_put_null(table);
    else
        ctl_put_number(table, cost);
}

/* JSON is one object, not an array of one. */
static enum ctl_exit write_data(const struct ctl *ctl, const char *plane, const struct side *a,
                                const struct side *b, uint16_t cost)
{
    json_t *rows = ctl->format == CTL_JSON ? json_array() : NULL;
    struct ctl_table *table =
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, rows, columns, CTL_COUNT(columns));
    enum ctl_exit status;

    ctl_put_text(table, a->asked);
    ctl_put_text(table, b->asked);
    put_cost(table, cost);
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
    if (status == CTL_DONE) { /* each of them is told */
        const bool from = cost_tell_missing(&a), to = cost_tell_missing(&b);

        status = from || to ? CTL_FAILED : CTL_DONE;
    }
    if (status == CTL_DONE && cost == PMIXFAB_NO_PATH)
        status = CTL_FAILED;
    ctl_view_close(&view);
    return status;
}
