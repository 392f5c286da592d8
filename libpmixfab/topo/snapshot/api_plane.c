/*
 * api_plane.c - public functions for the plane, devices and their facts, hosts, switches, links and groups.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/give.h"
#include "topo/model/model.h"
#include "topo/snapshot/reader.h"

int pmixfab_plane_sized(const struct pmixfab *fab, struct pmixfab_plane *out, size_t size)
{
    if (fab == NULL || out == NULL || size == 0)
        return PMIXFAB_ERR_INVAL;
    const struct snap_meta *meta = fab->meta;
    struct pmixfab_plane made = {
        .generation = fab->head->generation,
        .published = fab->head->published,
        .index = meta->index,
        .is_default = meta->is_default,
        .name = fab_reader_string(fab, meta->name),
        .vendor = fab_reader_string(fab, meta->vendor),
        .identifier = fab_reader_string(fab, meta->identifier),
        .kind = fab_reader_string(fab, meta->kind),
        .n_devices = meta->n_devices,
        .n_hosts = meta->n_hosts,
        .n_switches = meta->n_switches,
        .n_links = meta->n_links,
        .n_groups = meta->n_groups,
        .n_unnamed = meta->n_unnamed,
        .dims = meta->dims,
        .physical_dims = meta->physical_dims,
        .fastest_mbps = meta->fastest_mbps,
    };
    memcpy(made.shape, meta->shape, sizeof(made.shape));
    memcpy(made.physical_shape, meta->physical_shape, sizeof(made.physical_shape));
    fab_give(out, size, &made, sizeof(made));
    return PMIXFAB_OK;
}

/* Numbers of units and rails start at 1. */
static uint32_t rail_of(const struct pmixfab *fab, uint32_t sw)
{
    uint32_t rail = fab->rails == NULL || sw == FAB_NONE ? FAB_NONE : fab->rails[sw].rail;
    return rail == FAB_NONE ? UINT32_MAX : rail + 1;
}

static uint32_t unit_of(const struct pmixfab *fab, uint32_t sw)
{
    uint32_t unit = fab->rails == NULL ? FAB_NONE : fab->rails[sw].unit;
    return unit == FAB_NONE ? UINT32_MAX : unit + 1;
}

int pmixfab_device_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_device *out, size_t size)
{
    if (fab == NULL || out == NULL || size == 0 || index >= fab->meta->n_devices)
        return PMIXFAB_ERR_INVAL;
    const struct snap_device *device = &fab->devices[index];
    struct pmixfab_device made = {
        .index = index,
        .host_index = fab->costs.host[index],
        .switch_index = device->sw,
        .switch_port = device->switch_port,
        .port = device->port,
        .state = device->state,
        .node_guid = device->node_guid,
        .port_guid = device->port_guid,
        .system_guid = device->system_guid,
        .mbps = device->mbps,
        .host = fab_reader_host(fab, fab->costs.host[index]),
        .name = fab_reader_string(fab, device->name),
        .rail = rail_of(fab, device->sw),
        .seen = device->seen != 0 ? device->seen : PMIXFAB_SEEN_SUBNET,
    };
    fab_reader_write_id(fab, index, made.id);
    fab_give(out, size, &made, sizeof(made));
    return PMIXFAB_OK;
}

int pmixfab_host(const struct pmixfab *fab, uint32_t i, const char **name, uint32_t *first, uint32_t *n)
{
    if (fab == NULL || name == NULL || first == NULL || n == NULL || i >= fab->meta->n_hosts)
        return PMIXFAB_ERR_INVAL;
    *name = fab_reader_host(fab, i);
    *first = fab->hosts[i].first;
    *n = fab_reader_host_end(fab, i) - fab->hosts[i].first;
    return PMIXFAB_OK;
}

