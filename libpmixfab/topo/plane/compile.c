/* compile.c - write one computed plane as a snapshot. */
#include "topo/plane/compile.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/large_pages.h"
#include "topo/base/radix.h"
#include "topo/plane/compile_priv.h"
#include "topo/snapshot/reader.h"

static uint32_t intern(struct snap_build *b, uint32_t past, const char *text)
{
    return fab_strings_take(&b->strings, past, text);
}

/* A port that is not active carries no traffic: whoever places jobs must not count on it. */
static uint8_t compile_port_state(const struct fab_port *port)
{
    switch (port->state) {
    case FAB_PORT_UNKNOWN:
        return PMIXFAB_STATE_UNKNOWN;
    case FAB_PORT_ACTIVE:
        return PMIXFAB_STATE_UP;
    default:
        return PMIXFAB_STATE_DOWN;
    }
}

static uint8_t seen_of(const struct snap_build *b, uint32_t port)
{
    const struct fab_inventory *inv = b->plane->inv;
    if (b->details != NULL)
        return b->details->seen[port];
    return fab_port_is_missing(inv, &inv->ports[port]) ? PMIXFAB_SEEN_SUBNET | PMIXFAB_SEEN_MISSING
                                                       : PMIXFAB_SEEN_SUBNET;
}

static void compile_write_devices(struct snap_build *b)
{
    const struct fab_inventory *inv = b->plane->inv;
    struct snap_device *out = fab_snapshot_section(b, SNAP_DEVICES);
    uint32_t *host = fab_snapshot_section(b, SNAP_HOST);

    for (uint32_t i = 0; i < b->meta.n_devices; i++) {
        const struct fab_device *device = &b->plane->devices[i];
        const struct fab_port *port = &inv->ports[device->port];
        const struct fab_node *node = &inv->nodes[port->node];
        out[i] = (struct snap_device){
            .node_guid = node->guid,
            .port_guid = port->guid,
            .system_guid = node->system_guid,
            .name = intern(b, fab_snapshot_reuse_device(b, i), fab_str(inv, node->name)),
            .sw = device->sw,
            .mbps = fab_rate_mbps(port->width, port->speed),
            .port = port->num,
            .switch_port = device->sw == FAB_NONE ? 0 : inv->ports[fab_port_far(inv, port)].num,
            .state = compile_port_state(port),
            .seen = seen_of(b, device->port),
        };
        host[i] = device->host;
    }
}

static void write_hosts(struct snap_build *b)
{
    const struct fab_inventory *inv = b->plane->inv;
    struct snap_host *out = fab_snapshot_section(b, SNAP_HOSTS);

    for (uint32_t i = 0; i < b->meta.n_hosts; i++) {
        const struct fab_host *host = &b->plane->hosts[i];
        out[i] = (struct snap_host){.name = intern(b, fab_snapshot_reuse_host(b, host->first), host->name),
                                    .first = host->first};
        b->meta.n_unnamed += inv->nodes[inv->ports[b->plane->devices[host->first].port].node].unnamed != 0;
    }
}

/* Devices of a host are neighbours, so a host is counted once on a switch if the switch remembers the last.
 */
static int write_switches(struct snap_build *b)
{
    const struct fab_inventory *inv = b->plane->inv;
    struct snap_switch *out = fab_snapshot_section(b, SNAP_SWITCHES);
    uint32_t *last_host = malloc((b->meta.n_switches + (size_t)1) * sizeof(*last_host)), past = 0;

    if (last_host == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < b->meta.n_switches; i++) {
        const struct fab_node *node = &inv->nodes[b->plane->switches[i].node];
        out[i] = (struct snap_switch){
            .guid = node->guid,
            .name = intern(b, fab_snapshot_reuse_switch(b, node->guid, &past), fab_str(inv, node->name)),
            .level = b->geometry->level[i],
            .n_ports = node->num_ports,
            .missing = node->missing,
        };
        last_host[i] = FAB_NONE;
    }
    for (uint32_t i = 0; i < b->meta.n_devices; i++) {
        const struct fab_device *device = &b->plane->devices[i];
        if (device->sw != FAB_NONE && last_host[device->sw] != device->host) {
            last_host[device->sw] = device->host;
            out[device->sw].n_hosts++;
        }
    }
    free(last_host);
    return PMIXFAB_OK;
}

