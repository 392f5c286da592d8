/* list_fabric.c - lists of planes, devices, coordinates, switches, cables, groups, rails. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/show/show.h"

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

/* ---- devices ---- */

static const char *device_state_name(uint32_t state)
{
    return state == PMIXFAB_STATE_UP ? "up" : state == PMIXFAB_STATE_DOWN ? "down" : "unknown";
}

static const char *seen_by(uint32_t seen)
{
    static const char *const words[] = {NULL, "subnet",  "node", "subnet,node",
                                        NULL, "missing", NULL,   "missing,node"};
    return words[seen & 7];
}

/* Return the type as in PMIx: a sweep sees only InfiniBand, and a device with a MAC as its id is Ethernet. */
static const char *type_name(const struct pmixfab *fab, const struct pmixfab_device *device)
{
    const char *said = pmixfab_fact_text(fab, device->index, "type");
    if (said != NULL)
        return said;
    if (strncmp(device->id, "ipv4://", strlen("ipv4://")) == 0)
        return "Ethernet";
    return (device->seen & PMIXFAB_SEEN_SUBNET) != 0 ? "InfiniBand" : NULL;
}

static const struct ctl_column device_columns[] = {
    {"index", "INDEX", true},      {"id", NULL, false},
    {"plane", "PLANE", false},     {"host", "HOST", false},
    {"name", "DEVICE", false},     {"port", "PORT", true},
    {"guid", NULL, false},         {"node_guid", NULL, false},
    {"system_guid", NULL, false},  {"switch", "SWITCH", false},
    {"switch_guid", NULL, false},  {"switch_port", "SWITCH-PORT", true},
    {"rate_gbps", "GBIT/S", true}, {"state", "STATE", false},
    {"logical", "LOGICAL", false}, {"physical", "PHYSICAL", false},
    {"type", NULL, false},         {"seen", "SEEN", false},
    {"vendor", NULL, false},       {"firmware", NULL, false},
    {"driver", NULL, false},       {"pci", NULL, false},
    {"mtu", NULL, true},           {"numa", NULL, true},
    {"missing", NULL, false},      {"rail", "RAIL", true},
    {"lid", "LID", true},          {"width", NULL, false},
    {"facts", NULL, false}, /* the last column: of the devices of one host, in JSON */
};

static bool with_facts(const struct ctl *ctl)
{
    return ctl->n_args > 0 && ctl->format == CTL_JSON;
}

static void put_coords(struct ctl_table *table, const struct pmixfab *fab, uint32_t device,
                       enum pmixfab_view which)
{
    const uint32_t *coords;
    uint32_t dims;
    if (pmixfab_coords(fab, device, which, &coords, &dims) == 0)
        ctl_put_numbers(table, coords, dims);
    else
        ctl_put_null(table);
}

static void put_fact_number(struct ctl_table *table, const struct pmixfab *fab, uint32_t device,
                            const char *kind)
{
    const char *text = pmixfab_fact_text(fab, device, kind);
    if (text == NULL)
        ctl_put_null(table);
    else
        ctl_put_number(table, strtoll(text, NULL, 10));
}

static void put_known(struct ctl_table *table, const struct pmixfab *fab, const struct pmixfab_device *device)
{
    ctl_put_text(table, type_name(fab, device));
    ctl_put_text(table, seen_by(device->seen));
    ctl_put_text(table, pmixfab_fact_text(fab, device->index, "vendor"));
    ctl_put_text(table, pmixfab_fact_text(fab, device->index, "firmware"));
    ctl_put_text(table, pmixfab_fact_text(fab, device->index, "driver"));
    ctl_put_text(table, pmixfab_fact_text(fab, device->index, "pci"));
    put_fact_number(table, fab, device->index, "mtu");
    put_fact_number(table, fab, device->index, "numa");
}

