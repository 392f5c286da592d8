/*
 * compile.c - write one computed plane as a snapshot.
 *
 * A new text would shift the texts after it, and change every fact that points at one of them. Then a small
 * change of the fabric would change most of the snapshot's bytes. So strings keep their places from the last
 * snapshot. The code guesses a place and compares the string there.
 */
#include "topo/plane/compile.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/large_pages.h"
#include "topo/base/radix.h"
#include "topo/base/string_table.h"
#include "topo/model/details.h"
#include "topo/snapshot/reader.h"

struct snap_build {
    const struct fab_plane *plane;
    const struct fab_costs *costs;
    const struct fab_geometry *geometry;
    const struct fab_groups *groups;
    const struct fab_details *details; /* NULL: no facts */
    const struct pmixfab *before; /* the plane's last snapshot; NULL: none, or its strings are not kept */
    uint32_t *was;                /* the index there of each device; FAB_NONE; NULL without `before` */
    struct snap_meta meta;
    struct snap_entry table[SNAP_SECTIONS];
    char *bytes;                /* everything except the strings */
    struct fab_strings strings; /* they come last, so they can grow while the rest is written */
    uint32_t *end_of_port; /* per port of the inventory: the kind of the cable's end; FAB_NONE: no cable */
};

static inline void *compile_section(struct snap_build *b, enum snap_section which)
{
    return b->bytes + b->table[which].offset;
}

/* ---- strings of the last snapshot ------------------------------------------------------------------ */

/* Find `was`; the only error is missing memory. */
static int compile_find_reusable(struct snap_build *b)
{
    const struct pmixfab *before = b->before;
    const struct fab_plane *plane = b->plane;
    uint32_t next = 0;

    if (before == NULL)
        return PMIXFAB_OK;
    b->was = malloc((plane->n_devices + (size_t)1) * sizeof(*b->was));
    if (b->was == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        uint64_t guid = plane->inv->ports[plane->devices[i].port].guid;
        bool here = next < before->meta->n_devices && before->devices[next].port_guid == guid;
        b->was[i] = here ? next : fab_reader_port(before, guid); /* mostly the order is unchanged */
        next = b->was[i] == FAB_NONE ? next : b->was[i] + 1;
    }
    return PMIXFAB_OK;
}

/*
 * Return the former place of the name of a device, its host or a switch; 0: unknown. *at: start of the next
 * search.
 */
static uint32_t compile_reuse_device(const struct snap_build *b, uint32_t device)
{
    return b->was == NULL || b->was[device] == FAB_NONE ? 0 : b->before->devices[b->was[device]].name;
}

static uint32_t compile_reuse_host(const struct snap_build *b, uint32_t device)
{
    if (b->was == NULL || b->was[device] == FAB_NONE)
        return 0;
    return b->before->hosts[b->before->costs.host[b->was[device]]].name;
}

static uint32_t compile_reuse_switch(const struct snap_build *b, uint64_t guid, uint32_t *at)
{
    const struct pmixfab *before = b->before;

    if (before == NULL)
        return 0;
    while (*at < before->meta->n_switches && before->switches[*at].guid < guid)
        ++*at;
    if (*at == before->meta->n_switches || before->switches[*at].guid != guid)
        return 0;
    return before->switches[*at].name;
}

/* Return the device's *n facts of that snapshot. */
static const struct snap_fact *compile_reuse_facts(const struct snap_build *b, uint32_t device, uint32_t *n)
{
    *n = 0;
    if (b->was == NULL || b->was[device] == FAB_NONE || b->before->facts == NULL)
        return NULL;
    const uint32_t *at = b->before->fact_at + b->was[device];
    *n = at[1] - at[0];
    return b->before->facts + at[0];
}

/* ---- groups, units, rails -------------------------------------------------------------------------- */

#define NEAR 2 /* groups that may have been added or removed at one place */

/* Return the former place of a name made of a number. *at: start of the next search. */
static uint32_t compile_reuse_group(const struct snap_build *b, const char *name, uint32_t *at)
{
    const struct pmixfab *before = b->before;
    if (before == NULL || before->group_names == NULL)
        return 0;
    for (uint32_t g = *at; g < before->meta->n_groups && g <= *at + NEAR; g++) {
        if (strcmp(fab_reader_string(before, before->group_names[g]), name) != 0)
            continue;
        *at = g + 1;
        return before->group_names[g];
    }
    return 0;
}

/* Write names of groups; those of leaves and hosts are in the pool already. */
static void write_group_names(struct snap_build *b)
{
    const struct snap_switch *switches = compile_section(b, SNAP_SWITCHES);
    const struct snap_host *hosts = compile_section(b, SNAP_HOSTS);
    const struct fab_groups *groups = b->groups;
    uint32_t *names = compile_section(b, SNAP_GROUP_NAME), past = 0;

    for (uint32_t g = 0; g < b->meta.n_groups; g++) {
        uint32_t first = groups->members[groups->start[g]];
        if (groups->leaf[g] != FAB_NONE)
            names[g] = switches[groups->leaf[g]].name;
        else if (groups->names[g] == b->plane->hosts[first].name)
            names[g] = hosts[first].name;
        else
            names[g] = fab_strings_take(&b->strings, compile_reuse_group(b, groups->names[g], &past),
                                        groups->names[g]);
    }
}

