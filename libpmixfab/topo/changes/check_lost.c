/*
 * check_lost.c - report lost things with their share of the plane's bisection, and rebuild the fabric with
 * them.
 *
 * Each lost thing has its own finding. The comparison of a switch with its peers uses the fabric with the
 * lost things in their places. The list of a switch's ports with nothing behind them does the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/order.h"
#include "topo/base/radix.h"
#include "topo/base/search.h"
#include "topo/changes/changes_private.h"

/* A cable between switches, present or lost. */
struct span {
    uint32_t a, b; /* index into nodes of struct losing */
    uint64_t mbps;
    uint32_t lost; /* of a lost cable: its number in the list; FAB_NONE: present */
    uint32_t
        level[2]; /* of its ends, the lower one first: cables of one plane and these levels are compared */
    uint32_t part;
};

/* The share of a lost thing in the cables of one kind. */
struct part_lost {
    const struct span *of; /* a cable of that kind */
    uint32_t owner;        /* a lost node or, after these, a lost cable */
    uint64_t mbps;
};

struct losing {
    struct fab_scratch scratch;
    const struct fab_inventory *inv;
    const struct fab_lost *lost;
    uint32_t n_nodes; /* those of the inventory, then the lost ones */
    uint32_t *level, *part, *queue;
    struct span *spans;
    uint32_t n_spans;
    uint32_t *first, *next; /* neighbours of each node: next[first[node]..first[node+1]] */
    struct part_lost *owned;
    uint32_t n_owned;
    double *share, *all;   /* of each owner: the share that went with it, and the share of all that is gone */
    struct fab_key *names; /* all nodes by their names */
    bool *off,
        *cut; /* of each lost node: it has a cable whose other end is switched off; it has another cable */
};

/* Return the port at that side of a lost cable if its node is present, else NULL. */
static const struct fab_port *lost_end_port(const struct fab_inventory *inv,
                                            const struct fab_lost_item *cable, int side)
{
    const uint32_t node = fab_inventory_find(inv, cable->end[side].guid);
    const uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, cable->end[side].num);
    return port == FAB_NONE ? NULL : &inv->ports[port];
}

/* Return whether the place of this end is still free. */
static bool lost_end_is_free(const struct fab_inventory *inv, const struct fab_lost_item *cable, int side)
{
    const struct fab_port *port = lost_end_port(inv, cable, side);
    return port == NULL || port->peer == FAB_NONE;
}

/* Return whether the port of this end is switched off. */
static bool lost_end_is_off(const struct fab_inventory *inv, const struct fab_lost_item *cable, int side)
{
    const struct fab_port *port = lost_end_port(inv, cable, side);
    return port != NULL && port->state == FAB_PORT_DISABLED;
}

struct fab_about check_about_lost_cable(const struct fab_lost_item *cable)
{
    return (struct fab_about){
        .end = {{cable->end[0].guid, cable->end[0].num}, {cable->end[1].guid, cable->end[1].num}}};
}

bool fab_lost_is_waited_for(const struct fab_inventory *inv, const struct fab_lost *lost,
                            const struct fab_lost_item *cable)
{
    return !cable->used && !cable->forgotten && lost_end_is_free(inv, cable, 0) &&
           lost_end_is_free(inv, cable, 1) && past_node_at(inv, lost, cable->end[0].guid) != FAB_NONE &&
           past_node_at(inv, lost, cable->end[1].guid) != FAB_NONE;
}

/* ---- levels ---------------------------------------------------------------------------------------- */

/* Add a cable. A cable between switches is a span. A cable to an HCA makes its switch a leaf. */
static void losing_add(struct losing *l, uint32_t a, uint32_t b, unsigned width, unsigned speed,
                       uint32_t lost)
{
    const unsigned kind = past_node(l->inv, l->lost, a).kind, far = past_node(l->inv, l->lost, b).kind;
    if (kind == FAB_SWITCH && far == FAB_SWITCH)
        l->spans[l->n_spans++] =
            (struct span){.a = a, .b = b, .mbps = fab_rate_mbps(width, speed), .lost = lost};
    else if (kind == FAB_HCA || far == FAB_HCA)
        l->level[kind == FAB_HCA ? b : a] = 0;
}

