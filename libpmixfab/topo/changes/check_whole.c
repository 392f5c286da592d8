/*
 * check_whole.c - the fabric as it would be if what is lost were back.
 *
 * What is lost is told by itself. What a switch has less of than its peers beside that, and which of its
 * ports nothing is known behind, is seen in this fabric.
 */
#include <stdlib.h>

#include "topo/changes/finding.h"

#define MOST_PORTS 254 /* of a switch that is not there to be asked */

struct whole {
    const struct fab_inventory *inv;
    const struct fab_lost *lost;
    struct fab_inventory *out;      /* what inv has, in the same places, and behind that what was lost */
    uint32_t *place;                /* of each lost node: where it is in out; 0: not yet */
    bool (*cabled)[MOST_PORTS + 1]; /* of each node of out: the ports that have their cables back */
};

static int whole_add_node(struct whole *w, const struct fab_lost_item *item, uint32_t *index)
{
    struct fab_node node = {.guid = item->guid, .kind = item->kind, .num_ports = MOST_PORTS};
    node.host = fab_inventory_string(w->out, item->host, SIZE_MAX);
    node.name = fab_inventory_string(w->out, item->name, SIZE_MAX);
    if (node.host == FAB_NONE || node.name == FAB_NONE)
        return PMIXFAB_ERR_NOMEM;
    return fab_inventory_add_node(w->out, &node, index);
}

static int whole_find_node(struct whole *w, uint64_t guid, uint32_t *index)
{
    *index = check_lost_node_at(w->inv, w->lost, guid);
    if (*index < w->inv->n_nodes)
        return PMIXFAB_OK;
    const uint32_t at = *index - w->inv->n_nodes;
    int rc = w->place[at] != 0 ? PMIXFAB_OK : whole_add_node(w, &w->lost->nodes.items[at], &w->place[at]);
    *index = w->place[at];
    return rc;
}

static int whole_find_port(struct whole *w, uint32_t node, uint32_t num, uint8_t subnet, uint32_t *index)
{
    const struct fab_port port = {.node = node, .num = (uint8_t)num, .subnet = subnet};
    *index = node < w->inv->n_nodes ? fab_inventory_port(w->inv, node, num) : FAB_NONE;
    return *index != FAB_NONE ? PMIXFAB_OK : fab_inventory_add_port(w->out, &port, index);
}

/* A port can have lost several cables, one after the other: one of them can be back. */
static int whole_add_cable(struct whole *w, const struct fab_lost_item *cable)
{
    uint32_t node[2], port[2];
    uint8_t subnet = 0;
    for (int i = 0; i < 2; i++) {
        int rc = whole_find_node(w, cable->end[i].guid, &node[i]);
        if (rc != PMIXFAB_OK)
            return rc;
        const uint32_t num = cable->end[i].num;
        if (num == 0 || num > w->out->nodes[node[i]].num_ports || w->cabled[node[i]][num])
            return PMIXFAB_OK;
        if (node[i] < w->inv->n_nodes && w->inv->nodes[node[i]].n_ports > 0)
            subnet = w->inv->ports[w->inv->nodes[node[i]].first_port].subnet;
    }
    if (node[0] == node[1])
        return PMIXFAB_OK;
    for (int i = 0; i < 2; i++) {
        int rc = whole_find_port(w, node[i], cable->end[i].num, subnet, &port[i]);
        if (rc != PMIXFAB_OK)
            return rc;
        w->cabled[node[i]][cable->end[i].num] = true;
    }
    return fab_inventory_link(w->out, port[0], port[1]);
}

static int whole_put_back(struct whole *w)
{
    const struct fab_lost_list *cables = &w->lost->cables;
    int rc = fab_inventory_copy(w->out, w->inv);
    w->out->finished = false;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < cables->n; i++)
        if (fab_lost_is_waited_for(w->inv, w->lost, &cables->items[i]))
            rc = whole_add_cable(w, &cables->items[i]);
    return rc == PMIXFAB_OK ? fab_inventory_finish(w->out, NULL) : rc;
}

int check_put_back(const struct fab_inventory *inv, const struct fab_lost *lost, struct fab_inventory *out)
{
    fab_inventory_init(out);
    if (lost == NULL || lost->cables.n == 0 || inv->n_nodes == 0)
        return PMIXFAB_OK;
    struct whole w = {.inv = inv, .lost = lost, .out = out};
    w.place = calloc(lost->nodes.n + 1u, sizeof(*w.place));
    w.cabled = calloc((size_t)inv->n_nodes + lost->nodes.n, sizeof(*w.cabled));
    int rc = w.place == NULL || w.cabled == NULL ? PMIXFAB_ERR_NOMEM : whole_put_back(&w);
    free(w.place);
    free(w.cabled);
    if (rc != PMIXFAB_OK)
        fab_inventory_destroy(out);
    return rc;
}