/* Write names of groups, units and rails, after hosts and switches. */
static void compile_write_groups(struct snap_build *b)
{
    const struct fab_units *units = &b->geometry->units;
    struct snap_rail *rails = compile_section(b, SNAP_RAILS);
    struct snap_stray *strays = compile_section(b, SNAP_STRAYS);

    write_group_names(b);
    for (uint32_t s = 0; s < b->meta.n_switches; s++) {
        uint32_t unit = units->unit[s];
        rails[s] = (struct snap_rail){unit == FAB_NONE ? FAB_NONE : units->label[unit], units->rail[s]};
    }
    for (uint32_t i = 0; i < b->meta.n_strays; i++)
        strays[i] = (struct snap_stray){units->strays[i].device, units->strays[i].sw,
                                        units->label[units->strays[i].unit]};
}

/* ---- facts of devices -------------------------------------------------------------------------------- */

static bool known_place(const struct fab_locality *place)
{
    return place->card != 0 || place->sw != 0 || place->numa != 0 || place->package != 0;
}

static void compile_count_facts(struct snap_build *b)
{
    const struct fab_details *details = b->details;
    uint64_t facts = 0;

    for (uint32_t i = 0; i < b->plane->n_devices; i++) {
        uint32_t port = b->plane->devices[i].port;
        facts += b->plane->devices[i].compute;
        if (details == NULL)
            continue;
        facts += details->first[port + 1] - details->first[port];
        if (known_place(&details->places[port]))
            b->meta.n_places = b->plane->n_devices;
        if (details->seen[port] == 0) /* seen by no source: an error */
            b->strings.error = PMIXFAB_ERR_INVAL;
    }
    if (facts > UINT32_MAX)
        b->strings.error = PMIXFAB_ERR_RANGE;
    b->meta.n_facts = (uint32_t)facts;
}

/* Guess the former place of the text of fact number `at` of a device; 0: unknown. */
static uint32_t past_text(const struct snap_build *b, uint32_t device, uint32_t at, uint8_t kind)
{
    uint32_t n;
    const struct snap_fact *past = compile_reuse_facts(b, device, &n);
    if (at < n && past[at].kind == kind) /* mostly the number of its facts is unchanged */
        return past[at].text;
    for (uint32_t f = 0; f < n; f++)
        if (past[f].kind == kind)
            return past[f].text;
    return 0;
}

static void compile_write_facts(struct snap_build *b)
{
    const struct fab_details *details = b->details;
    struct fab_locality *places = compile_section(b, SNAP_PLACES);
    uint32_t *at = compile_section(b, SNAP_FACT_AT), n = 0;
    struct snap_fact *facts = compile_section(b, SNAP_FACTS);

    for (uint32_t i = 0; i < b->meta.n_places; i++)
        places[i] = details->places[b->plane->devices[i].port];
    if (b->meta.n_facts == 0)
        return;
    /* A text is in the details once, so its offset there finds the written one; 0: not written yet. */
    uint32_t *known = calloc(details != NULL ? details->pool_size : 1, sizeof(*known));
    if (known == NULL)
        b->strings.error = PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; known != NULL && i < b->plane->n_devices; i++) {
        uint32_t port = b->plane->devices[i].port, first = details != NULL ? details->first[port] : 0;
        for (uint32_t f = first; details != NULL && f < details->first[port + 1]; f++) {
            const struct fab_detail *detail = &details->facts[f];
            uint32_t *text = &known[detail->text];
            if (*text == 0)
                *text = fab_strings_take(&b->strings, past_text(b, i, f - first, detail->kind),
                                         details->pool + detail->text);
            facts[n++] = (struct snap_fact){
                .text = *text,
                .sources = detail->sources,
                .kind = detail->kind,
                .flags = detail->flags,
            };
        }
        if (b->plane->devices[i].compute) {
            const uint32_t past = past_text(b, i, n - at[i], FAB_FACT_COMPUTE);
            facts[n++] = (struct snap_fact){.text = fab_strings_take(&b->strings, past, "yes"),
                                            .sources = 1u << FAB_FROM_SUBNET,
                                            .kind = FAB_FACT_COMPUTE,
                                            .flags = FAB_DETAIL_CHOSEN};
        }
        at[i + 1] = n;
    }
    free(known);
}

/* ---- devices, hosts, switches, links --------------------------------------------------------------- */

static uint32_t intern(struct snap_build *b, uint32_t past, const char *text)
{
    return fab_strings_take(&b->strings, past, text);
}

