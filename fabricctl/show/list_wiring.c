/*
 * list_wiring.c - switches, cables, and the hosts that share a switch.
 */
#include "fabricctl/show/fabric.h"
#include "fabricctl/show/labels.h"
#include "fabricctl/show/list.h"
#include "fabricctl/show/ports.h"
#include "fabricctl/show/wanted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- switches ---- */

static const struct ctl_column switch_columns[] = {
    {"id", "ID", false},      {"plane", "PLANE", false},      {"name", "SWITCH", false},
    {"level", "LEVEL", true}, {"ports", "PORTS", true},       {"hosts", "HOSTS", true},
    {"index", NULL, true},    {"missing", "MISSING", false},  {"unit", NULL, true},
    {"rail", NULL, true},     {"aggregation", "SHARP", true}, {"lid", "LID", true},
};

/* So many aggregation nodes hang on each switch; free() it. NULL without memory. */
static uint32_t *count_aggregation(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    uint32_t *counts = calloc(plane->n_switches + (size_t)1, sizeof *counts);
    struct pmixfab_link link;

    for (uint32_t i = 0; counts != NULL && i < plane->n_links && pmixfab_link(fab, i, &link) == 0; i++) {
        if (link.a.kind == PMIXFAB_END_AGGREGATION && link.b.is_switch != 0)
            counts[link.b.index]++;
        else if (link.b.kind == PMIXFAB_END_AGGREGATION && link.a.is_switch != 0)
            counts[link.a.index]++;
    }
    return counts;
}

static bool list_switch(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                        const struct pmixfab_plane *plane)
{
    uint32_t *aggregation = count_aggregation(fab, plane);
    bool going = aggregation != NULL;

    for (uint32_t i = 0; going && i < plane->n_switches; i++) {
        struct pmixfab_switch sw;

        going = pmixfab_switch(fab, i, &sw) == 0;
        if (!going)
            break;
        if (!ctl_wants_switch(ctl, &sw) || (ctl->down && sw.missing == 0))
            continue;
        ctl_put_text(table, sw.id);
        ctl_put_text(table, plane->name);
        ctl_put_text(table, sw.name);
        ctl_put_number(table, sw.level);
        ctl_put_number(table, sw.n_ports);
        ctl_put_number(table, sw.n_hosts);
        ctl_put_number(table, i);
        ctl_put_bool(table, sw.missing != 0);
        ctl_list_number(table, sw.unit);
        ctl_list_number(table, sw.rail);
        ctl_put_number(table, aggregation[i]);
        ctl_put_lid(table, ctl, sw.guid, 0);
        going = ctl_table_row(table);
    }
    free(aggregation);
    return going;
}

enum ctl_exit ctl_switches_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into)
{
    return ctl_list_view(
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, switch_columns, CTL_COUNT(switch_columns)),
        ctl, view, list_switch);
}

enum ctl_exit ctl_switches(const struct ctl *ctl)
{
    return ctl_list_wanted(ctl, "switch", "switches", switch_columns, CTL_COUNT(switch_columns), list_switch);
}

/* ---- links ---- */

static const struct ctl_column link_columns[] = {
    {"plane", "PLANE", false}, {"a", "A", false},        {"a_port", "PORT", true},
    {"b", "B", false},         {"b_port", "PORT", true}, {"rate_gbps", "GBIT/S", true},
    {"cost", "COST", true},    {"a_kind", NULL, false},  {"a_guid", NULL, false},
    {"b_kind", NULL, false},   {"b_guid", NULL, false},  {"missing", "MISSING", false},
    {"width", "WIDTH", false},
};

static const char *end_kind(const struct pmixfab_end *end)
{
    static const char *const kinds[] = {[PMIXFAB_END_OTHER] = "other",
                                        [PMIXFAB_END_DEVICE] = "device",
                                        [PMIXFAB_END_SWITCH] = "switch",
                                        [PMIXFAB_END_ROUTER] = "router",
                                        [PMIXFAB_END_AGGREGATION] = "aggregation node"};
    return end->kind < CTL_COUNT(kinds) ? kinds[end->kind] : "other";
}

/* Is this end asked for, or is it a device that is down? */
static bool link_end_wanted(const struct ctl *ctl, const struct pmixfab *fab, const struct pmixfab_end *end,
                            bool *down)
{
    struct pmixfab_device device;
    struct pmixfab_switch sw;

    if (ctl->port != 0 && end->port != ctl->port)
        return false;
    if (end->is_switch != 0)
        return pmixfab_switch(fab, end->index, &sw) == 0 && ctl_wants_switch(ctl, &sw);
    if (pmixfab_device(fab, end->index, &device) != 0)
        return ctl->n_args == 0;
    *down |= device.state != PMIXFAB_STATE_UP;
    return ctl_wants_device(ctl, &device);
}

static bool link_wanted(const struct ctl *ctl, const struct pmixfab *fab, const struct pmixfab_link *link)
{
    bool down = link->missing != 0;
    bool a = link_end_wanted(ctl, fab, &link->a, &down), b = link_end_wanted(ctl, fab, &link->b, &down);

    return (a || b) && (down || !ctl->down);
}

