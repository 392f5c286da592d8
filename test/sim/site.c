/* site.c - the fabric of a simulation: nodes and cables, and the hands that change them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/capture/file.h"
#include "test/fabrics/fabrics.h"
#include "test/sim/played.h"
#include "test/sim/site.h"

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
        if (port->num < SITE_PORTS)
            to->ports[port->num] = *port;
        to->ports[port->num].subnet = (uint8_t)(port->subnet + site->n_subnets);
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

static void site_add(struct site *site, const char *text, unsigned fabric)
{
    struct fab_inventory inv;
    const uint32_t first = site->n_nodes;
    site_read(text, &inv);
    for (uint32_t i = 0; i < inv.n_nodes; i++)
        site_take_node(site, &inv, i, fabric);
    for (uint32_t i = 0; i < inv.n_ports; i++)
        if (inv.ports[i].peer != FAB_NONE && i < inv.ports[i].peer)
            site_take_cable(site, &inv, i, first);
    for (uint32_t i = 0; i < inv.n_subnets; i++)
        site->prefixes[site->n_subnets++] = inv.subnets[i].prefix + fabric;
    fab_inventory_destroy(&inv);
}

struct site *site_new(const char *fabrics)
{
    struct site *site = must_grow(NULL, 0, sizeof(*site));
    char *list = strdup(fabrics), *rest = list;
    memset(site, 0, sizeof(*site));
    for (unsigned fabric = 0; rest != NULL; fabric++)
        site_add(site, strsep(&rest, "+"), fabric);
    free(list);
    return site;
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
    return copy;
}

void site_free(struct site *site)
{
    if (site == NULL)
        return;
    if (site->swept_once)
        fab_inventory_destroy(&site->swept);
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

/* ---- as a sweep sees it
 * ----------------------------------------------------------------------------------------------- */

static bool is_seen(const struct site *site, const struct site_cable *cable, uint32_t but)
{
    for (unsigned end = 0; end < 2; end++)
        if (!site->nodes[cable->node[end]].there || cable->node[end] == but)
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

/* One end of a cable; an HCA's port without one is down. */
static int sweep_port(const struct site *site, uint32_t at, unsigned num, const struct site_cable *cable,
                      uint32_t node, struct fab_inventory *inv, uint32_t *index)
{
    struct fab_port port = site->nodes[at].ports[num];
    port.node = node;
    port.num = (uint8_t)num;
    port.peer = FAB_NONE;
    port.state = cable == NULL ? FAB_PORT_DOWN : cable->state;
    if (cable != NULL) {
        port.width = cable->width;
        port.speed = cable->speed;
    }
    return fab_inventory_add_port(inv, &port, index);
}

/* HCAs are found through their cables only. */
static void find_reached(const struct site *site, uint32_t but, bool *reached)
{
    for (uint32_t i = 0; i < site->n_nodes; i++)
        reached[i] = site->nodes[i].there && i != but && site->nodes[i].node.kind == FAB_SWITCH;
    for (uint32_t i = 0; i < site->n_cables; i++)
        if (is_seen(site, &site->cables[i], but))
            reached[site->cables[i].node[0]] = reached[site->cables[i].node[1]] = true;
}

static int sweep_cables(const struct site *site, uint32_t but, const uint32_t *nodes,
                        struct fab_inventory *inv, bool (*cabled)[SITE_PORTS])
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        uint32_t ends[2];
        if (!is_seen(site, cable, but))
            continue;
        for (unsigned end = 0; rc == PMIXFAB_OK && end < 2; end++) {
            const uint32_t at = cable->node[end];
            cabled[at][cable->port[end]] = true;
            rc = sweep_port(site, at, cable->port[end], cable, nodes[at], inv, &ends[end]);
        }
        if (rc == PMIXFAB_OK)
            rc = fab_inventory_link(inv, ends[0], ends[1]);
    }
    return rc;
}