/* A port that is not active carries no traffic: jobs must not be placed on it. */
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
    struct snap_device *out = compile_section(b, SNAP_DEVICES);
    uint32_t *host = compile_section(b, SNAP_HOST);

    for (uint32_t i = 0; i < b->meta.n_devices; i++) {
        const struct fab_device *device = &b->plane->devices[i];
        const struct fab_port *port = &inv->ports[device->port];
        const struct fab_node *node = &inv->nodes[port->node];
        out[i] = (struct snap_device){
            .node_guid = node->guid,
            .port_guid = port->guid,
            .system_guid = node->system_guid,
            .name = intern(b, compile_reuse_device(b, i), fab_str(inv, node->name)),
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
    struct snap_host *out = compile_section(b, SNAP_HOSTS);

    for (uint32_t i = 0; i < b->meta.n_hosts; i++) {
        const struct fab_host *host = &b->plane->hosts[i];
        out[i] = (struct snap_host){.name = intern(b, compile_reuse_host(b, host->first), host->name),
                                    .first = host->first};
        b->meta.n_unnamed += inv->nodes[inv->ports[b->plane->devices[host->first].port].node].unnamed != 0;
    }
}

/* Devices of a host are neighbours, so a host is counted once on a switch that remembers the last host. */
static int write_switches(struct snap_build *b)
{
    const struct fab_inventory *inv = b->plane->inv;
    struct snap_switch *out = compile_section(b, SNAP_SWITCHES);
    uint32_t *last_host = malloc((b->meta.n_switches + (size_t)1) * sizeof(*last_host)), past = 0;

    if (last_host == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < b->meta.n_switches; i++) {
        const struct fab_node *node = &inv->nodes[b->plane->switches[i].node];
        out[i] = (struct snap_switch){
            .guid = node->guid,
            .name = intern(b, compile_reuse_switch(b, node->guid, &past), fab_str(inv, node->name)),
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

/*
 * The inventory's ports are in the order of their nodes' GUIDs, so the other nodes are written in ascending
 * order.
 */
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
    struct snap_link *out = compile_section(b, SNAP_LINKS);
    uint64_t *others = compile_section(b, SNAP_OTHERS);
    uint32_t *kinds = compile_section(b, SNAP_OTHER_KINDS);

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

/* Write devices by GUID; devices of one GUID stay in order. */
static int write_index(struct snap_build *b, enum snap_section which)
{
    const struct snap_device *devices = compile_section(b, SNAP_DEVICES);
    uint32_t *out = compile_section(b, which);
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

/* memcpy() that accepts the null pointer of an empty array. */
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

    copy_elements(compile_section(b, SNAP_EDGE), view->edge, n * sizeof(*view->edge));
    copy_elements(compile_section(b, SNAP_ACCESS), view->access, n * sizeof(*view->access));
    copy_elements(compile_section(b, SNAP_DIST), view->dist, edges * edges * sizeof(*view->dist));
    copy_elements(compile_section(b, SNAP_LOGICAL), b->geometry->logical, n * meta->dims * sizeof(uint32_t));
    copy_elements(compile_section(b, SNAP_PHYSICAL), b->geometry->physical,
                  n * meta->physical_dims * sizeof(uint32_t));
    if (meta->n_groups > 0)
        copy_elements(compile_section(b, SNAP_GROUP_START), b->groups->start,
                      (meta->n_groups + (size_t)1) * sizeof(uint32_t));
    copy_elements(compile_section(b, SNAP_GROUP_MEMBER), b->groups->members,
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
    compile_count_facts(b);
    return b->strings.error;
}

static int write_sections(struct snap_build *b)
{
    uint64_t size;
    int rc = fab_snapshot_layout(&b->meta, SNAP_VERSION, b->table, &size);

    if (rc != 0)
        return rc;
    /* Include room for the former strings, so that the memory need not move when they are appended. */
    b->bytes = calloc(1, size + (b->before == NULL ? 0 : b->before->meta->string_bytes + (size_t)4096));
    if (b->bytes == NULL)
        return PMIXFAB_ERR_NOMEM;
    fab_large_pages(b->bytes, size);
    compile_write_devices(b);
    write_hosts(b);
    write_links(b);
    write_arrays(b);
    compile_write_facts(b);
    rc = write_switches(b);
    if (rc != 0)
        return rc;
    compile_write_groups(b);
    return write_index(b, SNAP_BY_NODE) ?: write_index(b, SNAP_BY_PORT) ?: b->strings.error;
}

/* Once the strings are complete, append them and write the parts at the front. */
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
    memcpy(compile_section(b, SNAP_STRINGS), b->strings.text, b->strings.size);
    fab_snapshot_seal(b->bytes);
    *size = total;
    return PMIXFAB_OK;
}

/* before: its strings keep their places. *untidy: too many of those are unused. */
static int compile_all_sections(const struct fab_snapshot_meta *meta, const struct pmixfab *before,
                                struct snap_build *b, size_t *size, bool *untidy)
{
    b->before = before;
    int rc = compile_describe(b, meta) ?: compile_find_reusable(b) ?: find_ends(b) ?: write_sections(b);
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