static void losing_collect(struct losing *l)
{
    const struct fab_inventory *inv = l->inv;
    uint64_t fastest = 1;
    for (uint32_t n = 0; n < l->n_nodes; n++)
        l->level[n] = l->part[n] = FAB_NONE;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer != FAB_NONE && p < port->peer)
            losing_add(l, port->node, inv->ports[port->peer].node, port->width, port->speed, FAB_NONE);
    }
    for (uint32_t i = 0; i < l->lost->cables.n; i++) {
        const struct fab_lost_item *cable = &l->lost->cables.items[i];
        if (fab_lost_is_waited_for(inv, l->lost, cable))
            losing_add(l, past_node_at(inv, l->lost, cable->end[0].guid),
                       past_node_at(inv, l->lost, cable->end[1].guid), cable->width, cable->speed, i);
    }
    for (uint32_t i = 0; i < l->n_spans; i++)
        fastest = l->spans[i].mbps > fastest ? l->spans[i].mbps : fastest;
    for (uint32_t i = 0; i < l->n_spans; i++)
        l->spans[i].mbps = l->spans[i].mbps == 0 ? fastest : l->spans[i].mbps;
}

static void losing_list_neighbours(struct losing *l)
{
    for (uint32_t i = 0; i < l->n_spans; i++) {
        l->first[l->spans[i].a + 2]++;
        l->first[l->spans[i].b + 2]++;
    }
    for (uint32_t n = 2; n < l->n_nodes + 2; n++)
        l->first[n] += l->first[n - 1];
    for (uint32_t i = 0; i < l->n_spans; i++) {
        l->next[l->first[l->spans[i].a + 1]++] = l->spans[i].b;
        l->next[l->first[l->spans[i].b + 1]++] = l->spans[i].a;
    }
}

/* Starting from the nodes in the queue, give each node one more than the node from which it is reached. */
static void losing_flood(const struct losing *l, uint32_t *value, uint32_t n, uint32_t more)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = l->queue[i];
        for (uint32_t k = l->first[from]; k < l->first[from + 1]; k++)
            if (value[l->next[k]] == FAB_NONE) {
                value[l->next[k]] = value[from] + more;
                l->queue[n++] = l->next[k];
            }
    }
}

static void losing_find_levels(struct losing *l)
{
    uint32_t n = 0;
    losing_list_neighbours(l);
    for (uint32_t i = 0; i < l->n_nodes; i++)
        if (l->level[i] == 0)
            l->queue[n++] = i;
    losing_flood(l, l->level, n, 1);
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        if (l->part[i] != FAB_NONE)
            continue;
        l->part[i] = l->queue[0] = i;
        losing_flood(l, l->part, 1, 0);
    }
}

/* ---- shares ---------------------------------------------------------------------------------------- */

static int losing_same_kind(const struct span *a, const struct span *b)
{
    return FAB_ORDER(a->part, b->part) ?: FAB_ORDER(a->level[0], b->level[0])
           ?: FAB_ORDER(a->level[1], b->level[1]);
}

static int losing_compare_spans(const void *x, const void *y)
{
    return losing_same_kind(x, y);
}

static int losing_compare_owned(const void *x, const void *y)
{
    const struct part_lost *a = x, *b = y;
    return FAB_ORDER(a->owner, b->owner);
}

static void losing_own(struct losing *l, const struct span *span, uint32_t owner)
{
    l->owned[l->n_owned++] = (struct part_lost){.of = span, .owner = owner, .mbps = span->mbps};
}

/* Share out the loss among the cables of one kind. */
static void losing_share_out(struct losing *l, const struct span *spans, uint32_t n)
{
    uint64_t total = 0, gone = 0;
    l->n_owned = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t nodes = l->inv->n_nodes;
        total += spans[i].mbps;
        gone += spans[i].lost != FAB_NONE ? spans[i].mbps : 0;
        if (spans[i].lost == FAB_NONE)
            continue;
        if (spans[i].a >= nodes)
            losing_own(l, &spans[i], spans[i].a - nodes);
        if (spans[i].b >= nodes)
            losing_own(l, &spans[i], spans[i].b - nodes);
        if (spans[i].a < nodes && spans[i].b < nodes)
            losing_own(l, &spans[i], l->lost->nodes.n + spans[i].lost);
    }
    if (l->n_owned > 1)
        qsort(l->owned, l->n_owned, sizeof(*l->owned), losing_compare_owned);
    for (uint32_t from = 0, to = 0; from < l->n_owned; from = to) {
        uint64_t mbps = 0;
        for (; to < l->n_owned && l->owned[to].owner == l->owned[from].owner; to++)
            mbps += l->owned[to].mbps;
        const double share = (double)mbps / (double)total;
        if (share <= l->share[l->owned[from].owner])
            continue;
        l->share[l->owned[from].owner] = share;
        l->all[l->owned[from].owner] = (double)gone / (double)total;
    }
}

static void losing_find_shares(struct losing *l)
{
    for (uint32_t i = 0; i < l->n_spans; i++) {
        struct span *span = &l->spans[i];
        const uint32_t a = l->level[span->a], b = l->level[span->b];
        span->part = l->part[span->a];
        span->level[0] = a < b ? a : b;
        span->level[1] = a < b ? b : a;
    }
    if (l->n_spans > 1)
        qsort(l->spans, l->n_spans, sizeof(*l->spans), losing_compare_spans);
    for (uint32_t from = 0, to = 0; from < l->n_spans; from = to) {
        while (to < l->n_spans && losing_same_kind(&l->spans[from], &l->spans[to]) == 0)
            to++;
        losing_share_out(l, l->spans + from, to - from);
    }
}

