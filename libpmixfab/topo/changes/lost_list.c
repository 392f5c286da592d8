/*
 * lost_list.c - the list of lost things, and its update with a generation: remove those that are back, add
 * the lost ones.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/changes/changes_private.h"

/* Remove the items from `first` on. */
static void lost_cut_list(struct fab_lost_list *list, uint32_t first)
{
    while (list->n > first)
        free(list->items[--list->n].text[0]);
}

void fab_lost_destroy(struct fab_lost *lost)
{
    lost_cut_list(&lost->nodes, 0);
    lost_cut_list(&lost->cables, 0);
    free(lost->nodes.items);
    free(lost->cables.items);
    *lost = (struct fab_lost){0};
}

/* Copy two texts into one piece of memory. */
static bool copy_texts(const char *a, const char *b, char *to[2])
{
    size_t n_a = strlen(a) + 1, n_b = strlen(b) + 1;
    to[0] = malloc(n_a + n_b);
    if (to[0] == NULL)
        return false;
    memcpy(to[0], a, n_a);
    to[1] = memcpy(to[0] + n_a, b, n_b);
    return true;
}

static int lost_order_ends(const struct fab_lost_item *a, int side, const struct fab_lost_item *b, int other)
{
    return FAB_ORDER(a->end[side].guid, b->end[other].guid) ?: FAB_ORDER(a->end[side].num, b->end[other].num);
}

int fab_lost_add(struct fab_lost *lost, const struct fab_lost_item *item)
{
    struct fab_lost_list *list = item->kind == 0 ? &lost->cables : &lost->nodes;
    const bool swap = item->kind == 0 && lost_order_ends(item, 0, item, 1) > 0;
    if (!FAB_ARRAY_ROOM(&list->items, &list->cap, list->n + 1))
        return PMIXFAB_ERR_NOMEM;
    struct fab_lost_item *to = &list->items[list->n];
    *to = *item;
    if (item->kind != 0) {
        memset(to->end, 0, sizeof(to->end));
        to->guid = item->guid;
    } else if (swap) {
        to->end[0] = item->end[1];
        to->end[1] = item->end[0];
    }
    if (!copy_texts(item->text[swap], item->text[!swap], to->text))
        return PMIXFAB_ERR_NOMEM;
    list->n++;
    return PMIXFAB_OK;
}

/* ---- order ---------------------------------------------------------------------------------------- */

int fab_lost_order(const struct fab_lost_item *a, const struct fab_lost_item *b)
{
    return lost_order_ends(a, 0, b, 0) ?: lost_order_ends(a, 1, b, 1);
}

/* Compare: those lost last come first. */
static int lost_compare_newest(const void *a, const void *b)
{
    const struct fab_lost_item *x = a, *y = b;
    return FAB_ORDER(y->generation, x->generation) ?: fab_lost_order(x, y);
}

/* Compare; of equal items the one lost last comes first. */
static int lost_compare_items(const void *a, const void *b)
{
    return fab_lost_order(a, b) ?: lost_compare_newest(a, b);
}

static void lost_sort(struct fab_lost_list *list, int (*compare)(const void *, const void *))
{
    if (list->n > 1)
        qsort(list->items, list->n, sizeof(*list->items), compare);
}

static void lost_finish_list(struct fab_lost_list *list)
{
    uint32_t n = 0;
    lost_sort(list, lost_compare_items);
    for (uint32_t i = 0; i < list->n; i++) {
        if (n > 0 && fab_lost_order(&list->items[n - 1], &list->items[i]) == 0)
            free(list->items[i].text[0]);
        else
            list->items[n++] = list->items[i];
    }
    list->n = n;
    if (n <= FAB_LOST_MAX)
        return;
    lost_sort(list, lost_compare_newest);
    lost_cut_list(list, FAB_LOST_MAX);
    lost_sort(list, lost_compare_items);
}

void fab_lost_finish(struct fab_lost *lost)
{
    lost_finish_list(&lost->nodes);
    lost_finish_list(&lost->cables);
}

