#include "topo/plane/graph.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/disjoint.h"
#include "topo/model/model.h"
#include "topo/plane/graph_parts.h"

/*
 * Ends. Every switch is one vertex for all of its ports, every other port is a vertex of its own; in one
 * numbering: switch = its node, other port = n_nodes + its port.
 */
static uint32_t vertex_of(const struct fab_inventory *inv, uint32_t port)
{
    uint32_t node = inv->ports[port].node;
    return inv->nodes[node].kind == FAB_SWITCH ? node : inv->n_nodes + port;
}

/* A component of the graph on its way to being a plane. */
struct part {
    struct fab_part_size size;
    uint64_t guid;   /* lowest of its nodes */
    uint32_t number; /* as found, then its place in the order */
    uint32_t subnet;
    bool unattached;
};

static int cmp_part(const void *va, const void *vb)
{
    const struct part *a = va, *b = vb;
    if (a->size.devices != b->size.devices)
        return a->size.devices > b->size.devices ? -1 : 1;
    if (a->size.switches != b->size.switches)
        return a->size.switches > b->size.switches ? -1 : 1;
    if (a->guid != b->guid)
        return a->guid < b->guid ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Working state: part_of maps vertices to parts, FAB_NONE for those in none. */
struct cut {
    const struct fab_inventory *inv;
    uint32_t *part_of;
    struct part *parts;
    uint32_t n_parts, n_vertices;
    bool cabled; /* the inventory has a cable */
};

static uint64_t prefix_of(const struct fab_inventory *inv, uint32_t subnet)
{
    return subnet < inv->n_subnets ? inv->subnets[subnet].prefix : FAB_DEFAULT_PREFIX;
}

static bool graph_is_unattached(const struct fab_inventory *inv, const struct fab_port *port)
{
    return fab_port_far(inv, port) == FAB_NONE && prefix_of(inv, port->subnet) == FAB_UNATTACHED &&
           inv->nodes[port->node].kind == FAB_HCA;
}

/* Without any cable, one vertex a plane: the first HCA port, or else each switch. */
static void cut_uncabled(struct cut *cut, uint32_t *parent)
{
    const struct fab_inventory *inv = cut->inv;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (inv->nodes[inv->ports[p].node].kind == FAB_HCA && !graph_is_unattached(inv, &inv->ports[p])) {
            parent[inv->n_nodes + p] = inv->n_nodes + p;
            return;
        }
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_SWITCH)
            parent[i] = i;
}

/* Union of the ends of all cables. parent is FAB_NONE for what is in no plane. */
static void cut_cabled(struct cut *cut, uint32_t *parent)
{
    const struct fab_inventory *inv = cut->inv;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t peer = inv->ports[p].peer;
        uint32_t v = vertex_of(inv, p), sibling = inv->ports[p].sibling;
        if (peer == FAB_NONE && fab_port_far(inv, &inv->ports[p]) == FAB_NONE)
            continue;
        if (parent[v] == FAB_NONE)
            parent[v] = v;
        if (peer == FAB_NONE) { /* it stands where its sibling does */
            uint32_t at = vertex_of(inv, sibling - 1);
            if (parent[at] == FAB_NONE)
                parent[at] = at;
            fab_set_join(parent, v, at);
            continue;
        }
        if (peer < p)
            fab_set_join(parent, v, vertex_of(inv, peer));
        cut->cabled = true;
    }
}

static void count_vertex(struct part *part, const struct cut *cut, uint32_t v)
{
    const struct fab_inventory *inv = cut->inv;
    bool is_switch = v < inv->n_nodes;
    const struct fab_node *node = &inv->nodes[is_switch ? v : inv->ports[v - inv->n_nodes].node];
    part->size.switches += is_switch;
    part->size.devices += node->kind == FAB_HCA;
    if (node->guid < part->guid)
        part->guid = node->guid;
}

/* Replace each vertex's root in part_of by the number of its part, in order of appearance. */
static int number_parts(struct cut *cut)
{
    uint32_t *parent = cut->part_of, n = 0;
    for (uint32_t v = 0; v < cut->n_vertices; v++)
        n += parent[v] == v;
    cut->parts = calloc(n + 1u, sizeof(*cut->parts));
    uint32_t *number = calloc(cut->n_vertices + 1u, sizeof(*number));
    if (cut->parts == NULL || number == NULL) {
        free(number);
        return PMIXFAB_ERR_NOMEM;
    }
    for (uint32_t v = 0; v < cut->n_vertices; v++) {
        if (parent[v] == FAB_NONE) {
            number[v] = FAB_NONE;
            continue;
        }
        uint32_t root = fab_set_root(parent, v); /* never above v */
        if (root < v) {
            number[v] = number[root];
        } else {
            cut->parts[cut->n_parts] =
                (struct part){.guid = UINT64_MAX, .number = cut->n_parts, .subnet = FAB_NONE};
            number[v] = cut->n_parts++;
        }
        count_vertex(&cut->parts[number[v]], cut, v);
    }
    memcpy(parent, number, cut->n_vertices * sizeof(*number));
    free(number);
    return PMIXFAB_OK;
}