/* ---- findings ------------------------------------------------------------------------------------ */

enum fab_check_kind fab_lost_is_about(const struct fab_inventory *inv, const struct fab_lost *lost,
                                      const struct fab_lost_item *item, struct fab_about *about)
{
    *about = (struct fab_about){.end[0].guid = item->guid};
    if (item->kind != 0)
        return item->forgotten || fab_inventory_find(inv, item->guid) != FAB_NONE ? 0 : FAB_CHECK_LOST;
    const uint32_t ends[2] = {past_node_at(inv, lost, item->end[0].guid),
                              past_node_at(inv, lost, item->end[1].guid)};
    if (!fab_lost_is_waited_for(inv, lost, item))
        return 0;
    *about = check_about_lost_cable(item);
    for (int i = 0; i < 2; i++)
        /* a lost switch is reported itself, whatever the state of the ports that its cables were in */
        if (lost_end_is_off(inv, item, i) &&
            (ends[!i] < inv->n_nodes || past_node(inv, lost, ends[!i]).kind != FAB_SWITCH)) {
            *about = (struct fab_about){.end[0] = about->end[i]};
            return FAB_CHECK_PORT_DISABLED;
        }
    if (ends[0] >= inv->n_nodes || ends[1] >= inv->n_nodes)
        return 0; /* its node is gone, too */
    for (int i = 0; i < 2; i++)
        if (inv->nodes[ends[i]].kind != FAB_SWITCH) { /* reported as when it was missing */
            *about = (struct fab_about){.end[0] = about->end[i]};
            return FAB_CHECK_LOST;
        }
    return FAB_CHECK_LINK_LOST;
}

static void losing_list_names(struct losing *l)
{
    for (uint32_t i = 0; i < l->n_nodes; i++) {
        const struct past_node node = past_node(l->inv, l->lost, i);
        if (node.lost == NULL || (!node.lost->forgotten && fab_inventory_find(l->inv, node.guid) == FAB_NONE))
            l->names[i].value = fab_name_hash(node.kind, node.host, node.name);
    }
    fab_radix_sort(l->names, l->names + l->n_nodes, l->n_nodes);
}

/* Return whether another node, lost or not, has the name of this one. */
static bool lost_shares_name(const struct losing *l, const struct fab_lost_item *item)
{
    const uint64_t hash = fab_name_hash(item->kind, item->host, item->name);
    const uint32_t at = FAB_LOWER_BOUND(0, l->n_nodes, i, l->names[i].value < hash);
    return hash != 0 && at + 1 < l->n_nodes && l->names[at + 1].value == hash;
}

static void lost_where(const struct losing *l, const struct fab_lost_item *item,
                       const struct fab_about *about, char where[FAB_LINK_TEXT])
{
    if (item->kind != 0) {
        fab_name_text(item->kind, item->guid, item->host, item->name, where);
        if (lost_shares_name(l, item))
            fab_name_add_guid(item->guid, where);
    } else if (about->end[1].guid != 0)
        snprintf(where, FAB_LINK_TEXT, "%s - %s", item->text[0], item->text[1]);
    else
        snprintf(where, FAB_LINK_TEXT, "%s", item->text[item->end[0].guid != about->end[0].guid]);
}

/* Mark the lost nodes with cables to ports that are switched off, and those with other cables. */
static void losing_find_cut(struct losing *l)
{
    for (uint32_t i = 0; i < l->lost->cables.n; i++) {
        const struct fab_lost_item *cable = &l->lost->cables.items[i];
        const bool off =
            !cable->used && (lost_end_is_off(l->inv, cable, 0) || lost_end_is_off(l->inv, cable, 1));
        for (int side = 0; side < 2; side++) {
            const uint32_t node = fab_lost_find(l->lost, cable->end[side].guid);
            if (node != FAB_NONE)
                *(off ? &l->off[node] : &l->cut[node]) = true;
        }
    }
}

/*
 * Return whether an HCA is gone because the ports that it is cabled to are switched off; then those ports are
 * reported.
 */
static bool losing_is_off(const struct losing *l, const struct fab_lost_item *item, uint32_t owner)
{
    return item->kind == FAB_HCA && l->off[owner] && !l->cut[owner];
}