uint32_t fab_lost_find(const struct fab_lost *lost, uint64_t guid)
{
    const struct fab_lost_list *nodes = &lost->nodes;
    uint32_t at = FAB_LOWER_BOUND(0, nodes->n, i, nodes->items[i].guid < guid);
    return at < nodes->n && nodes->items[at].guid == guid ? at : FAB_NONE;
}

struct past_node past_node(const struct fab_inventory *inv, const struct fab_lost *lost, uint32_t index)
{
    if (index >= inv->n_nodes) {
        const struct fab_lost_item *item = &lost->nodes.items[index - inv->n_nodes];
        return (struct past_node){item->guid, item->host, item->name, item->kind, item};
    }
    const struct fab_node *node = &inv->nodes[index];
    return (struct past_node){node->guid, fab_str(inv, node->host), fab_str(inv, node->name), node->kind,
                              NULL};
}

uint32_t past_node_at(const struct fab_inventory *inv, const struct fab_lost *lost, uint64_t guid)
{
    uint32_t at = fab_inventory_find(inv, guid);
    if (at != FAB_NONE)
        return at;
    at = fab_lost_find(lost, guid);
    return at == FAB_NONE || lost->nodes.items[at].forgotten ? FAB_NONE : inv->n_nodes + at;
}

/*
 * ---- the list after a generation
 * ---------------------------------------------------------------------------
 */

/* A list under construction. */
struct follow {
    const struct fab_inventory *before, *after;
    const struct fab_diff *told;
    const struct fab_change **replaced; /* those with a former GUID, in its order */
    uint32_t n_replaced;
    uint64_t generation;
    struct fab_lost *next;
    int rc;
};

/* ---- replaced nodes ---------------------------------------------------------------------------------- */

static int compare_former(const void *a, const void *b)
{
    const struct fab_change *x = *(const struct fab_change *const *)a,
                            *y = *(const struct fab_change *const *)b;
    return FAB_ORDER(x->former, y->former);
}

static void list_replaced(struct follow *f)
{
    f->replaced = malloc((f->told->n + 1u) * sizeof(const struct fab_change *));
    if (f->replaced == NULL)
        f->rc = PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; f->rc == 0 && i < f->told->n; i++) {
        if (f->told->changes[i].former != 0)
            f->replaced[f->n_replaced++] = &f->told->changes[i];
    }
    if (f->n_replaced > 1)
        qsort(f->replaced, f->n_replaced, sizeof(const struct fab_change *), compare_former);
}

/* Return the GUID of the node that replaced it in this generation; 0: none. */
static uint64_t successor(const struct follow *f, uint64_t guid)
{
    uint32_t at = FAB_LOWER_BOUND(0, f->n_replaced, i, f->replaced[i]->former < guid);
    return at < f->n_replaced && f->replaced[at]->former == guid ? f->replaced[at]->guid : 0;
}

/* ---- items that stay --------------------------------------------------------------------------------- */

static void append_node(struct follow *f, const struct fab_lost_item *node)
{
    if (f->rc == 0 && successor(f, node->guid) == 0 && fab_inventory_find(f->after, node->guid) == FAB_NONE)
        f->rc = fab_lost_add(f->next, node);
}

/* Return the port at an end of it, or FAB_NONE. */
static uint32_t lost_end_in(const struct fab_inventory *inv, const struct fab_lost_item *cable, int side)
{
    uint32_t node = fab_inventory_find(inv, cable->end[side].guid);
    return node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, cable->end[side].num);
}

static bool cable_exists(const struct fab_inventory *inv, const struct fab_lost_item *cable)
{
    uint32_t port = lost_end_in(inv, cable, 0), far = lost_end_in(inv, cable, 1);
    return port != FAB_NONE && far != FAB_NONE && inv->ports[port].peer == far;
}

/* Return whether an end waits for no other cable: a port of an HCA that is seen with a cable. */
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
        uint64_t guid = successor(f, cable->end[i].guid);
        uint32_t node = guid == 0 ? FAB_NONE : fab_inventory_find(f->after, guid);
        if (node == FAB_NONE)
            continue;
        now.end[i].guid = guid;
        fab_node_text(f->after, &f->after->nodes[node], name);
        snprintf(text[i], sizeof(text[i]), "%s[%" PRIu32 "]", name, now.end[i].num);
        now.text[i] = text[i];
    }
    if (f->rc == 0 && !cable_exists(f->after, &now) && !is_settled(f->after, &now))
        f->rc = fab_lost_add(f->next, &now);
}