/* The inventory's ports are in the order of their nodes' GUIDs, so others come out ascending. */
static int find_ends(struct snap_build *b)
{
    const struct fab_plane *plane = b->plane;
    const struct fab_inventory *inv = plane->inv;

    const size_t bytes = ((size_t)inv->n_ports + inv->n_nodes) * sizeof(*b->end_of_port);
    b->end_of_port = malloc(bytes + 1);
    if (b->end_of_port == NULL)
        return PMIXFAB_ERR_NOMEM;
    memset(b->end_of_port, 0xff, bytes);
    uint32_t *switch_of = b->end_of_port + inv->n_ports; /* per node, FAB_NONE */
    for (uint32_t i = 0; i < plane->n_switches; i++)
        switch_of[plane->switches[i].node] = i;
    for (uint32_t i = 0; i < plane->n_devices; i++)
        b->end_of_port[plane->devices[i].port] = SNAP_END_DEVICE | i;
    for (uint32_t i = 0; i < plane->n_cables; i++) {
        const uint32_t ends[2] = {plane->cables[i].a, plane->cables[i].b};
        for (unsigned e = 0; e < 2; e++) {
            uint32_t *end = &b->end_of_port[ends[e]];
            uint32_t sw = switch_of[inv->ports[ends[e]].node];
            if (*end == FAB_NONE)
                *end = sw != FAB_NONE ? SNAP_END_SWITCH | sw : SNAP_END_OTHER;
        }
    }
    uint32_t last = FAB_NONE;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        if (b->end_of_port[p] != SNAP_END_OTHER)
            continue;
        if (inv->ports[p].node != last)
            b->meta.n_others++;
        last = inv->ports[p].node;
        b->end_of_port[p] = SNAP_END_OTHER | (b->meta.n_others - 1);
    }
    return PMIXFAB_OK;
}

static void write_links(struct snap_build *b)
{
    const struct fab_plane *plane = b->plane;
    const struct fab_inventory *inv = plane->inv;
    struct snap_link *out = fab_snapshot_section(b, SNAP_LINKS);
    uint64_t *others = fab_snapshot_section(b, SNAP_OTHERS);
    uint32_t *kinds = fab_snapshot_section(b, SNAP_OTHER_KINDS);

    for (uint32_t i = 0; i < plane->n_cables; i++) {
        const struct fab_cable *cable = &plane->cables[i];
        out[i] = (struct snap_link){
            .a = b->end_of_port[cable->a],
            .b = b->end_of_port[cable->b],
            .mbps = cable->mbps,
            .cost = cable->cost,
            .a_port = inv->ports[cable->a].num,
            .b_port = inv->ports[cable->b].num,
        };
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t end = b->end_of_port[p];
        if (end == FAB_NONE || (end & SNAP_END_KIND) != SNAP_END_OTHER)
            continue;
        const struct fab_node *node = &inv->nodes[inv->ports[p].node];
        others[end & ~SNAP_END_KIND] = node->guid;
        kinds[end & ~SNAP_END_KIND] = node->kind == FAB_AGGREGATOR ? PMIXFAB_END_AGGREGATION
                                      : node->kind == FAB_ROUTER   ? PMIXFAB_END_ROUTER
                                                                   : PMIXFAB_END_OTHER;
    }
}

