/* site.c - the fabric of a simulation: nodes and cables, and the hands that change them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/capture/capture_file.h"
#include "test/fabrics/fabrics.h"
#include "test/sim/played.h"
#include "test/sim/site.h"

#define SITE_ROOM 36 /* so many ports has a switch, for cables that are moved */

static void *must_grow(void *array, size_t n, size_t size)
{
    void *grown = realloc(array, (n + 1) * size);
    if (grown == NULL)
        sim_fail("out of memory");
    return grown;
}

/* ---- reading it
 * --------------------------------------------------------------------------------------------------- */

/* Of the second fabric of a site and so on: GUIDs of its own, switches called "leaf1b", hosts' next HCA. */
static void take_as_other(struct site_node *to, unsigned fabric)
{
    const uint64_t offset = UINT64_C(0x10000000) * fabric;
    char name[40];
    to->node.guid += offset;
    to->node.system_guid += to->node.system_guid != 0 ? offset : 0;
    for (unsigned num = 0; num < SITE_PORTS; num++)
        to->ports[num].guid += to->ports[num].guid != 0 ? offset : 0;
    snprintf(name, sizeof(name), "%.30s", to->name);
    if (to->node.kind == FAB_SWITCH) {
        snprintf(to->name, sizeof(to->name), "%s%c", name, 'a' + fabric);
        snprintf(to->description, sizeof(to->description), "%s", to->name);
    } else {
        snprintf(to->name, sizeof(to->name), "%s-%u", name, fabric + 1);
        snprintf(to->description, sizeof(to->description), "%s HCA-%u", name, fabric + 1);
    }
}

static void site_take_node(struct site *site, const struct fab_inventory *inv, uint32_t at, unsigned fabric)
{
    const struct fab_node *node = &inv->nodes[at];
    struct site_node *to;
    site->nodes = must_grow(site->nodes, site->n_nodes, sizeof(*site->nodes));
    to = &site->nodes[site->n_nodes++];
    *to = (struct site_node){.node = *node, .there = true};
    fabric_node_name(inv, at, to->name, sizeof(to->name));
    snprintf(to->description, sizeof(to->description), "%s", fab_str(inv, node->desc));
    for (uint32_t i = 0; i < node->n_ports; i++) {
        const struct fab_port *port = &inv->ports[node->first_port + i];
        if (port->num >= SITE_PORTS)
            continue;
        to->ports[port->num] = *port;
        to->ports[port->num].subnet = (uint8_t)(port->subnet + site->n_subnets);
        to->disabled[port->num] = port->state == FAB_PORT_DISABLED;
    }
    if (fabric > 0)
        take_as_other(to, fabric);
}

static void site_take_cable(struct site *site, const struct fab_inventory *inv, uint32_t at, uint32_t first)
{
    const struct fab_port *a = &inv->ports[at], *b = &inv->ports[a->peer];
    site->cables = must_grow(site->cables, site->n_cables, sizeof(*site->cables));
    site->cables[site->n_cables++] = (struct site_cable){.node = {first + a->node, first + b->node},
                                                         .port = {a->num, b->num},
                                                         .width = a->width,
                                                         .speed = a->speed,
                                                         .state = a->state,
                                                         .plugged = true};
}

static void site_read(const char *fabric, struct fab_inventory *inv)
{
    struct fab_err err = {""};
    const struct probe_config config = {.arg = fabric};
    int rc;
    if (fabric[0] == '/') {
        fab_inventory_init(inv);
        rc = probe_file.run(&config, NULL, inv, &err);
    } else {
        rc = fabric_parse(fabric, inv);
    }
    if (rc != PMIXFAB_OK)
        sim_fail("%s: %s", fabric, err.text[0] != '\0' ? err.text : pmixfab_strerror(rc));
}

/* Of each pair of nodes whether cables between switches connect them: the same number. */
static uint32_t part_of(uint32_t *parts, uint32_t node)
{
    while (parts[node] != node)
        node = parts[node] = parts[parts[node]];
    return node;
}

static uint32_t *site_parts(const struct site *site, uint32_t but)
{
    uint32_t *parts = must_grow(NULL, site->n_nodes, sizeof(*parts));
    for (uint32_t i = 0; i < site->n_nodes; i++)
        parts[i] = i;
    for (uint32_t i = 0; i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        if (site_cable_is_up(site, cable) && cable->node[0] != but && cable->node[1] != but &&
            site->nodes[cable->node[0]].node.kind == FAB_SWITCH &&
            site->nodes[cable->node[1]].node.kind == FAB_SWITCH)
            parts[part_of(parts, cable->node[0])] = part_of(parts, cable->node[1]);
    }
    return parts;
}