static void site_sweep(const struct site *site, const char *but, struct fab_inventory *inv)
{
    const uint32_t missed = but == NULL ? FAB_NONE : site_find(site, but);
    uint32_t *nodes = must_grow(NULL, site->n_nodes, sizeof(*nodes));
    bool *reached = must_grow(NULL, site->n_nodes, sizeof(*reached));
    bool(*cabled)[SITE_PORTS] = calloc(site->n_nodes + 1, sizeof(*cabled));
    int rc = cabled == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    struct fab_err err = {""};
    fab_inventory_init(inv);
    inv->n_subnets = site->n_subnets;
    for (uint32_t i = 0; i < site->n_subnets; i++)
        inv->subnets[i].prefix = site->prefixes[i];
    find_reached(site, missed, reached);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < site->n_nodes; i++)
        if (reached[i])
            rc = sweep_node(site, i, inv, &nodes[i]);
    if (rc == PMIXFAB_OK)
        rc = sweep_cables(site, missed, nodes, inv, cabled);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < site->n_nodes; i++)
        for (unsigned num = 1; rc == PMIXFAB_OK && num < SITE_PORTS; num++)
            if (reached[i] && !cabled[i][num] && site->nodes[i].ports[num].guid != 0)
                rc = sweep_port(site, i, num, NULL, nodes[i], inv, &(uint32_t){0});
    if (rc == PMIXFAB_OK)
        rc = fab_inventory_finish(inv, &err);
    if (rc != PMIXFAB_OK)
        sim_fail("the site is no fabric: %s %s", pmixfab_strerror(rc), err.text);
    free(nodes);
    free(reached);
    free(cabled);
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

/* ---- hands
 * ---------------------------------------------------------------------------------------------------------------
 */

/* Which end of the cable is in that port (0: any) of that node; -1: none. */
static int end_in(const struct site_cable *cable, uint32_t node, unsigned port)
{
    for (int end = 0; end < 2; end++)
        if (cable->node[end] == node && (port == 0 || cable->port[end] == port))
            return end;
    return -1;
}

static bool site_plug(struct site *site, const char *name, unsigned port, bool plugged)
{
    const uint32_t node = site_find(site, name);
    bool found = false;
    for (uint32_t i = 0; node != FAB_NONE && i < site->n_cables; i++) {
        struct site_cable *cable = &site->cables[i];
        if (end_in(cable, node, port) < 0 || cable->plugged == plugged)
            continue;
        cable->plugged = plugged;
        found = true;
    }
    site->version += found;
    return found;
}

bool sim_pull(struct sim *s, const char *node, unsigned port)
{
    sim_note(s, port == 0 ? "hand: pull all of %s" : "hand: pull %s port %u", node, port);
    return site_plug(sim_site(s), node, port, false);
}

bool sim_plug(struct sim *s, const char *node, unsigned port)
{
    sim_note(s, port == 0 ? "hand: plug all of %s" : "hand: plug %s port %u", node, port);
    return site_plug(sim_site(s), node, port, true);
}

static struct site_cable *cable_in(struct site *site, uint32_t node, unsigned port, int *end)
{
    for (uint32_t i = 0; node != FAB_NONE && i < site->n_cables; i++) {
        *end = end_in(&site->cables[i], node, port);
        if (*end >= 0 && site->cables[i].plugged)
            return &site->cables[i];
    }
    return NULL;
}

bool sim_move(struct sim *s, const char *node, unsigned port, const char *to, unsigned to_port)
{
    struct site *site = sim_site(s);
    const uint32_t there = site_find(site, to);
    int end;
    struct site_cable *cable = cable_in(site, site_find(site, node), port, &end);
    sim_note(s, "hand: move the far end of %s port %u to %s port %u", node, port, to, to_port);
    if (cable == NULL || there == FAB_NONE || cable_in(site, there, to_port, &(int){0}) != NULL)
        return false;
    cable->node[1 - end] = there;
    cable->port[1 - end] = (uint8_t)to_port;
    site->version++;
    return true;
}

/* The cable that was pulled there is somebody else's now. */
static void forget_pulled(struct site *site, uint32_t node, unsigned port)
{
    for (uint32_t i = site->n_cables; i-- > 0;)
        if (end_in(&site->cables[i], node, port) >= 0)
            site->cables[i] = site->cables[--site->n_cables];
}