static void put_end(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                    const struct pmixfab_end *end)
{
    const json_t *shared = ctl->ports->shared;
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    char label[CTL_LABEL_SIZE], shown[CTL_SHOWN_SIZE];

    if (end->is_switch != 0 && pmixfab_switch(fab, end->index, &sw) == 0) {
        ctl_put_text(table, ctl_name_shown(shared, sw.name, sw.guid, shown));
    } else if (end->is_switch == 0 && pmixfab_device(fab, end->index, &device) == 0) {
        ctl_device_label(&device, false, label, sizeof label);
        ctl_put_text(table, ctl_name_shown(shared, label, device.node_guid, shown));
    } else {
        snprintf(label, sizeof label, "%s 0x%016" PRIx64, end_kind(end), end->guid);
        ctl_put_text(table, label);
    }
    ctl_put_number(table, end->port);
}

static bool list_link(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                      const struct pmixfab_plane *plane)
{
    for (uint32_t i = 0; i < plane->n_links; i++) {
        struct pmixfab_link link;

        if (pmixfab_link(fab, i, &link) != 0)
            return false;
        if (!link_wanted(ctl, fab, &link))
            continue;
        ctl_put_text(table, plane->name);
        put_end(table, ctl, fab, &link.a);
        put_end(table, ctl, fab, &link.b);
        ctl_put_rate(table, link.mbps);
        ctl_put_number(table, link.cost);
        ctl_put_text(table, end_kind(&link.a));
        ctl_put_guid(table, link.a.guid);
        ctl_put_text(table, end_kind(&link.b));
        ctl_put_guid(table, link.b.guid);
        ctl_put_bool(table, link.missing != 0);
        ctl_put_width(table, ctl, link.a.guid, link.a.port);
        if (!ctl_table_row(table))
            return false;
    }
    return true;
}

enum ctl_exit ctl_links_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into)
{
    return ctl_list_view(
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, link_columns, CTL_COUNT(link_columns)), ctl,
        view, list_link);
}

enum ctl_exit ctl_links(const struct ctl *ctl)
{
    return ctl_list_wanted(ctl, "host or switch", "links", link_columns, CTL_COUNT(link_columns), list_link);
}

/* ---- groups ---- */

static const struct ctl_column group_columns[] = {
    {"group", "GROUP", true}, {"name", "NAME", false},   {"plane", "PLANE", false},
    {"n_hosts", "N", true},   {"hosts", "HOSTS", false}, {"switch_guid", NULL, false},
};

/* By its name, its number, one of its hosts or the switch of one of these; down: a device of one of them is.
 */
static bool group_wanted(const struct ctl *ctl, const struct pmixfab *fab, uint32_t g, const uint32_t *hosts,
                         uint32_t n)
{
    const char *called = pmixfab_group_name(fab, g);
    struct pmixfab_switch leaf;
    char number[16];
    bool down = !ctl->down, wanted;

    snprintf(number, sizeof number, "%u", (unsigned)g);
    wanted = ctl_wants_name(ctl, number);
    wanted |= called != NULL && ctl_wants_name(ctl, called);
    wanted |= ctl_group_leaf(fab, g, &leaf) && ctl_wants_switch(ctl, &leaf);
    for (uint32_t i = 0; i < n; i++) {
        const char *name;
        uint32_t first, devices;
        struct pmixfab_device device;
        struct pmixfab_switch sw;

        if (pmixfab_host(fab, hosts[i], &name, &first, &devices) != 0)
            return true; /* told by who lists it */
        wanted |= ctl_wants_name(ctl, name);
        for (uint32_t d = first; d < first + devices; d++) {
            if (pmixfab_device(fab, d, &device) != 0)
                continue;
            down |= device.state != PMIXFAB_STATE_UP;
            wanted |= ctl->n_args > 0 && pmixfab_switch(fab, device.switch_index, &sw) == 0 &&
                      ctl_wants_switch(ctl, &sw);
        }
    }
    return wanted && down;
}

static bool list_group(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                       const struct pmixfab_plane *plane)
{
    const char **names = malloc((plane->n_hosts + (size_t)1) * sizeof *names);
    bool going = names != NULL, leaf;
    struct pmixfab_switch sw;
    char shown[CTL_SHOWN_SIZE];

    for (uint32_t g = 0; going && g < plane->n_groups; g++) {
        const uint32_t *hosts;
        uint32_t n, first, n_devices;

        going = pmixfab_group(fab, g, &hosts, &n) == 0 && n <= plane->n_hosts;
        if (going && !group_wanted(ctl, fab, g, hosts, n))
            continue;
        for (uint32_t i = 0; going && i < n; i++)
            going = pmixfab_host(fab, hosts[i], &names[i], &first, &n_devices) == 0;
        if (!going)
            break;
        ctl_put_number(table, g);
        leaf = ctl_group_leaf(fab, g, &sw);
        ctl_put_text(table, ctl_group_shown(ctl->ports->shared, fab, g, shown));
        ctl_put_text(table, plane->name);
        ctl_put_number(table, n);
        ctl_put_hosts(table, names, n);
        ctl_put_guid(table, leaf ? sw.guid : 0);
        going = ctl_table_row(table);
    }
    free(names);
    return going;
}

enum ctl_exit ctl_groups_table(const struct ctl *ctl, const struct ctl_view *view, json_t *into)
{
    return ctl_list_view(
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, group_columns, CTL_COUNT(group_columns)),
        ctl, view, list_group);
}

enum ctl_exit ctl_groups(const struct ctl *ctl)
{
    return ctl_list_wanted(ctl, "group or host", "groups", group_columns, CTL_COUNT(group_columns),
                           list_group);
}