static void site_add(struct site *site, const struct fab_inventory *inv, unsigned fabric)
{
    const uint32_t first = site->n_nodes;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        site_take_node(site, inv, i, fabric);
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (inv->ports[i].peer != FAB_NONE && i < inv->ports[i].peer)
            site_take_cable(site, inv, i, first);
    for (uint32_t i = 0; i < inv->n_subnets; i++)
        site->prefixes[site->n_subnets++] = inv->subnets[i].prefix + fabric;
}

static struct site *site_empty(void)
{
    struct site *site = must_grow(NULL, 0, sizeof(*site));
    memset(site, 0, sizeof(*site));
    site->home = FAB_NONE;
    return site;
}

static void site_find_islands(struct site *site)
{
    uint32_t *parts = site_parts(site, FAB_NONE);
    for (uint32_t i = 0; i < site->n_nodes; i++)
        site->nodes[i].island = part_of(parts, i);
    free(parts);
}

struct site *site_of(const struct fab_inventory *inv)
{
    struct site *site = site_empty();
    site_add(site, inv, 0);
    site_find_islands(site);
    return site;
}

void site_room(struct site *site, unsigned ports)
{
    for (uint32_t i = 0; i < site->n_nodes; i++) {
        struct site_node *node = &site->nodes[i];
        unsigned least = SITE_PORTS - 1;
        while (least > 1 && node->ports[least].width == 0)
            least--;
        if (node->node.kind == FAB_SWITCH)
            node->node.num_ports = (uint8_t)(ports > least ? ports : least);
    }
    site->version++;
}

struct site *site_new(const char *fabrics)
{
    struct site *site = site_empty();
    char *list = strdup(fabrics), *rest = list;
    for (unsigned fabric = 0; rest != NULL; fabric++) {
        struct fab_inventory inv;
        site_read(strsep(&rest, "+"), &inv);
        site_add(site, &inv, fabric);
        fab_inventory_destroy(&inv);
    }
    free(list);
    site_find_islands(site);
    site_room(site, SITE_ROOM);
    return site;
}

static uint64_t *counters_copy(const uint64_t *counters)
{
    const size_t size = (size_t)SITE_PORTS * PROBE_COUNTERS * sizeof(*counters);
    return memcpy(must_grow(NULL, size, 1), counters, size);
}

struct site *site_copy(const struct site *site)
{
    struct site *copy = must_grow(NULL, 1, sizeof(*copy));
    *copy = *site;
    copy->swept_once = false;
    copy->nodes = must_grow(NULL, site->n_nodes, sizeof(*site->nodes));
    memcpy(copy->nodes, site->nodes, site->n_nodes * sizeof(*site->nodes));
    copy->cables = must_grow(NULL, site->n_cables, sizeof(*site->cables));
    memcpy(copy->cables, site->cables, site->n_cables * sizeof(*site->cables));
    for (uint32_t i = 0; i < copy->n_nodes; i++)
        if (copy->nodes[i].counters != NULL)
            copy->nodes[i].counters = counters_copy(site->nodes[i].counters);
    return copy;
}

void site_free(struct site *site)
{
    if (site == NULL)
        return;
    if (site->swept_once)
        fab_inventory_destroy(&site->swept);
    for (uint32_t i = 0; i < site->n_nodes; i++)
        free(site->nodes[i].counters);
    free(site->nodes);
    free(site->cables);
    free(site);
}

uint64_t site_version(const struct site *site)
{
    return site->version;
}

uint32_t site_find(const struct site *site, const char *name)
{
    for (uint32_t i = 0; i < site->n_nodes; i++)
        if (strcmp(site->nodes[i].name, name) == 0)
            return i;
    return FAB_NONE;
}

uint32_t site_find_guid(const struct site *site, uint64_t guid)
{
    for (uint32_t i = 0; i < site->n_nodes; i++)
        if (site->nodes[i].there && site->nodes[i].node.guid == guid)
            return i;
    return FAB_NONE;
}

void site_add_cable(struct site *site, const struct site_cable *cable)
{
    site->cables = must_grow(site->cables, site->n_cables, sizeof(*site->cables));
    site->cables[site->n_cables++] = *cable;
}

uint32_t site_renew_node(struct site *site, const struct site_node *node)
{
    uint32_t at = site_find_guid(site, node->node.guid);
    if (at == FAB_NONE) {
        site->nodes = must_grow(site->nodes, site->n_nodes, sizeof(*site->nodes));
        at = site->n_nodes++;
        site->nodes[at].island = at;
    }
    const uint32_t island = site->nodes[at].island;
    site->nodes[at] = *node;
    site->nodes[at].island = island;
    site->nodes[at].counters = NULL;
    return at;
}