/* ---- new items --------------------------------------------------------------------------------------- */

struct fab_lost_item cable_item(const struct fab_inventory *inv, uint32_t port, char texts[2][FAB_PORT_TEXT])
{
    const uint32_t peer = inv->ports[port].peer;
    const struct fab_told_end near = port_end(inv, port), far = port_end(inv, peer);

    fab_port_text(inv, &inv->ports[port], texts[0]);
    fab_port_text(inv, &inv->ports[peer], texts[1]);
    return (struct fab_lost_item){.end = {{near.guid, near.port}, {far.guid, far.port}},
                                  .text = {texts[0], texts[1]},
                                  .width = inv->ports[port].width,
                                  .speed = inv->ports[port].speed};
}

static void lose_cable(struct follow *f, const struct fab_change *change, uint32_t port)
{
    char texts[2][FAB_PORT_TEXT];

    if (f->before->ports[port].peer == FAB_NONE)
        return;
    struct fab_lost_item item = cable_item(f->before, port, texts);
    item.generation = f->generation;
    item.seen = change->last_seen;
    add_cable(f, &item);
}

/* Add a lost node with its cables, or only with the one of this port. */
static void lose_node(struct follow *f, const struct fab_change *change, uint32_t index, uint32_t num)
{
    const struct fab_node *node = &f->before->nodes[index];

    if (successor(f, node->guid) != 0)
        return;
    append_node(f, &(struct fab_lost_item){.guid = node->guid,
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

/* Add the HCAs of lost hosts. */
static void lose_hosts(struct follow *f)
{
    const struct fab_change *list = f->told->changes;
    const uint32_t first = FAB_LOWER_BOUND(0, f->told->n, i, list[i].kind < FAB_CHANGE_HOST_LOST);
    const uint32_t end = FAB_LOWER_BOUND(first, f->told->n, i, list[i].kind == FAB_CHANGE_HOST_LOST);
    char name[FAB_NODE_TEXT];

    for (uint32_t i = 0; first < end && i < f->before->n_nodes && f->rc == 0; i++) {
        const struct fab_node *node = &f->before->nodes[i];
        const char *host = fab_str(f->before, node->host);
        if (node->kind != FAB_HCA || lost_is_cabled(f->after, node->guid))
            continue;
        fab_text_clean(name, sizeof(name), host, strlen(host), NULL);
        const uint32_t at = FAB_LOWER_BOUND(first, end, k, fab_natural_cmp(list[k].what, name) < 0);
        if (at < end && strcmp(list[at].what, name) == 0)
            lose_node(f, &list[at], i, 0);
    }
}

static void lose_change(struct follow *f, const struct fab_change *change)
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

int fab_lost_update(const struct fab_lost *lost, const struct fab_inventory *before,
                    const struct fab_inventory *after, const struct fab_diff *told, uint64_t generation,
                    uint64_t trimmed, struct fab_lost *next)
{
    struct follow f = {
        .before = before, .after = after, .told = told, .generation = generation, .next = next};

    *next = (struct fab_lost){0};
    list_replaced(&f);
    for (uint32_t i = 0; i < lost->nodes.n; i++) {
        if (!lost->nodes.items[i].forgotten || lost->nodes.items[i].generation > trimmed)
            append_node(&f, &lost->nodes.items[i]);
    }
    for (uint32_t i = 0; i < lost->cables.n; i++) {
        const struct fab_lost_item *cable = &lost->cables.items[i];
        if ((!cable->forgotten || cable->generation > trimmed) && !cable->used)
            add_cable(&f, cable);
    }
    for (uint32_t i = 0; i < told->n && f.rc == 0; i++)
        lose_change(&f, &told->changes[i]);
    lose_hosts(&f);
    free(f.replaced);
    if (f.rc != 0)
        fab_lost_destroy(next);
    else
        fab_lost_finish(next);
    return f.rc;
}
