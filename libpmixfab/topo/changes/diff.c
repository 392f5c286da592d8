/*
 * diff.c - what changed from one inventory to the next.
 *
 * Both are sorted, so one walk side by side finds the nodes, and a second one the ports, that either has
 * alone. A cable is met at its lower end.
 */
#include "topo/changes/diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/changes/text_sizes.h"

/* A node that only one side has. An HCA with cables is told of by its devices. */
static void one_sided_node(struct diff_walk *w, const struct fab_inventory *inv, const struct fab_node *node)
{
    static const char *const words[] = {[FAB_SWITCH] = "switch",
                                        [FAB_HCA] = "HCA without a cable",
                                        [FAB_ROUTER] = "router",
                                        [FAB_AGGREGATOR] = "aggregation node"};
    bool added = inv == w->after;
    enum fab_change_kind kind = FAB_CHANGE_OTHER;
    char what[FAB_NODE_TEXT], guid[DIFF_GUID_TEXT];
    const char *value = words[node->kind];

    if (node->kind == FAB_HCA && fab_node_is_cabled(inv, node))
        return;
    fab_node_text(inv, node, what);
    if (node->kind == FAB_SWITCH) {
        kind = added ? FAB_CHANGE_SWITCH_ADDED : FAB_CHANGE_SWITCH_LOST;
        diff_guid_text(node->guid, guid);
        value = guid;
    }
    diff_add(w, kind, node->guid, 0, what, added ? "" : value, added ? value : "");
}

static void diff_compare_names(struct diff_walk *w, const struct fab_node *b, const struct fab_node *a,
                               const char *what)
{
    const char *host_b = fab_str(w->before, b->host), *host_a = fab_str(w->after, a->host);
    const char *desc_b = fab_str(w->before, b->desc), *desc_a = fab_str(w->after, a->desc);
    char name_b[FAB_NODE_TEXT], name_a[FAB_NODE_TEXT], text[FAB_LINK_TEXT];
    bool host_differs = strcmp(host_b, host_a) != 0;

    if (host_differs || strcmp(fab_str(w->before, b->name), fab_str(w->after, a->name)) != 0) {
        fab_plain_text(w->before, b, name_b);
        fab_plain_text(w->after, a, name_a);
        diff_add(w, FAB_CHANGE_NAME, a->guid, 0, what, name_b, name_a);
    } else if (strcmp(desc_b, desc_a) != 0) {
        snprintf(text, sizeof(text), "%s: description", what);
        diff_add(w, FAB_CHANGE_OTHER, a->guid, 0, text, desc_b, desc_a);
    } else {
        diff_number(w, what, a->guid, 0, "unnamed", b->unnamed, a->unnamed, 0);
    }
    if (host_differs && a->kind == FAB_HCA) {
        diff_note_host(w, host_b);
        diff_note_host(w, host_a);
    }
}

/* It keeps its place, or has come back to it. */
static void diff_compare_absent_node(struct diff_walk *w, const struct fab_node *b, const struct fab_node *a,
                                     const char *what)
{
    bool is_switch = a->kind == FAB_SWITCH;
    if (b->missing == a->missing)
        return;
    const enum fab_change_kind missing = is_switch ? FAB_CHANGE_SWITCH_MISSING : FAB_CHANGE_HOST_MISSING;
    const enum fab_change_kind back = is_switch ? FAB_CHANGE_SWITCH_BACK : FAB_CHANGE_HOST_BACK;
    diff_add(w, a->missing ? missing : back, a->guid, 0, what, b->missing ? "missing" : "there",
             a->missing ? "missing" : "there");
}

