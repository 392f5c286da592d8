/*
 * list_rails.c - which leaves, or which plane, each rail of a rail-optimised fabric is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fabricctl/show/fabric.h"
#include "fabricctl/show/labels.h"
#include "fabricctl/show/list.h"
#include "fabricctl/show/wanted.h"

static const struct ctl_column rail_columns[] = {
    {"rail", "RAIL", true},
    {"plane", "PLANE", false},
    {"whole_plane", "WHOLE-PLANE", false},
    {"devices", "DEVICES", true},
    {"n_switches", "N", true},
    {"switches", "SWITCHES", false},
    {"n_misplaced", "WRONG", true},
    {"misplaced", "IN THE WRONG RAIL", false},
    {"switch_guids", NULL, false},
};

/* Room for the names of switches or devices, and the labels of devices. */
struct rail_names {
    const char **names;
    char (*labels)[CTL_SHOWN_SIZE];
    struct pmixfab_switch *switches;
    size_t room;
};

/* One past the highest number of a rail; 0: there are none. */
static uint32_t rails_end(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct pmixfab_switch sw;
    uint32_t end = 0;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        if (pmixfab_switch(fab, s, &sw) == 0 && sw.rail != UINT32_MAX && sw.rail >= end)
            end = sw.rail + 1;
    return end;
}

static uint32_t rail_devices(const struct pmixfab *fab, const struct pmixfab_plane *plane, uint32_t rail)
{
    struct pmixfab_device device;
    uint32_t n = 0;
    for (uint32_t d = 0; d < plane->n_devices; d++)
        n += pmixfab_device(fab, d, &device) == 0 && device.rail == rail;
    return n;
}

static int list_compare_units(const void *x, const void *y)
{
    const struct pmixfab_switch *a = x, *b = y;
    return (a->unit > b->unit) - (a->unit < b->unit);
}

/* The names of its leaves, by their units. *whole: they are in none, so the plane is the rail. */
static size_t rail_switches(const struct ctl *ctl, const struct pmixfab *fab,
                            const struct pmixfab_plane *plane, uint32_t rail, struct rail_names *names,
                            bool *whole)
{
    size_t n = 0;
    for (uint32_t s = 0; s < plane->n_switches; s++)
        n += pmixfab_switch(fab, s, &names->switches[n]) == 0 && names->switches[n].rail == rail;
    qsort(names->switches, n, sizeof *names->switches, list_compare_units);
    for (size_t i = 0; i < n; i++)
        names->names[i] = ctl_name_shown(ctl->ports->shared, names->switches[i].name, names->switches[i].guid,
                                         names->labels[i]);
    *whole = n > 0 && names->switches[0].unit == UINT32_MAX;
    return n;
}

/* Those that are on this rail and should be on another one. */
static size_t rail_misplaced(const struct pmixfab *fab, uint32_t rail, struct rail_names *names)
{
    struct pmixfab_device device;
    uint32_t index, sw, unit;
    size_t n = 0;
    for (uint32_t i = 0; n < names->room && pmixfab_misplaced(fab, i, &index, &sw, &unit) == 0; i++) {
        if (pmixfab_device(fab, index, &device) != 0 || device.rail != rail)
            continue;
        ctl_device_label(&device, false, names->labels[n], sizeof names->labels[n]);
        names->names[n] = names->labels[n];
        n++;
    }
    return n;
}

static bool list_rail(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                      const struct pmixfab_plane *plane)
{
    uint32_t end = rails_end(fab, plane), index, sw, unit;
    struct rail_names names = {.room = 0};
    char name[CTL_RAIL_SIZE];
    while (pmixfab_misplaced(fab, (uint32_t)names.room, &index, &sw, &unit) == 0)
        names.room++;
    names.names = malloc((names.room + plane->n_switches + 1) * sizeof *names.names);
    names.labels = malloc((names.room + plane->n_switches + 1) * sizeof *names.labels);
    names.switches = malloc((plane->n_switches + (size_t)1) * sizeof *names.switches);
    bool going = names.names != NULL && names.labels != NULL && names.switches != NULL;
    for (uint32_t rail = 1; going && rail < end; rail++) {
        bool whole = false;
        size_t n = rail_switches(ctl, fab, plane, rail, &names, &whole), n_switches = n;
        ctl_rail_name(rail, name);
        if (n == 0 || !ctl_wants_name(ctl, name))
            continue;
        ctl_put_number(table, rail);
        ctl_put_text(table, plane->name);
        ctl_put_bool(table, whole);
        ctl_put_number(table, rail_devices(fab, plane, rail));
        ctl_put_number(table, (int64_t)n);
        ctl_put_hosts(table, names.names, n);
        n = rail_misplaced(fab, rail, &names);
        ctl_put_number(table, (int64_t)n);
        ctl_put_hosts(table, names.names, n);
        for (size_t i = 0; i < n_switches; i++)
            names.names[i] = names.switches[i].id;
        ctl_put_hosts(table, names.names, n_switches);
        going = ctl_table_row(table);
    }
    free(names.names);
    free(names.labels);
    free(names.switches);
    return going;
}

enum ctl_exit ctl_rails_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into)
{
    return ctl_list_view(
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, rail_columns, CTL_COUNT(rail_columns)), ctl,
        view, list_rail);
}

enum ctl_exit ctl_rails(const struct ctl *ctl)
{
    return ctl_list_wanted(ctl, "rail", "rails", rail_columns, CTL_COUNT(rail_columns), list_rail);
}