int pmixfab_coords(const struct pmixfab *fab, uint32_t index, enum pmixfab_view view, const uint32_t **coords,
                   uint32_t *dims)
{
    if (fab == NULL || coords == NULL || dims == NULL || index >= fab->meta->n_devices ||
        (view != PMIXFAB_LOGICAL && view != PMIXFAB_PHYSICAL))
        return PMIXFAB_ERR_INVAL;
    *dims = view == PMIXFAB_LOGICAL ? fab->meta->dims : fab->meta->physical_dims;
    *coords = (view == PMIXFAB_LOGICAL ? fab->logical : fab->physical) + (size_t)index * *dims;
    return PMIXFAB_OK;
}

int pmixfab_switch_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_switch *out, size_t size)
{
    if (fab == NULL || out == NULL || size == 0 || index >= fab->meta->n_switches)
        return PMIXFAB_ERR_INVAL;
    const struct snap_switch *sw = &fab->switches[index];
    struct pmixfab_switch made = {
        .index = index,
        .level = sw->level,
        .n_ports = sw->n_ports,
        .n_hosts = sw->n_hosts,
        .guid = sw->guid,
        .name = fab_reader_string(fab, sw->name),
        .missing = sw->missing,
        .unit = unit_of(fab, index),
        .rail = rail_of(fab, index),
    };
    snprintf(made.id, sizeof(made.id), "0x%016llx", (unsigned long long)sw->guid);
    fab_give(out, size, &made, sizeof(made));
    return PMIXFAB_OK;
}

static struct pmixfab_end end_of(const struct pmixfab *fab, uint32_t end, uint32_t port)
{
    uint32_t index = end & ~SNAP_END_KIND;

    switch (end & SNAP_END_KIND) {
    case SNAP_END_SWITCH:
        return (struct pmixfab_end){1, index, port, fab->switches[index].guid, PMIXFAB_END_SWITCH};
    case SNAP_END_DEVICE:
        return (struct pmixfab_end){0, index, port, fab->devices[index].node_guid, PMIXFAB_END_DEVICE};
    default:
        return (struct pmixfab_end){0, UINT32_MAX, port, fab->others[index],
                                    fab->other_kinds == NULL ? PMIXFAB_END_OTHER : fab->other_kinds[index]};
    }
}

static bool is_missing(const struct pmixfab *fab, uint32_t end)
{
    uint32_t index = end & ~SNAP_END_KIND;

    switch (end & SNAP_END_KIND) {
    case SNAP_END_SWITCH:
        return fab->switches[index].missing != 0;
    case SNAP_END_DEVICE:
        return (fab->devices[index].seen & PMIXFAB_SEEN_MISSING) != 0;
    default:
        return false;
    }
}

int pmixfab_link_sized(const struct pmixfab *fab, uint32_t index, struct pmixfab_link *out, size_t size)
{
    if (fab == NULL || out == NULL || size == 0 || index >= fab->meta->n_links)
        return PMIXFAB_ERR_INVAL;
    const struct snap_link *cable = &fab->links[index];
    struct pmixfab_link made = {
        .a = end_of(fab, cable->a, cable->a_port),
        .b = end_of(fab, cable->b, cable->b_port),
        .mbps = cable->mbps,
        .cost = cable->cost,
        .missing = is_missing(fab, cable->a) || is_missing(fab, cable->b),
    };
    fab_give(out, size, &made, sizeof(made));
    return PMIXFAB_OK;
}

int pmixfab_group(const struct pmixfab *fab, uint32_t g, const uint32_t **hosts, uint32_t *n)
{
    if (fab == NULL || hosts == NULL || n == NULL || g >= fab->meta->n_groups)
        return PMIXFAB_ERR_INVAL;
    *hosts = fab->group_members + fab->group_start[g];
    *n = fab->group_start[g + 1] - fab->group_start[g];
    return PMIXFAB_OK;
}

const char *pmixfab_group_name(const struct pmixfab *fab, uint32_t g)
{
    if (fab == NULL || g >= fab->meta->n_groups)
        return NULL;
    return fab->group_names == NULL ? "" : fab_reader_string(fab, fab->group_names[g]);
}