static int add_lost(const struct losing *l, const struct fab_lost_item *item, uint32_t owner,
                    struct fab_findings *out)
{
    char where[FAB_LINK_TEXT], what[CHECK_WHAT_TEXT], off[FAB_LINK_TEXT + 64] = "";
    char when[LOST_TEXT], share[96] = "", all[32] = "";
    struct fab_about about;
    const enum fab_check_kind kind = fab_lost_is_about(l->inv, l->lost, item, &about);
    if (kind == 0 || (kind == FAB_CHECK_LOST && losing_is_off(l, item, owner)))
        return PMIXFAB_OK;
    lost_where(l, item, &about, where);
    if (l->all[owner] > l->share[owner])
        snprintf(all, sizeof(all), ", %.3g %% in all", 100 * l->all[owner]);
    if (l->share[owner] > 0)
        snprintf(share, sizeof(share), "; %.3g %% of its plane's bisection went with it%s",
                 100 * l->share[owner], all);
    if (kind == FAB_CHECK_PORT_DISABLED)
        snprintf(off, sizeof(off), "it is switched off; its cable to %s was ",
                 item->text[item->end[0].guid == about.end[0].guid]);
    snprintf(what, sizeof(what), "%s%s%s", off, lost_text(item, when), share);
    int rc = fab_findings_add(out, kind, about, where, what);
    if (rc != PMIXFAB_OK)
        return rc;
    out->findings[out->n - 1].share = l->share[owner];
    out->findings[out->n - 1].all = l->all[owner];
    return PMIXFAB_OK;
}

static int add_each_lost(const struct losing *l, struct fab_findings *out)
{
    const struct fab_lost *lost = l->lost;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < lost->nodes.n; i++)
        rc = add_lost(l, &lost->nodes.items[i], i, out);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < lost->cables.n; i++)
        rc = add_lost(l, &lost->cables.items[i], lost->nodes.n + i, out);
    return rc;
}

int fab_check_lost(const struct fab_inventory *inv, const struct fab_lost *lost, struct fab_findings *out)
{
    struct losing l = {.inv = inv, .lost = lost, .n_nodes = inv->n_nodes + lost->nodes.n};
    const size_t nodes = l.n_nodes + 3u, spans = inv->n_ports / 2 + lost->cables.n + 1u,
                 owners = lost->nodes.n + lost->cables.n + 1u;
    if (lost->nodes.n + lost->cables.n == 0)
        return PMIXFAB_OK;
    FAB_SCRATCH(&l.scratch, &l.level, nodes);
    FAB_SCRATCH(&l.scratch, &l.part, nodes);
    FAB_SCRATCH(&l.scratch, &l.queue, nodes);
    FAB_SCRATCH(&l.scratch, &l.spans, spans);
    FAB_SCRATCH(&l.scratch, &l.first, nodes);
    FAB_SCRATCH(&l.scratch, &l.next, 2 * spans);
    FAB_SCRATCH(&l.scratch, &l.owned, 2 * (size_t)lost->cables.n);
    FAB_SCRATCH(&l.scratch, &l.share, owners);
    FAB_SCRATCH(&l.scratch, &l.all, owners);
    FAB_SCRATCH(&l.scratch, &l.names, 2 * nodes);
    FAB_SCRATCH(&l.scratch, &l.off, owners);
    FAB_SCRATCH(&l.scratch, &l.cut, owners);
    int rc = PMIXFAB_ERR_NOMEM;
    if (!l.scratch.failed) {
        losing_collect(&l);
        losing_find_levels(&l);
        losing_find_shares(&l);
        losing_find_cut(&l);
        losing_list_names(&l);
        rc = add_each_lost(&l, out);
    }
    fab_scratch_free(&l.scratch);
    return rc;
}

/*
 * ---- the fabric with the lost things in their places ------------------------------------------------------
 */

#define MOST_PORTS 254 /* of a switch that is gone, and whose number of ports is unknown */

struct whole {
    const struct fab_inventory *inv;
    const struct fab_lost *lost;
    struct fab_inventory *out;      /* the contents of inv in the same places, then the lost nodes */
    uint32_t *place;                /* of each lost node: its position in out; 0: not yet */
    bool (*cabled)[MOST_PORTS + 1]; /* of each node of out: the ports whose cables are back */
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
    *index = past_node_at(w->inv, w->lost, guid);
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

/* Put a lost cable back. A port can have lost several cables in sequence; only one of them fits. */
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
    struct fab_scratch scratch = {.n = 0};
    FAB_SCRATCH(&scratch, &w.place, lost->nodes.n);
    FAB_SCRATCH(&scratch, &w.cabled, (size_t)inv->n_nodes + lost->nodes.n);
    int rc = scratch.failed ? PMIXFAB_ERR_NOMEM : whole_put_back(&w);
    fab_scratch_free(&scratch);
    if (rc != PMIXFAB_OK)
        fab_inventory_destroy(out);
    return rc;
}
