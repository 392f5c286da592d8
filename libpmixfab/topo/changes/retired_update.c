/* retired_update.c - what is remembered after a generation: what is back goes, what is lost comes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/changes/retired.h"
#include "topo/changes/text_sizes.h"

/* A list in the making. */
struct follow {
    const struct fab_inventory *before, *after;
    const struct fab_diff *told;
    const struct fab_change **replaced, **hosts; /* those with a former GUID, by that; hosts lost, by name */
    uint32_t n_replaced, n_hosts;
    uint64_t generation;
    struct fab_retired *next;
    int rc;
};

/* ---- what was replaced ----------------------------------------------------------------------------- */

static int compare_former(const void *a, const void *b)
{
    const struct fab_change *x = *(const struct fab_change *const *)a,
                            *y = *(const struct fab_change *const *)b;
    return FAB_ORDER(x->former, y->former);
}

static int retired_compare_what(const void *a, const void *b)
{
    const struct fab_change *x = *(const struct fab_change *const *)a,
                            *y = *(const struct fab_change *const *)b;
    return strcmp(x->what, y->what);
}

static void list_told(struct follow *f)
{
    f->replaced = malloc((f->told->n + 1u) * sizeof(const struct fab_change *));
    f->hosts = malloc((f->told->n + 1u) * sizeof(const struct fab_change *));
    if (f->replaced == NULL || f->hosts == NULL) {
        f->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    for (uint32_t i = 0; i < f->told->n; i++) {
        const struct fab_change *change = &f->told->changes[i];
        if (change->former != 0)
            f->replaced[f->n_replaced++] = change;
        if (change->kind == FAB_CHANGE_HOST_LOST)
            f->hosts[f->n_hosts++] = change;
    }
    qsort(f->replaced, f->n_replaced, sizeof(const struct fab_change *), compare_former);
    qsort(f->hosts, f->n_hosts, sizeof(const struct fab_change *), retired_compare_what);
}

/* What took its place in this generation; 0: nothing did. */
static uint64_t retired_successor(const struct follow *f, uint64_t guid)
{
    uint32_t at = FAB_LOWER_BOUND(0, f->n_replaced, i, f->replaced[i]->former < guid);
    return at < f->n_replaced && f->replaced[at]->former == guid ? f->replaced[at]->guid : 0;
}

/* ---- what stays ------------------------------------------------------------------------------------ */

static void retired_append_node(struct follow *f, const struct fab_lost_item *node)
{
    if (f->rc == 0 && retired_successor(f, node->guid) == 0 &&
        fab_inventory_find(f->after, node->guid) == FAB_NONE)
        f->rc = fab_lost_add(f->next, node);
}

/* The port at an end of it; FAB_NONE. */
static uint32_t lost_end_in(const struct fab_inventory *inv, const struct fab_lost_item *cable, int side)
{
    uint32_t node = fab_inventory_find(inv, cable->end[side].guid);
    return node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, cable->end[side].num);
}

static bool retired_cable_exists(const struct fab_inventory *inv, const struct fab_lost_item *cable)
{
    uint32_t port = lost_end_in(inv, cable, 0), far = lost_end_in(inv, cable, 1);
    return port != FAB_NONE && far != FAB_NONE && inv->ports[port].peer == far;
}

/* A port of an HCA that is seen with a cable waits for no other. */
static bool is_settled(const struct fab_inventory *inv, const struct fab_lost_item *cable)
{
    for (int i = 0; i < 2; i++) {
        uint32_t at = lost_end_in(inv, cable, i);
        const struct fab_port *port = at == FAB_NONE ? NULL : &inv->ports[at];
        if (port != NULL && inv->nodes[port->node].kind == FAB_HCA && port->peer != FAB_NONE &&
            !fab_port_is_missing(inv, port))
            return true;
    }
    return false;
}

static void add_cable(struct follow *f, const struct fab_lost_item *cable)
{
    struct fab_lost_item now = *cable;
    char text[2][FAB_PORT_TEXT + 8], name[FAB_NODE_TEXT];

    for (int i = 0; i < 2; i++) {
        uint64_t guid = retired_successor(f, cable->end[i].guid);
        uint32_t node = guid == 0 ? FAB_NONE : fab_inventory_find(f->after, guid);
        if (node == FAB_NONE)
            continue;
        now.end[i].guid = guid;
        fab_node_text(f->after, &f->after->nodes[node], name);
        snprintf(text[i], sizeof(text[i]), "%s[%" PRIu32 "]", name, now.end[i].num);
        now.text[i] = text[i];
    }
    if (f->rc == 0 && !retired_cable_exists(f->after, &now) && !is_settled(f->after, &now))
        f->rc = fab_lost_add(f->next, &now);
}