/* Return whether the hosts with a device on the switch are those of the group. */
static bool group_is_of(const struct pmixfab *fab, uint32_t g, uint32_t sw)
{
    const uint32_t start = fab->group_start[g], end = fab->group_start[g + 1];

    if (fab->switches[sw].n_hosts != end - start)
        return false;
    for (uint32_t m = start; m < end; m++) {
        const uint32_t host = fab->group_members[m], past = fab_reader_host_end(fab, host);
        uint32_t i = fab->hosts[host].first;
        while (i < past && fab->devices[i].sw != sw)
            i++;
        if (i == past)
            return false;
    }
    return true;
}

/*
 * The group of a leaf has the leaf's name, with the same string offset. The group of a unit has the same
 * hosts as each of its leaves, and a name of its own.
 */
int pmixfab_group_switch(const struct pmixfab *fab, uint32_t g, uint32_t *sw)
{
    if (fab == NULL || sw == NULL || g >= fab->meta->n_groups)
        return PMIXFAB_ERR_INVAL;
    *sw = UINT32_MAX;
    if (fab->group_start[g] == fab->group_start[g + 1])
        return PMIXFAB_OK;
    const uint32_t host = fab->group_members[fab->group_start[g]], past = fab_reader_host_end(fab, host);
    for (uint32_t i = fab->hosts[host].first; i < past; i++) {
        const uint32_t at = fab->devices[i].sw;
        if (at == FAB_NONE || (fab->group_names != NULL && fab->group_names[g] != fab->switches[at].name))
            continue;
        if (!group_is_of(fab, g, at))
            continue;
        *sw = at;
        break;
    }
    return PMIXFAB_OK;
}

int pmixfab_misplaced(const struct pmixfab *fab, uint32_t i, uint32_t *device, uint32_t *sw, uint32_t *unit)
{
    if (fab == NULL || device == NULL || sw == NULL || unit == NULL)
        return PMIXFAB_ERR_INVAL;
    if (i >= fab->meta->n_strays)
        return PMIXFAB_ERR_NOTFOUND;
    *device = fab->strays[i].device;
    *sw = fab->strays[i].sw;
    *unit = fab->strays[i].unit + 1;
    return PMIXFAB_OK;
}

int pmixfab_groups_string(const struct pmixfab *fab, char **out)
{
    if (fab == NULL || out == NULL)
        return PMIXFAB_ERR_INVAL;
    const struct snap_meta *meta = fab->meta;
    size_t size = 1 + (size_t)meta->n_groups * sizeof("4294967295:;");

    for (uint32_t m = 0; m < meta->n_members; m++)
        if (__builtin_add_overflow(size, strlen(fab_reader_host(fab, fab->group_members[m])) + 1, &size))
            return PMIXFAB_ERR_RANGE;
    char *text = malloc(size);
    if (text == NULL)
        return PMIXFAB_ERR_NOMEM;
    char *to = text;
    for (uint32_t g = 0; g < meta->n_groups; g++) {
        to += sprintf(to, g == 0 ? "%u:" : ";%u:", g);
        for (uint32_t m = fab->group_start[g]; m < fab->group_start[g + 1]; m++) {
            if (m > fab->group_start[g])
                *to++ = ',';
            to = stpcpy(to, fab_reader_host(fab, fab->group_members[m]));
        }
    }
    *to = '\0';
    *out = text;
    return PMIXFAB_OK;
}