/* Devices by GUID, those of one in their order. */
static int write_index(struct snap_build *b, enum snap_section which)
{
    const struct snap_device *devices = fab_snapshot_section(b, SNAP_DEVICES);
    uint32_t *out = fab_snapshot_section(b, which);
    uint32_t n = b->meta.n_devices;
    struct fab_key *keys = malloc((2 * (size_t)n + 1) * sizeof(*keys));

    if (keys == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (struct fab_key){which == SNAP_BY_NODE ? devices[i].node_guid : devices[i].port_guid, i};
    fab_radix_sort(keys, keys + n, n);
    for (uint32_t i = 0; i < n; i++)
        out[i] = keys[i].index;
    free(keys);
    return PMIXFAB_OK;
}

/* memcpy that allows the null pointer of an empty array. */
static void copy_elements(void *to, const void *from, size_t size)
{
    if (size > 0)
        memcpy(to, from, size);
}

static void write_arrays(struct snap_build *b)
{
    const struct fab_cost_view *view = &b->costs->view;
    const struct snap_meta *meta = &b->meta;
    size_t n = meta->n_devices, edges = meta->n_edges;

    copy_elements(fab_snapshot_section(b, SNAP_EDGE), view->edge, n * sizeof(*view->edge));
    copy_elements(fab_snapshot_section(b, SNAP_ACCESS), view->access, n * sizeof(*view->access));
    copy_elements(fab_snapshot_section(b, SNAP_DIST), view->dist, edges * edges * sizeof(*view->dist));
    copy_elements(fab_snapshot_section(b, SNAP_LOGICAL), b->geometry->logical,
                  n * meta->dims * sizeof(uint32_t));
    copy_elements(fab_snapshot_section(b, SNAP_PHYSICAL), b->geometry->physical,
                  n * meta->physical_dims * sizeof(uint32_t));
    if (meta->n_groups > 0)
        copy_elements(fab_snapshot_section(b, SNAP_GROUP_START), b->groups->start,
                      (meta->n_groups + (size_t)1) * sizeof(uint32_t));
    copy_elements(fab_snapshot_section(b, SNAP_GROUP_MEMBER), b->groups->members,
                  meta->n_members * sizeof(uint32_t));
}

static int compile_describe(struct snap_build *b, const struct fab_snapshot_meta *given)
{
    static const struct snap_meta nothing;
    const struct fab_plane *plane = b->plane;
    const struct fab_geometry *geometry = b->geometry;
    struct snap_meta *meta = &b->meta;

    if (given->name == NULL || !fab_snapshot_name_ok(given->name) ||
        b->costs->view.n_devices != plane->n_devices || geometry->dims > PMIXFAB_MAX_DIMS ||
        geometry->physical_dims > PMIXFAB_MAX_DIMS ||
        (b->details != NULL && b->details->n_ports != plane->inv->n_ports))
        return PMIXFAB_ERR_INVAL;
    if (plane->n_devices >= SNAP_END_SWITCH || plane->n_switches >= SNAP_END_SWITCH)
        return PMIXFAB_ERR_RANGE;
    const struct pmixfab *before = b->before;
    int rc = before == NULL ? fab_strings_init(&b->strings)
                            : fab_strings_begin(&b->strings, before->strings, before->meta->string_bytes);
    if (rc != 0)
        return rc;

    meta->n_devices = plane->n_devices;
    meta->n_hosts = plane->n_hosts;
    meta->n_switches = plane->n_switches;
    meta->n_links = plane->n_cables;
    meta->n_groups = b->groups->n;
    meta->n_members = b->groups->n_members;
    meta->n_edges = b->costs->view.n_edges;
    meta->n_strays = b->geometry->units.n_strays;
    meta->index = given->index;
    meta->is_default = given->is_default != 0;
    const struct snap_meta *was = before == NULL ? &nothing : before->meta;
    meta->name = intern(b, was->name, given->name);
    meta->vendor = intern(b, was->vendor, given->vendor == NULL ? "" : given->vendor);
    meta->identifier = intern(b, was->identifier, given->identifier == NULL ? "" : given->identifier);
    meta->kind = intern(b, was->kind, fab_kind_name(geometry->kind));
    meta->n_missing = plane->n_missing;
    meta->fastest_mbps = plane->fastest_mbps;
    meta->dims = geometry->dims;
    meta->physical_dims = geometry->physical_dims;
    copy_elements(meta->shape, geometry->shape, geometry->dims * sizeof(uint32_t));
    copy_elements(meta->physical_shape, geometry->physical_shape, geometry->physical_dims * sizeof(uint32_t));
    fab_snapshot_count_facts(b);
    return b->strings.error;
}

static int write_sections(struct snap_build *b)
{
    uint64_t size;
    int rc = fab_snapshot_layout(&b->meta, SNAP_VERSION, b->table, &size);

    if (rc != 0)
        return rc;
    /* With room for the strings that were there, so that it need not be moved when they are appended. */
    b->bytes = calloc(1, size + (b->before == NULL ? 0 : b->before->meta->string_bytes + (size_t)4096));
    if (b->bytes == NULL)
        return PMIXFAB_ERR_NOMEM;
    fab_large_pages(b->bytes, size);
    compile_write_devices(b);
    write_hosts(b);
    write_links(b);
    write_arrays(b);
    fab_snapshot_write_facts(b);
    rc = write_switches(b);
    if (rc == 0)
        fab_snapshot_write_groups(b);
    if (rc == 0)
        rc = write_index(b, SNAP_BY_NODE);
    if (rc == 0)
        rc = write_index(b, SNAP_BY_PORT);
    return rc != 0 ? rc : b->strings.error;
}

/* Now that the strings are known: append them, and write what stands in front. */
static int compile_complete(struct snap_build *b, const struct fab_snapshot_meta *given, size_t *size)
{
    uint64_t total;

    b->meta.string_bytes = b->strings.size;
    int rc = fab_snapshot_layout(&b->meta, SNAP_VERSION, b->table, &total);
    if (rc != 0)
        return rc;
    char *grown = realloc(b->bytes, total);
    if (grown == NULL)
        return PMIXFAB_ERR_NOMEM;
    b->bytes = grown;

    struct snap_head head = {
        .order = SNAP_ORDER,
        .version = SNAP_VERSION,
        .size = total,
        .generation = given->generation,
        .published = given->published,
    };
    memcpy(head.magic, SNAP_MAGIC, SNAP_MAGIC_SIZE);
    memcpy(b->bytes, &head, sizeof(head));
    memcpy(b->bytes + sizeof(head), &b->meta, sizeof(b->meta));
    memcpy(b->bytes + SNAP_TABLE, b->table, sizeof(b->table));
    memcpy(fab_snapshot_section(b, SNAP_STRINGS), b->strings.text, b->strings.size);
    fab_snapshot_seal(b->bytes);
    *size = total;
    return PMIXFAB_OK;
}

/* before: the strings stand where they stood in there. *untidy: too many of those are of no use. */
static int compile_all_sections(const struct fab_snapshot_meta *meta, const struct pmixfab *before,
                                struct snap_build *b, size_t *size, bool *untidy)
{
    b->before = before;
    int rc = compile_describe(b, meta);
    if (rc == 0)
        rc = fab_snapshot_find_reusable(b);
    if (rc == 0)
        rc = find_ends(b);
    if (rc == 0)
        rc = write_sections(b);
    *untidy = fab_strings_untidy(&b->strings);
    if (rc == 0 && !*untidy)
        rc = compile_complete(b, meta, size);
    if (rc != 0 || *untidy) {
        free(b->bytes);
        b->bytes = NULL;
    }
    fab_strings_destroy(&b->strings);
    free(b->end_of_port);
    free(b->was);
    return rc;
}

int fab_snapshot_build(const struct fab_plane *plane, const struct fab_costs *costs,
                       const struct fab_geometry *geometry, const struct fab_groups *groups,
                       const struct fab_details *details, const struct fab_snapshot_meta *meta, void **bytes,
                       size_t *size)
{
    if (plane == NULL || plane->inv == NULL || costs == NULL || geometry == NULL || groups == NULL ||
        meta == NULL || bytes == NULL || size == NULL)
        return PMIXFAB_ERR_INVAL;
    *bytes = NULL;
    *size = 0;

    const struct snap_build given = {
        .plane = plane, .costs = costs, .geometry = geometry, .groups = groups, .details = details};
    struct snap_build b = given;
    bool untidy;
    int rc = compile_all_sections(meta, meta->before, &b, size, &untidy);
    if (rc == 0 && untidy) {
        b = given;
        rc = compile_all_sections(meta, NULL, &b, size, &untidy);
    }
    if (rc == 0)
        *bytes = b.bytes;
    return rc;
}