static bool device_row(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                       const char *plane, uint32_t index)
{
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    bool switched;
    char shown[CTL_SHOWN_SIZE];
    if (pmixfab_device(fab, index, &device) != 0)
        return false;
    switched = device.switch_index != UINT32_MAX && pmixfab_switch(fab, device.switch_index, &sw) == 0;
    ctl_put_number(table, index);
    ctl_put_text(table, device.id);
    ctl_put_text(table, plane);
    ctl_put_text(table, device.host);
    ctl_put_text(table, device.name);
    ctl_put_number(table, device.port);
    ctl_put_guid(table, device.port_guid);
    ctl_put_guid(table, device.node_guid);
    ctl_put_guid(table, device.system_guid);
    ctl_put_text(table, switched ? ctl_name_shown(ctl->ports->shared, sw.name, sw.guid, shown) : NULL);
    ctl_put_guid(table, switched ? sw.guid : 0);
    ctl_put_index(table, switched ? device.switch_port : UINT32_MAX);
    ctl_put_rate(table, device.mbps);
    ctl_put_text(table, device_state_name(device.state));
    put_coords(table, fab, index, PMIXFAB_LOGICAL);
    put_coords(table, fab, index, PMIXFAB_PHYSICAL);
    put_known(table, fab, &device);
    ctl_put_bool(table, (device.seen & PMIXFAB_SEEN_MISSING) != 0);
    ctl_put_index(table, device.rail);
    ctl_put_lid(table, ctl, device.node_guid, device.port);
    ctl_put_width(table, ctl, device.node_guid, device.port);
    if (with_facts(ctl))
        ctl_put_json(table, ctl_facts_json(fab, index));
    return ctl_table_row(table);
}

/* Return the devices of the requested host; without one, all. */
static void device_range(const struct ctl *ctl, const struct pmixfab *fab, const struct pmixfab_plane *plane,
                         uint32_t *first, uint32_t *n)
{
    const char *name;
    uint32_t host;
    *first = 0;
    *n = plane->n_devices;
    if (ctl->n_args == 0)
        return;
    if (pmixfab_find_host(fab, ctl->args[0], &host) != 0 || pmixfab_host(fab, host, &name, first, n) != 0)
        *n = 0;
}

static bool device_shown(const struct ctl *ctl, const struct pmixfab *fab, uint32_t index)
{
    struct pmixfab_device device;
    return !ctl->down || pmixfab_device(fab, index, &device) != 0 || device.state != PMIXFAB_STATE_UP;
}

static bool list_device(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                        const struct pmixfab_plane *plane)
{
    uint32_t first, n;
    device_range(ctl, fab, plane, &first, &n);
    for (uint32_t i = first; i < first + n; i++)
        if (device_shown(ctl, fab, i) && !device_row(table, ctl, fab, plane->name, i))
            return false;
    return true;
}

static bool list_wanted_device(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                               const struct pmixfab_plane *plane)
{
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        struct pmixfab_device device;
        if (pmixfab_device(fab, i, &device) != 0)
            return false;
        if (ctl_wants_device(ctl, &device) && !device_row(table, ctl, fab, plane->name, i))
            return false;
    }
    return true;
}

/* ---- coordinates ---- */

static const struct ctl_column coord_columns[] = {
    {"index", "INDEX", true},        {"plane", "PLANE", false}, {"host", "HOST", false},
    {"name", "DEVICE", false},       {"port", "PORT", true},    {"logical", "LOGICAL", false},
    {"physical", "PHYSICAL", false},
};

static bool list_coord(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                       const struct pmixfab_plane *plane)
{
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        struct pmixfab_device device;
        if (pmixfab_device(fab, i, &device) != 0)
            return false;
        if (!ctl_wants_device(ctl, &device) || (ctl->down && device.state == PMIXFAB_STATE_UP))
            continue;
        ctl_put_number(table, i);
        ctl_put_text(table, plane->name);
        ctl_put_text(table, device.host);
        ctl_put_text(table, device.name);
        ctl_put_number(table, device.port);
        put_coords(table, fab, i, PMIXFAB_LOGICAL);
        put_coords(table, fab, i, PMIXFAB_PHYSICAL);
        if (!ctl_table_row(table))
            return false;
    }
    return true;
}

/* ---- switches ---- */

static const struct ctl_column switch_columns[] = {
    {"id", "ID", false},      {"plane", "PLANE", false},      {"name", "SWITCH", false},
    {"level", "LEVEL", true}, {"ports", "PORTS", true},       {"hosts", "HOSTS", true},
    {"index", NULL, true},    {"missing", "MISSING", false},  {"unit", NULL, true},
    {"rail", NULL, true},     {"aggregation", "SHARP", true}, {"lid", "LID", true},
};

/* Count the aggregation nodes at each switch; the caller frees the result. NULL without memory. */
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
        ctl_put_index(table, sw.unit);
        ctl_put_index(table, sw.rail);
        ctl_put_number(table, aggregation[i]);
        ctl_put_lid(table, ctl, sw.guid, 0);
        going = ctl_table_row(table);
    }
    free(aggregation);
    return going;
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

/* Return whether this end is requested, or is a device that is down. */
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

/* ---- groups ---- */

static const struct ctl_column group_columns[] = {
    {"group", "GROUP", true}, {"name", "NAME", false},   {"plane", "PLANE", false},
    {"n_hosts", "N", true},   {"hosts", "HOSTS", false}, {"switch_guid", NULL, false},
};