/* ---- as a sweep sees it
 * ----------------------------------------------------------------------------------------------- */

bool site_cable_is_up(const struct site *site, const struct site_cable *cable)
{
    for (unsigned end = 0; end < 2; end++)
        if (!site->nodes[cable->node[end]].there || site->nodes[cable->node[end]].disabled[cable->port[end]])
            return false;
    return cable->plugged;
}

static int sweep_node(const struct site *site, uint32_t at, struct fab_inventory *inv, uint32_t *index)
{
    const struct site_node *from = &site->nodes[at];
    struct fab_node node = from->node;
    node.desc = fab_inventory_string(inv, from->description, strlen(from->description));
    node.host = node.name = 0;
    return fab_inventory_add_node(inv, &node, index);
}

/* One end of a cable, or a port without one in that state. */
static int sweep_port(const struct site *site, uint32_t at, unsigned num, const struct site_cable *cable,
                      unsigned state, uint32_t node, struct fab_inventory *inv, uint32_t *index)
{
    struct fab_port port = site->nodes[at].ports[num];
    port.node = node;
    port.num = (uint8_t)num;
    port.peer = FAB_NONE;
    port.state = (uint8_t)state;
    if (cable != NULL) {
        port.width = cable->width;
        port.speed = cable->speed;
    } else if (state == FAB_PORT_DISABLED || state == FAB_PORT_LOOPED) {
        port.width = port.speed = 0;
    }
    return fab_inventory_add_port(inv, &port, index);
}

/* Of each part that was one island at first, the one that sweeps reach: with most nodes, or with the home. */
static void find_parts(const struct site *site, uint32_t *parts, uint32_t but, bool *reached)
{
    uint32_t *sizes = calloc(site->n_nodes + 1, sizeof(*sizes));
    uint32_t *best = must_grow(NULL, site->n_nodes, sizeof(*best));
    if (sizes == NULL)
        sim_fail("out of memory");
    for (uint32_t i = 0; i < site->n_nodes; i++) {
        best[i] = FAB_NONE;
        sizes[part_of(parts, i)]++;
    }
    for (uint32_t i = 0; i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        for (unsigned end = 0; site_cable_is_up(site, cable) && end < 2; end++)
            if (site->nodes[cable->node[end]].node.kind != FAB_SWITCH)
                sizes[part_of(parts, cable->node[1 - end])] += cable->node[end] == site->home ? 1u << 20 : 1;
    }
    for (uint32_t i = 0; i < site->n_nodes; i++) {
        const uint32_t part = part_of(parts, i), island = site->nodes[i].island;
        if (site->nodes[i].node.kind == FAB_SWITCH && site->nodes[i].there && i != but &&
            (best[island] == FAB_NONE || sizes[part] > sizes[best[island]]))
            best[island] = part;
    }
    for (uint32_t i = 0; i < site->n_nodes; i++)
        if (best[i] != FAB_NONE)
            reached[best[i]] = true;
    free(sizes);
    free(best);
}

/* Switches of the parts that are reached, and HCAs through their cables. */
static void find_reached(const struct site *site, uint32_t but, bool *reached)
{
    uint32_t *parts = site_parts(site, but);
    bool *good = calloc(site->n_nodes + 1, sizeof(*good));
    if (good == NULL)
        sim_fail("out of memory");
    find_parts(site, parts, but, good);
    for (uint32_t i = 0; i < site->n_nodes; i++)
        reached[i] = site->nodes[i].there && i != but && site->nodes[i].node.kind == FAB_SWITCH &&
                     good[part_of(parts, i)];
    for (uint32_t i = 0; i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        if (!site_cable_is_up(site, cable))
            continue;
        bool is_switch[2];
        for (unsigned end = 0; end < 2; end++)
            is_switch[end] = site->nodes[cable->node[end]].node.kind == FAB_SWITCH;
        for (unsigned end = 0; end < 2; end++)
            if (!is_switch[end] && cable->node[end] != but &&
                (!is_switch[1 - end] || reached[cable->node[1 - end]]))
                reached[cable->node[end]] = true;
    }
    free(parts);
    free(good);
}

/* Where only one end is seen, its port leads nowhere. */
static int sweep_cables(const struct site *site, const bool *reached, const uint32_t *nodes,
                        struct fab_inventory *inv, bool (*cabled)[SITE_PORTS])
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        const bool looped = cable->node[0] == cable->node[1];
        uint32_t ends[2];
        if (!site_cable_is_up(site, cable))
            continue;
        for (unsigned end = 0; rc == PMIXFAB_OK && end < 2; end++) {
            const uint32_t at = cable->node[end];
            if (!reached[at])
                continue;
            cabled[at][cable->port[end]] = true;
            rc = sweep_port(site, at, cable->port[end], looped ? NULL : cable,
                            looped ? FAB_PORT_LOOPED : cable->state, nodes[at], inv, &ends[end]);
        }
        if (rc == PMIXFAB_OK && !looped && reached[cable->node[0]] && reached[cable->node[1]])
            rc = fab_inventory_link(inv, ends[0], ends[1]);
    }
    return rc;
}