bool sim_link(struct sim *s, const char *node, unsigned port, const char *to, unsigned to_port)
{
    struct site *site = sim_site(s);
    const uint32_t ends[2] = {site_find(site, node), site_find(site, to)};
    const unsigned ports[2] = {port, to_port};
    struct site_cable cable = {.width = 4, .speed = FAB_HDR, .state = FAB_PORT_ACTIVE, .plugged = true};
    sim_note(s, "hand: a cable from %s port %u to %s port %u", node, port, to, to_port);
    for (unsigned end = 0; end < 2; end++) {
        if (ends[end] == FAB_NONE || ports[end] == 0 || ports[end] >= SITE_PORTS ||
            cable_in(site, ends[end], ports[end], &(int){0}) != NULL)
            return false;
        forget_pulled(site, ends[end], ports[end]);
        cable.node[end] = ends[end];
        cable.port[end] = (uint8_t)ports[end];
    }
    site->cables = must_grow(site->cables, site->n_cables, sizeof(*site->cables));
    site->cables[site->n_cables++] = cable;
    site->version++;
    return true;
}

bool sim_replace(struct sim *s, const char *name, uint64_t guid)
{
    struct site *site = sim_site(s);
    const uint32_t at = site_find(site, name);
    sim_note(s, "hand: replace %s, the new GUID is 0x%" PRIx64, name, guid);
    if (at == FAB_NONE)
        return false;
    struct site_node *node = &site->nodes[at];
    for (unsigned num = 0; num < SITE_PORTS; num++)
        if (node->ports[num].guid != 0)
            node->ports[num].guid += guid - node->node.guid;
    if (node->node.system_guid == node->node.guid)
        node->node.system_guid = guid;
    node->node.guid = guid;
    site->version++;
    return true;
}

bool sim_lose(struct sim *s, const char *name)
{
    struct site *site = sim_site(s);
    const uint32_t at = site_find(site, name);
    sim_note(s, "hand: take %s away", name);
    if (at == FAB_NONE || !site->nodes[at].there)
        return false;
    site->nodes[at].there = false;
    site->version++;
    return true;
}

bool sim_rename(struct sim *s, const char *name, const char *description)
{
    struct site *site = sim_site(s);
    const uint32_t at = site_find(site, name);
    sim_note(s, "hand: %s calls itself \"%s\"", name, description);
    if (at == FAB_NONE)
        return false;
    snprintf(site->nodes[at].description, sizeof(site->nodes[at].description), "%s", description);
    site->version++;
    return true;
}

bool sim_rate(struct sim *s, const char *node, unsigned port, unsigned width, const char *speed)
{
    struct site *site = sim_site(s);
    int end;
    struct site_cable *cable = cable_in(site, site_find(site, node), port, &end);
    sim_note(s, "hand: %s port %u runs at %ux%s", node, port, width, speed);
    if (cable == NULL)
        return false;
    cable->width = (uint8_t)width;
    cable->speed = (uint8_t)fab_speed_parse(speed, strlen(speed));
    site->version++;
    return true;
}

bool sim_state(struct sim *s, const char *node, unsigned port, unsigned state)
{
    struct site *site = sim_site(s);
    int end;
    struct site_cable *cable = cable_in(site, site_find(site, node), port, &end);
    sim_note(s, "hand: %s port %u is in state %u", node, port, state);
    if (cable == NULL)
        return false;
    cable->state = (uint8_t)state;
    site->version++;
    return true;
}

unsigned sim_cable(struct sim *s, const char *a, const char *b)
{
    const struct site *site = sim_site(s);
    const uint32_t from = site_find(site, a), to = site_find(site, b);
    unsigned first = 0;
    for (uint32_t i = 0; from != FAB_NONE && to != FAB_NONE && i < site->n_cables; i++) {
        const struct site_cable *cable = &site->cables[i];
        for (unsigned end = 0; end < 2; end++)
            if (cable->plugged && cable->node[end] == from && cable->node[1 - end] == to &&
                (first == 0 || cable->port[end] < first))
                first = cable->port[end];
    }
    return first;
}