/* ---- what is lost ---------------------------------------------------------------------------------- */

static void lose_cable(struct follow *f, const struct fab_change *change, uint32_t port)
{
    const struct fab_port *a = &f->before->ports[port];
    char text[2][FAB_PORT_TEXT];

    if (a->peer == FAB_NONE)
        return;
    const struct fab_port *b = &f->before->ports[a->peer];
    fab_port_text(f->before, a, text[0]);
    fab_port_text(f->before, b, text[1]);
    add_cable(f, &(struct fab_lost_item){.end = {{f->before->nodes[a->node].guid, a->num},
                                                 {f->before->nodes[b->node].guid, b->num}},
                                         .generation = f->generation,
                                         .seen = change->last_seen,
                                         .text = {text[0], text[1]},
                                         .width = a->width,
                                         .speed = a->speed});
}

/* With its cables, or only with the one of this port. */
static void lose_node(struct follow *f, const struct fab_change *change, uint32_t index, uint32_t num)
{
    const struct fab_node *node = &f->before->nodes[index];

    if (retired_successor(f, node->guid) != 0)
        return;
    retired_append_node(f, &(struct fab_lost_item){.guid = node->guid,
                                                   .generation = f->generation,
                                                   .seen = change->last_seen,
                                                   .host = (char *)fab_str(f->before, node->host),
                                                   .name = (char *)fab_str(f->before, node->name),
                                                   .kind = node->kind});
    for (uint32_t i = 0; i < node->n_ports; i++) {
        if (num == 0 || f->before->ports[node->first_port + i].num == num)
            lose_cable(f, change, node->first_port + i);
    }
}

static bool lost_is_cabled(const struct fab_inventory *inv, uint64_t guid)
{
    uint32_t node = fab_inventory_find(inv, guid);
    return node != FAB_NONE && fab_node_is_cabled(inv, &inv->nodes[node]);
}

/* The HCAs of hosts that are lost. */
static void lose_hosts(struct follow *f)
{
    char name[FAB_NODE_TEXT];
    struct fab_change change = {.what = name};
    const struct fab_change *key = &change;

    for (uint32_t i = 0; i < f->before->n_nodes && f->rc == 0 && f->n_hosts > 0; i++) {
        const struct fab_node *node = &f->before->nodes[i];
        if (node->kind != FAB_HCA || lost_is_cabled(f->after, node->guid))
            continue;
        const char *host = fab_str(f->before, node->host);
        fab_text_clean(name, sizeof(name), host, strlen(host), NULL);
        const struct fab_change **found =
            bsearch(&key, f->hosts, f->n_hosts, sizeof(const struct fab_change *), retired_compare_what);
        if (found != NULL)
            lose_node(f, *found, i, 0);
    }
}

static void retired_add_change(struct follow *f, const struct fab_change *change)
{
    uint32_t node = fab_inventory_find(f->before, change->guid);
    if (node == FAB_NONE)
        return;
    if (change->kind == FAB_CHANGE_SWITCH_LOST || change->kind == FAB_CHANGE_DEVICE_LOST) {
        lose_node(f, change, node, change->port);
    } else if (change->kind == FAB_CHANGE_LINK_LOST) {
        uint32_t port = fab_inventory_port(f->before, node, change->port);
        if (port != FAB_NONE)
            lose_cable(f, change, port);
    }
}

int fab_retired_update(const struct fab_retired *lost, const struct fab_inventory *before,
                       const struct fab_inventory *after, const struct fab_diff *told, uint64_t generation,
                       uint64_t trimmed, struct fab_retired *next)
{
    struct follow f = {
        .before = before, .after = after, .told = told, .generation = generation, .next = next};

    *next = (struct fab_retired){0};
    list_told(&f);
    for (uint32_t i = 0; i < lost->nodes.n; i++) {
        if (!lost->nodes.items[i].forgotten || lost->nodes.items[i].generation > trimmed)
            retired_append_node(&f, &lost->nodes.items[i]);
    }
    for (uint32_t i = 0; i < lost->cables.n; i++) {
        const struct fab_lost_item *cable = &lost->cables.items[i];
        if ((!cable->forgotten || cable->generation > trimmed) && !cable->used)
            add_cable(&f, cable);
    }
    for (uint32_t i = 0; i < told->n && f.rc == 0; i++)
        retired_add_change(&f, &told->changes[i]);
    lose_hosts(&f);
    free(f.replaced);
    free(f.hosts);
    if (f.rc != 0)
        fab_retired_destroy(next);
    else
        fab_retired_finish(next);
    return f.rc;
}