int pmixfab_shape_string(const struct pmixfab *fab, enum pmixfab_view view, char *buf, size_t size)
{
    char text[PMIXFAB_MAX_DIMS * sizeof("4294967295x")] = "";

    if (fab == NULL || buf == NULL || size == 0 || (view != PMIXFAB_LOGICAL && view != PMIXFAB_PHYSICAL))
        return PMIXFAB_ERR_INVAL;
    uint32_t dims = view == PMIXFAB_LOGICAL ? fab->meta->dims : fab->meta->physical_dims;
    const uint32_t *shape = view == PMIXFAB_LOGICAL ? fab->meta->shape : fab->meta->physical_shape;
    char *to = text;
    for (uint32_t d = 0; d < dims; d++)
        to += sprintf(to, d == 0 ? "%u" : "x%u", shape[d]);
    if ((size_t)(to - text) >= size)
        return PMIXFAB_ERR_RANGE;
    memcpy(buf, text, (size_t)(to - text) + 1);
    return PMIXFAB_OK;
}

/*
 * ---- facts of a device -----------------------------------------------------------------------------------
 */

static const char compute_name[] = "compute";

/*
 * Return the *n facts of a device. Kinds ascend, so those of a newer writer, which have no name here, are
 * last except for FAB_FACT_COMPUTE.
 */
static const struct snap_fact *api_facts_of(const struct pmixfab *fab, uint32_t index, uint32_t *n)
{
    *n = 0;
    if (fab->fact_at == NULL)
        return NULL;
    *n = fab->fact_at[index + 1] - fab->fact_at[index];
    return fab->facts + fab->fact_at[index];
}

int pmixfab_fact_sized(const struct pmixfab *fab, uint32_t index, uint32_t i, struct pmixfab_fact *out,
                       size_t size)
{
    uint32_t n;

    if (fab == NULL || out == NULL || size == 0 || index >= fab->meta->n_devices)
        return PMIXFAB_ERR_INVAL;
    const struct snap_fact *facts = api_facts_of(fab, index, &n);
    if (i >= n)
        return PMIXFAB_ERR_NOTFOUND;
    if (facts[i].kind >=
        FAB_FACTS) { /* the first kind without a name is skipped to COMPUTE, which is the last */
        if ((i > 0 && facts[i - 1].kind >= FAB_FACTS) || facts[n - 1].kind != FAB_FACT_COMPUTE)
            return PMIXFAB_ERR_NOTFOUND;
        i = n - 1;
    }
    const struct pmixfab_fact made = {
        .kind =
            facts[i].kind == FAB_FACT_COMPUTE ? compute_name : fab_fact_name((enum fab_fact)facts[i].kind),
        .text = fab_reader_string(fab, facts[i].text),
        .sources = facts[i].sources,
        .chosen = (facts[i].flags & FAB_DETAIL_CHOSEN) != 0,
        .conflict = (facts[i].flags & FAB_DETAIL_CONFLICT) != 0,
        .estimate = (facts[i].flags & FAB_DETAIL_ESTIMATE) != 0,
        .software = (facts[i].flags & FAB_DETAIL_SOFTWARE) != 0,
        .yielded = (facts[i].flags & FAB_DETAIL_OUTRANKED) != 0,
    };
    fab_give(out, size, &made, sizeof(made));
    return PMIXFAB_OK;
}

const char *pmixfab_fact_text(const struct pmixfab *fab, uint32_t index, const char *kind)
{
    uint32_t n;

    if (fab == NULL || kind == NULL || index >= fab->meta->n_devices)
        return NULL;
    const uint32_t wanted =
        strcmp(kind, compute_name) == 0 ? FAB_FACT_COMPUTE : (uint32_t)fab_fact_parse(kind);
    const struct snap_fact *facts = api_facts_of(fab, index, &n);
    for (uint32_t i = 0; wanted != 0 && i < n && facts[i].kind <= wanted; i++)
        if (facts[i].kind == wanted)
            return (facts[i].flags & FAB_DETAIL_CHOSEN) != 0 ? fab_reader_string(fab, facts[i].text) : NULL;
    return NULL;
}

const char *pmixfab_source_name(uint32_t i)
{
    return i < FAB_SOURCES ? fab_source_name((enum fab_source)i) : NULL;
}