/*
 * Return whether the command line requests the group by its name, its number, one of its hosts or their
 * switch. down: whether a device of the group is down.
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
            return true; /* the list reports it */
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

/* ---- the leaves, or the plane, of each rail of a rail-optimised fabric ---- */

static const struct ctl_column rail_columns[] = {
    {"rail", "RAIL", true},         {"plane", "PLANE", false},         {"whole_plane", "WHOLE-PLANE", false},
    {"devices", "DEVICES", true},   {"n_switches", "N", true},         {"switches", "SWITCHES", false},
    {"n_misplaced", "WRONG", true}, {"misplaced", "MISPLACED", false}, {"switch_guids", NULL, false},
};

/* Memory for the names of switches or devices, and the labels of devices. */
struct rail_names {
    const char **names;
    char (*labels)[CTL_SHOWN_SIZE];
    struct pmixfab_switch *switches;
    size_t room;
};

/* Return one past the highest number of a rail; 0: none. */
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

/*
 * Collect the names of a rail's leaves, by their units. *whole: they are in no unit, so the plane is the
 * rail.
 */
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

/* Collect the devices on this rail that should be on another one. */
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

/* ---- the commands ---- */

static const struct named_list {
    const char *command, *kind;
    const struct ctl_column *columns;
    size_t n;
    ctl_list_fn *rows;
} lists[] = {
    {"planes", "plane", plane_columns, CTL_COUNT(plane_columns), list_plane},
    {"devices", "device", device_columns, CTL_COUNT(device_columns) - 1, list_wanted_device},
    {"switches", "switch", switch_columns, CTL_COUNT(switch_columns), list_switch},
    {"links", "host or switch", link_columns, CTL_COUNT(link_columns), list_link},
    {"groups", "group or host", group_columns, CTL_COUNT(group_columns), list_group},
    {"rails", "rail", rail_columns, CTL_COUNT(rail_columns), list_rail},
    {"coords", "host or device", coord_columns, CTL_COUNT(coord_columns), list_coord},
};

static const struct named_list *list_by_name(const char *command)
{
    const struct named_list *list = lists;
    while (strcmp(list->command, command) != 0)
        list++;
    return list;
}

enum ctl_exit ctl_list_into(const struct ctl *ctl, const struct ctl_view *view, const char *command,
                            json_t *into)
{
    const struct named_list *list = list_by_name(command);
    const size_t n = list->n + (list->columns == device_columns && with_facts(ctl));
    return ctl_list_view(ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, list->columns, n), ctl,
                         view, list->rows);
}

enum ctl_exit ctl_list_named(const struct ctl *ctl, const char *command)
{
    struct ctl_view view;
    enum ctl_exit status = ctl_view_all(ctl, &view);
    if (status != CTL_DONE)
        return status;
    status = ctl_list_into(ctl, &view, command, NULL);
    ctl_view_close(&view);
    return status == CTL_DONE ? ctl_wanted_met(ctl, list_by_name(command)->kind, command) : status;
}

enum ctl_exit ctl_list(const struct ctl *ctl)
{
    return ctl_list_named(ctl, ctl->command);
}

static enum ctl_exit show_devices(const struct ctl *ctl, const struct ctl_view *view)
{
    size_t n = CTL_COUNT(device_columns) - !with_facts(ctl);
    enum ctl_exit status = ctl_list_view(
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, NULL, device_columns, n), ctl, view, list_device);
    for (size_t i = 0; status == CTL_DONE && ctl->n_args > 0 && ctl->format == CTL_TEXT && i < view->n; i++) {
        struct pmixfab_plane plane;
        uint32_t first = 0, count = 0;
        if (pmixfab_plane(view->planes[i], &plane) == 0)
            device_range(ctl, view->planes[i], &plane, &first, &count);
        for (uint32_t d = first; d < first + count; d++)
            ctl_facts_print(view->planes[i], plane.name, d);
    }
    return status;
}

enum ctl_exit ctl_devices(const struct ctl *ctl)
{
    struct ctl_view view;
    struct ctl of_host = *ctl;
    enum ctl_exit status = ctl_view_all(ctl, &view);
    char *host = NULL;
    if (status != CTL_DONE)
        return status;
    if (ctl->n_args > 0) {
        host = (char *)ctl_find_host(ctl, &view, ctl->args[0]);
        of_host.args = &host;
    }
    status = ctl->n_args == 0 || host != NULL ? show_devices(&of_host, &view) : CTL_FAILED;
    ctl_view_close(&view);
    return status;
}