/* Ports without a link: of an HCA, and those that are disabled. */
static int sweep_other_ports(const struct site *site, const bool *reached, const uint32_t *nodes,
                             struct fab_inventory *inv, bool (*cabled)[SITE_PORTS])
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < site->n_nodes; i++)
        for (unsigned num = 1; rc == PMIXFAB_OK && num < SITE_PORTS; num++)
            if (reached[i] && !cabled[i][num] &&
                (site->nodes[i].ports[num].guid != 0 || site->nodes[i].disabled[num]))
                rc = sweep_port(site, i, num, NULL,
                                site->nodes[i].disabled[num] ? FAB_PORT_DISABLED : FAB_PORT_DOWN, nodes[i],
                                inv, &(uint32_t){0});
    return rc;
}

static void site_sweep(const struct site *site, const char *but, struct fab_inventory *inv)
{
    uint32_t *nodes = must_grow(NULL, site->n_nodes, sizeof(*nodes));
    bool *reached = must_grow(NULL, site->n_nodes, sizeof(*reached));
    bool(*cabled)[SITE_PORTS] = calloc(site->n_nodes + 1, sizeof(*cabled));
    int rc = cabled == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    struct fab_err err = {""};
    fab_inventory_init(inv);
    inv->n_subnets = site->n_subnets;
    for (uint32_t i = 0; i < site->n_subnets; i++)
        inv->subnets[i].prefix = site->prefixes[i];
    find_reached(site, but == NULL ? FAB_NONE : site_find(site, but), reached);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < site->n_nodes; i++)
        if (reached[i])
            rc = sweep_node(site, i, inv, &nodes[i]);
    if (rc == PMIXFAB_OK)
        rc = sweep_cables(site, reached, nodes, inv, cabled);
    if (rc == PMIXFAB_OK)
        rc = sweep_other_ports(site, reached, nodes, inv, cabled);
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_finish(inv, &err);
    if (rc != PMIXFAB_OK)
        sim_fail("the site is no fabric: %s %s", pmixfab_strerror(rc), err.text);
    free(nodes);
    free(reached);
    free(cabled);
}

bool site_is_cut_off(const struct site *site)
{
    for (uint32_t i = 0; site->home != FAB_NONE && i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        if (site_cable_is_up(site, cable) && (cable->node[0] == site->home || cable->node[1] == site->home))
            return false;
    }
    return site->home != FAB_NONE;
}

bool site_count(const struct site *site, const char *but, uint64_t guid, unsigned port,
                uint64_t value[PROBE_COUNTERS])
{
    const uint32_t at = site_find_guid(site, guid);
    if (at == FAB_NONE || port >= SITE_PORTS || (but != NULL && strcmp(but, site->nodes[at].name) == 0))
        return false;
    for (unsigned i = 0; i < PROBE_COUNTERS; i++)
        value[i] = site->nodes[at].counters == NULL ? 0 : site->nodes[at].counters[port * PROBE_COUNTERS + i];
    return true;
}

void site_inventory(struct site *site, const char *but, struct fab_inventory *inv)
{
    if (but != NULL) {
        site_sweep(site, but, inv);
        return;
    }
    if (!site->swept_once || site->swept_version != site->version) {
        if (site->swept_once)
            fab_inventory_destroy(&site->swept);
        site_sweep(site, NULL, &site->swept);
        site->swept_once = true;
        site->swept_version = site->version;
    }
    if (fab_inventory_copy(inv, &site->swept) != PMIXFAB_OK)
        sim_fail("out of memory");
}

uint64_t site_hca(const struct site *site, const char *host, unsigned at, uint64_t *port_guid)
{
    for (uint32_t i = 0; i < site->n_nodes; i++) {
        const struct site_node *node = &site->nodes[i];
        const size_t len = strcspn(node->description, " ");
        if (node->node.kind != FAB_HCA || !node->there || strlen(host) != len ||
            strncmp(node->description, host, len) != 0)
            continue;
        for (unsigned num = 1; num < SITE_PORTS; num++)
            if (node->ports[num].guid != 0 && at-- == 0) {
                *port_guid = node->ports[num].guid;
                return node->node.guid;
            }
    }
    return 0;
}
