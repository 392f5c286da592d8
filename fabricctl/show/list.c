/*
 * list.c - lists of what planes hold, and of the planes themselves.
 */
#include "fabricctl/show/list.h"
#include "fabricctl/core/suggest.h"
#include "fabricctl/show/fabric.h"
#include "fabricctl/show/labels.h"
#include "fabricctl/show/wanted.h"

#include <string.h>

enum ctl_exit ctl_list_view(struct ctl_table *table, const struct ctl *ctl, const struct ctl_view *view,
                            ctl_list_fn list)
{
    struct pmixfab_plane plane = {.name = "(unreadable)"};
    enum ctl_exit status;
    bool complete = true;

    if (ctl->format == CTL_TEXT && ctl->ports->shared == NULL) /* programs have the GUIDs beside the names */
        ctl->ports->shared = ctl_shared_names(view);
    for (size_t i = 0; table != NULL && complete && i < view->n; i++)
        complete = pmixfab_plane(view->planes[i], &plane) == 0 && list(table, ctl, view->planes[i], &plane);
    status = ctl_table_close(table);
    if (status == CTL_DONE && !complete && !ferror(stdout))
        status = ctl_error(
            "the answer is incomplete: plane %s: its snapshot contradicts itself, or memory ran out",
            plane.name);
    return status;
}

enum ctl_exit ctl_list_all(const struct ctl *ctl, const struct ctl_column *columns, size_t n_columns,
                           ctl_list_fn list)
{
    struct ctl_view view;
    enum ctl_exit status = ctl_view_all(ctl, &view);

    if (status != CTL_DONE)
        return status;
    status = ctl_list_view(ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, NULL, columns, n_columns), ctl,
                           &view, list);
    ctl_view_close(&view);
    return status;
}

enum ctl_exit ctl_list_wanted(const struct ctl *ctl, const char *kind, const char *command,
                              const struct ctl_column *columns, size_t n_columns, ctl_list_fn list)
{
    enum ctl_exit status = ctl_list_all(ctl, columns, n_columns, list);

    return status == CTL_DONE ? ctl_wanted_met(ctl, kind, command) : status;
}

const char *ctl_find_host(const struct ctl *ctl, const struct ctl_view *view, const char *asked)
{
    const char *found = NULL, *name;
    uint32_t first, n;
    bool several = false;
    char hint[CTL_SUGGESTION];

    for (size_t i = 0; i < view->n; i++) {
        for (uint32_t h = 0; pmixfab_host(view->planes[i], h, &name, &first, &n) == 0; h++) {
            if (strcmp(name, asked) == 0)
                return name;
            if (!ctl_same_host(name, asked))
                continue;
            several |= found != NULL && strcmp(found, name) != 0;
            found = name;
        }
    }
    if (several)
        ctl_error("%s can be several hosts: give the whole name, as `fabricctl groups` shows it", asked);
    else if (found == NULL)
        ctl_error("no host %s: %s: `fabricctl groups` shows the hosts that there are%s", asked,
                  ctl_source_location(ctl), ctl_suggest(ctl, asked, CTL_HOSTS, hint));
    return several ? NULL : found;
}

/* ---- planes ---- */

static const struct ctl_column plane_columns[] = {
    {"index", "INDEX", true},     {"name", "PLANE", false},           {"default", "DEFAULT", false},
    {"vendor", "VENDOR", false},  {"identifier", NULL, false},        {"kind", "KIND", false},
    {"devices", "DEVICES", true}, {"hosts", "HOSTS", true},           {"switches", "SWITCHES", true},
    {"links", "LINKS", true},     {"groups", "GROUPS", true},         {"dims", NULL, true},
    {"shape", "SHAPE", false},    {"physical_shape", NULL, false},    {"fastest_gbps", "GBIT/S", true},
    {"unnamed", NULL, true},      {"generation", "GENERATION", true}, {"published", NULL, false},
};

static bool list_plane(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                       const struct pmixfab_plane *plane)
{
    (void)ctl;
    (void)fab;
    ctl_put_number(table, plane->index);
    ctl_put_text(table, plane->name);
    ctl_put_bool(table, plane->is_default != 0);
    ctl_put_text(table, plane->vendor);
    ctl_put_text(table, plane->identifier);
    ctl_put_text(table, plane->kind);
    ctl_put_number(table, plane->n_devices);
    ctl_put_number(table, plane->n_hosts);
    ctl_put_number(table, plane->n_switches);
    ctl_put_number(table, plane->n_links);
    ctl_put_number(table, plane->n_groups);
    ctl_put_number(table, plane->dims);
    ctl_put_numbers(table, plane->shape, plane->dims);
    ctl_put_numbers(table, plane->physical_shape, plane->physical_dims);
    ctl_put_rate(table, plane->fastest_mbps);
    ctl_put_number(table, plane->n_unnamed);
    ctl_put_number(table, (int64_t)plane->generation);
    ctl_put_time(table, plane->published);
    return ctl_table_row(table);
}

enum ctl_exit ctl_planes_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into)
{
    return ctl_list_view(
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, plane_columns, CTL_COUNT(plane_columns)),
        ctl, view, list_plane);
}

enum ctl_exit ctl_planes(const struct ctl *ctl)
{
    return ctl_list_all(ctl, plane_columns, CTL_COUNT(plane_columns), list_plane);
}

void ctl_list_number(struct ctl_table *table, uint32_t number)
{
    if (number == UINT32_MAX)
        ctl_put_null(table);
    else
        ctl_put_number(table, number);
}