/* Cables and subnet of each part; a part's subnet is that of its lowest port. */
static void graph_count_ports(struct cut *cut)
{
    const struct fab_inventory *inv = cut->inv;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t number = cut->part_of[vertex_of(inv, p)], peer = inv->ports[p].peer;
        if (number == FAB_NONE || (peer == FAB_NONE && cut->cabled))
            continue;
        struct part *part = &cut->parts[number];
        if (part->subnet == FAB_NONE)
            part->subnet = inv->ports[p].subnet;
        if (peer == FAB_NONE || peer < p)
            continue;
        part->size.cables++;
        part->size.ends += vertex_of(inv, p) < inv->n_nodes && vertex_of(inv, peer) < inv->n_nodes ? 2 : 0;
    }
}

/* Sort the parts, drop those that hold neither device nor switch (two routers cabled together), renumber. */
static int order_parts(struct cut *cut)
{
    uint32_t *place = malloc((cut->n_parts + 1u) * sizeof(*place)), kept = 0;
    if (place == NULL)
        return PMIXFAB_ERR_NOMEM;
    qsort(cut->parts, cut->n_parts, sizeof(*cut->parts), cmp_part);
    for (uint32_t i = 0; i < cut->n_parts; i++) {
        const struct part *part = &cut->parts[i];
        bool empty = part->size.devices == 0 && part->size.switches == 0;
        place[part->number] = empty ? FAB_NONE : kept++; /* the empty ones are last */
    }
    for (uint32_t v = 0; v < cut->n_vertices; v++)
        if (cut->part_of[v] != FAB_NONE)
            cut->part_of[v] = place[cut->part_of[v]];
    cut->n_parts = kept;
    free(place);
    return PMIXFAB_OK;
}

/* The part of those that no cable joins. number_parts() has left room for it. */
static void add_unattached(struct cut *cut)
{
    const struct fab_inventory *inv = cut->inv;
    struct part *part = &cut->parts[cut->n_parts];

    *part = (struct part){.subnet = FAB_NONE, .unattached = true};
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        if (!graph_is_unattached(inv, &inv->ports[p]))
            continue;
        cut->part_of[inv->n_nodes + p] = cut->n_parts;
        part->size.devices++;
        if (part->subnet == FAB_NONE)
            part->subnet = inv->ports[p].subnet;
    }
    cut->n_parts += part->size.devices > 0;
}

static int cut_into_parts(struct cut *cut)
{
    const struct fab_inventory *inv = cut->inv;
    cut->n_vertices = inv->n_nodes + inv->n_ports;
    cut->part_of = calloc(cut->n_vertices + 1u, sizeof(*cut->part_of));
    if (cut->part_of == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t v = 0; v < cut->n_vertices; v++)
        cut->part_of[v] = FAB_NONE;
    cut_cabled(cut, cut->part_of);
    if (!cut->cabled)
        cut_uncabled(cut, cut->part_of);
    int rc = number_parts(cut);
    if (rc != PMIXFAB_OK)
        return rc;
    graph_count_ports(cut);
    rc = order_parts(cut);
    if (rc == PMIXFAB_OK)
        add_unattached(cut);
    return rc;
}

int fab_planes_build(const struct fab_inventory *inv, enum fab_cost_model model, struct fab_planes *out,
                     struct fab_err *err)
{
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = (struct fab_planes){NULL, 0};
    if (inv == NULL || !inv->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "planes: the inventory is not finished");
    if (model != FAB_COST_RATE && model != FAB_COST_HOPS)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "planes: unknown cost model %d", (int)model);
    struct cut cut = {.inv = inv};
    int rc = cut_into_parts(&cut);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    out->planes = calloc(cut.n_parts + 1u, sizeof(*out->planes));
    if (out->planes == NULL) {
        rc = PMIXFAB_ERR_NOMEM;
        goto cleanup;
    }
    out->n = cut.n_parts;
    for (uint32_t i = 0; i < out->n && rc == PMIXFAB_OK; i++) {
        struct fab_plane *plane = &out->planes[i];
        plane->inv = inv;
        plane->model = model;
        plane->subnet = cut.parts[i].subnet == FAB_NONE ? 0 : cut.parts[i].subnet;
        plane->prefix = prefix_of(inv, plane->subnet);
        plane->unattached = cut.parts[i].unattached;
        rc = fab_plane_allocate(plane, &cut.parts[i].size);
    }
    if (rc == PMIXFAB_OK)
        rc = fab_planes_fill(out, cut.part_of);
cleanup:
    free(cut.part_of);
    free(cut.parts);
    if (rc != PMIXFAB_OK) {
        fab_planes_destroy(out);
        return fab_fail(err, rc, "planes: out of memory for %u nodes and %u ports", inv->n_nodes,
                        inv->n_ports);
    }
    return PMIXFAB_OK;
}

void fab_planes_destroy(struct fab_planes *planes)
{
    if (planes == NULL)
        return;
    for (uint32_t i = 0; i < planes->n; i++)
        fab_plane_release(&planes->planes[i]);
    free(planes->planes);
    *planes = (struct fab_planes){NULL, 0};
}