static void diff_compare_nodes(struct diff_walk *w, const struct fab_node *b, const struct fab_node *a)
{
    char what[FAB_NODE_TEXT];
    uint64_t guid = a->guid;

    if (fab_node_equal(w->before, b, w->after, a))
        return;
    fab_node_text(w->before, b, what);
    diff_compare_absent_node(w, b, a, what);
    diff_compare_names(w, b, a, what);
    diff_lid(w, what, guid, 0, b->lid, a->lid);
    diff_number(w, what, guid, 0, "system image GUID", b->system_guid, a->system_guid, 16);
    diff_number(w, what, guid, 0, "vendor", b->vendor_id, a->vendor_id, 6);
    diff_number(w, what, guid, 0, "device id", b->device_id, a->device_id, 4);
    diff_number(w, what, guid, 0, "number of ports", b->num_ports, a->num_ports, 0);
    diff_number(w, what, guid, 0, "chassis", b->chassis, a->chassis, 0);
    diff_number(w, what, guid, 0, "slot type", b->slot_type, a->slot_type, 0);
    diff_number(w, what, guid, 0, "slot", b->slot, a->slot, 0);
    diff_number(w, what, guid, 0, "chip", b->chip, a->chip, 0);
    diff_number(w, what, guid, 0, "enhanced port 0", b->enhanced, a->enhanced, 0);
    diff_number(w, what, guid, 0, "LMC", b->lmc, a->lmc, 0);
}

static void diff_each_node(struct diff_walk *w)
{
    uint32_t i = 0, k = 0;

    while (i < w->before->n_nodes || k < w->after->n_nodes) {
        const struct fab_node *b = i < w->before->n_nodes ? &w->before->nodes[i] : NULL;
        const struct fab_node *a = k < w->after->n_nodes ? &w->after->nodes[k] : NULL;
        bool has_b = b != NULL && (a == NULL || b->guid <= a->guid);
        bool has_a = a != NULL && (b == NULL || a->guid <= b->guid);
        if (has_b && has_a && b->kind == a->kind) {
            diff_compare_nodes(w, b, a);
        } else { /* one GUID, two kinds: one went, one came */
            if (has_b)
                one_sided_node(w, w->before, b);
            if (has_a)
                one_sided_node(w, w->after, a);
        }
        i += has_b;
        k += has_a;
    }
}

static void compare_subnets(struct diff_walk *w)
{
    uint32_t n_before = w->before->n_subnets, n_after = w->after->n_subnets;
    char what[40], before[DIFF_GUID_TEXT], after[DIFF_GUID_TEXT];

    for (uint32_t i = 0; i < n_before || i < n_after; i++) {
        before[0] = after[0] = '\0';
        if (i < n_before)
            diff_guid_text(w->before->subnets[i].prefix, before);
        if (i < n_after)
            diff_guid_text(w->after->subnets[i].prefix, after);
        if (strcmp(before, after) == 0)
            continue;
        snprintf(what, sizeof(what), "subnet %" PRIu32 ": prefix", i);
        diff_add(w, FAB_CHANGE_OTHER, 0, 0, what, before, after);
    }
}

static int compare_changes(const void *a, const void *b)
{
    const struct fab_change *x = a, *y = b;
    return FAB_ORDER(x->kind, y->kind) ?: fab_natural_cmp(x->what, y->what) ?: FAB_ORDER(x->guid, y->guid)
           ?: FAB_ORDER(x->port, y->port);
}

int fab_diff_move(struct fab_diff *to, struct fab_diff *from)
{
    if (!FAB_ARRAY_ROOM(&to->changes, &to->cap, (uint64_t)to->n + from->n))
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < from->n; i++)
        to->changes[to->n++] = from->changes[i];
    to->n_lost += from->n_lost;
    free(from->changes);
    *from = (struct fab_diff){0};
    return PMIXFAB_OK;
}

void fab_diff_sort(struct fab_diff *diff)
{
    if (diff->n > 1)
        qsort(diff->changes, diff->n, sizeof(*diff->changes), compare_changes);
}

int fab_diff_compute(const struct fab_inventory *before, const struct fab_inventory *after,
                     struct fab_diff *diff)
{
    struct diff_walk walk = {.before = before, .after = after, .diff = diff};

    *diff = (struct fab_diff){0};
    if ((!before->finished && before->n_nodes > 0) || !after->finished)
        return PMIXFAB_ERR_INVAL;
    diff_each_node(&walk);
    diff_ports(&walk);
    diff_hosts(&walk);
    compare_subnets(&walk);
    free(walk.hosts);
    if (walk.rc != 0)
        fab_diff_destroy(diff);
    else
        fab_diff_sort(diff);
    return walk.rc;
}
