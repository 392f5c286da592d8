/*
 * diff.c - compute the differences of two inventories.
 *
 * Both are sorted: one parallel pass finds the nodes that only one has, and a second pass the ports. A cable
 * is handled at its lower end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/base/text.h"
#include "topo/changes/changes_private.h"

#define DIFF_GUID_TEXT 24

/* A comparison in progress. */
struct diff_walk {
    const struct fab_inventory *before, *after;
    struct diff_out out;
    const char **hosts; /* names of hosts that may have been added or lost */
    uint32_t n_hosts, cap_hosts;
};

static void diff_guid_text(uint64_t guid, char text[DIFF_GUID_TEXT])
{
    snprintf(text, DIFF_GUID_TEXT, "0x%016" PRIx64, guid);
}

/* `before` and `after` are cleaned here, `what` must be clean. */
static void diff_add(struct diff_walk *w, enum fab_change_kind kind, uint64_t guid, uint32_t port,
                     const char *what, const char *before, const char *after)
{
    diff_put(&w->out, &(struct fab_change){.kind = kind,
                                           .guid = guid,
                                           .port = port,
                                           .what = (char *)what,
                                           .before = (char *)before,
                                           .after = (char *)after,
                                           .n_raw = 1});
    if (w->out.rc == 0)
        w->out.diff->n_lost += kind == FAB_CHANGE_HOST_LOST || kind == FAB_CHANGE_DEVICE_LOST ||
                               kind == FAB_CHANGE_SWITCH_LOST || kind == FAB_CHANGE_LINK_LOST;
}

/*
 * Add the things that only this inventory has. kind: the kind of an addition, which is directly before the
 * kind of the loss; or FAB_CHANGE_OTHER.
 */
static void diff_add_one_sided(struct diff_walk *w, const struct fab_inventory *inv,
                               enum fab_change_kind kind, uint64_t guid, uint32_t port, const char *what,
                               const char *value)
{
    const bool added = inv == w->after;
    diff_add(w, added || kind == FAB_CHANGE_OTHER ? kind : kind + 1, guid, port, what, added ? "" : value,
             added ? value : "");
}

/* Add a change if the place is retained from now on, or the thing is seen again. */
static void diff_add_missing(struct diff_walk *w, enum fab_change_kind kind, bool missing, uint64_t guid,
                             uint32_t port, const char *what)
{
    static const char *const words[] = {"there", "missing"};
    diff_add(w, missing ? kind : kind + 1, guid, port, what, words[!missing], words[missing]);
}

/* Add a change if a number without a kind of its own differs. digits: of a hexadecimal number; 0: decimal. */
static void diff_number(struct diff_walk *w, const char *of, uint64_t guid, uint32_t port, const char *word,
                        uint64_t before, uint64_t after, int digits)
{
    char what[FAB_LINK_TEXT], b[24], a[24];

    if (before == after)
        return;
    snprintf(what, sizeof(what), "%s: %s", of, word);
    snprintf(b, sizeof(b), digits > 0 ? "0x%0*" PRIx64 : "%0*" PRIu64, digits, before);
    snprintf(a, sizeof(a), digits > 0 ? "0x%0*" PRIx64 : "%0*" PRIu64, digits, after);
    diff_add(w, FAB_CHANGE_OTHER, guid, port, what, b, a);
}

static void diff_lid(struct diff_walk *w, const char *what, uint64_t guid, uint32_t port, unsigned before,
                     unsigned after)
{
    char b[16], a[16];

    if (before == after)
        return;
    snprintf(b, sizeof(b), "%u", before);
    snprintf(a, sizeof(a), "%u", after);
    diff_add(w, FAB_CHANGE_LID, guid, port, what, b, a);
}

/* ---- nodes ---------------------------------------------------------------------------------------- */

/* Add a node that only one inventory has. An HCA with cables is reported by its devices. */
static void one_sided_node(struct diff_walk *w, const struct fab_inventory *inv, const struct fab_node *node)
{
    static const char *const words[] = {
        [FAB_HCA] = "HCA without a cable", [FAB_ROUTER] = "router", [FAB_AGGREGATOR] = "aggregation node"};
    const bool is_switch = node->kind == FAB_SWITCH;
    char what[FAB_NODE_TEXT], guid[DIFF_GUID_TEXT];

    if (node->kind == FAB_HCA && fab_node_is_cabled(inv, node))
        return;
    fab_node_text(inv, node, what);
    diff_guid_text(node->guid, guid);
    diff_add_one_sided(w, inv, is_switch ? FAB_CHANGE_SWITCH_ADDED : FAB_CHANGE_OTHER, node->guid, 0, what,
                       is_switch ? guid : words[node->kind]);
}

/* Note a host that may have been added or lost with a device. */
static void diff_note_host(struct diff_walk *w, const char *name)
{
    if (w->out.rc == 0 && !FAB_ARRAY_ROOM(&w->hosts, &w->cap_hosts, w->n_hosts + 1))
        w->out.rc = PMIXFAB_ERR_NOMEM;
    if (w->out.rc == 0)
        w->hosts[w->n_hosts++] = name;
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

static void diff_compare_nodes(struct diff_walk *w, const struct fab_node *b, const struct fab_node *a)
{
    char what[FAB_NODE_TEXT];
    uint64_t guid = a->guid;

    if (fab_node_equal(w->before, b, w->after, a))
        return;
    fab_node_text(w->before, b, what);
    if (b->missing != a->missing)
        diff_add_missing(w, a->kind == FAB_SWITCH ? FAB_CHANGE_SWITCH_MISSING : FAB_CHANGE_HOST_MISSING,
                         a->missing, guid, 0, what);
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
        } else { /* one GUID, two kinds: one was lost, one was added */
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

/* ---- ports, the devices that they are, and the cables between them ---------------------------------- */

/* Compare ports by node GUID and port number, which are the same in every inventory. */
static int diff_compare_ports(const struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    uint64_t guid_b = w->before->nodes[b->node].guid, guid_a = w->after->nodes[a->node].guid;
    return FAB_ORDER(guid_b, guid_a) ?: FAB_ORDER(b->num, a->num);
}

static bool diff_port_is_device(const struct fab_inventory *inv, const struct fab_port *port)
{
    return port != NULL && port->peer != FAB_NONE && inv->nodes[port->node].kind == FAB_HCA;
}

/* A cable is handled from its lower end only. */
static bool is_lower_end(const struct fab_inventory *inv, const struct fab_port *port)
{
    return port != NULL && port->peer != FAB_NONE && (uint32_t)(port - inv->ports) < port->peer;
}

static void one_sided_device(struct diff_walk *w, const struct fab_inventory *inv,
                             const struct fab_port *port)
{
    const struct fab_node *node = &inv->nodes[port->node];
    char what[FAB_PORT_TEXT], guid[DIFF_GUID_TEXT];

    fab_port_text(inv, port, what);
    diff_guid_text(node->guid, guid);
    diff_add_one_sided(w, inv, FAB_CHANGE_DEVICE_ADDED, node->guid, port->num, what, guid);
    diff_note_host(w, fab_str(inv, node->host));
}

static void one_sided_link(struct diff_walk *w, const struct fab_inventory *inv, const struct fab_port *port)
{
    char what[FAB_LINK_TEXT], rate[32];

    fab_link_text(inv, port, what);
    fab_rate_text(port, rate);
    diff_add_one_sided(w, inv, FAB_CHANGE_LINK_ADDED, inv->nodes[port->node].guid, port->num, what, rate);
}

static void diff_compare_cables(struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    bool had = is_lower_end(w->before, b), has = is_lower_end(w->after, a);

    if (!had && !has)
        return;
    const struct fab_port *peer_b = had ? &w->before->ports[b->peer] : NULL;
    const struct fab_port *peer_a = has ? &w->after->ports[a->peer] : NULL;
    if (!had || !has || diff_compare_ports(w, peer_b, peer_a) != 0) {
        if (had)
            one_sided_link(w, w->before, b);
        if (has)
            one_sided_link(w, w->after, a);
        return;
    }
    bool lower_same = fab_same_rate(b, a);
    if (lower_same && fab_same_rate(peer_b, peer_a))
        return;
    char what[FAB_LINK_TEXT], rate_b[32], rate_a[32];
    fab_link_text(w->after, a, what);
    fab_rate_text(lower_same ? peer_b : b, rate_b);
    fab_rate_text(lower_same ? peer_a : a, rate_a);
    diff_add(w, FAB_CHANGE_LINK_RATE, w->after->nodes[a->node].guid, a->num, what, rate_b, rate_a);
}

static void other_fact(struct diff_walk *w, const struct fab_port *port, const char *of, const char *word,
                       const char *before, const char *after)
{
    char what[FAB_LINK_TEXT];
    snprintf(what, sizeof(what), "%s: %s", of, word);
    diff_add(w, FAB_CHANGE_OTHER, w->after->nodes[port->node].guid, port->num, what, before, after);
}

/*
 * Report a cable of a present HCA that is retained, or is seen again. An HCA that is gone as a whole is
 * reported as missing.
 */
static void diff_compare_missing_port(struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    const bool gone = w->after->nodes[a->node].missing && !w->before->nodes[b->node].missing;
    char what[FAB_LINK_TEXT];

    if (b->missing == a->missing || (!a->missing && gone))
        return;
    fab_link_text(w->after, a, what);
    diff_add_missing(w, FAB_CHANGE_PORT_MISSING, a->missing, w->after->nodes[a->node].guid, a->num, what);
}

/* Compare the values of a port besides its cable. A port that lost or got its cable is reported already. */
static void diff_compare_facts(struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    char of[FAB_PORT_TEXT], text_b[32], text_a[32];
    uint64_t guid = w->after->nodes[a->node].guid;
    bool cabled = b->peer != FAB_NONE;

    if (cabled != (a->peer != FAB_NONE) ||
        (b->guid == a->guid && b->lid == a->lid && b->lmc == a->lmc && b->state == a->state &&
         b->subnet == a->subnet && b->missing == a->missing && (cabled || fab_same_rate(b, a))))
        return;
    if (cabled)
        diff_compare_missing_port(w, b, a);
    fab_port_text(w->after, a, of);
    /* a missing port is always down; do not report that */
    if (b->state != a->state && fab_port_is_missing(w->before, b) == fab_port_is_missing(w->after, a)) {
        const char *state_b = fab_state_text(b->state), *state_a = fab_state_text(a->state);
        if (cabled && (b->state == FAB_PORT_ACTIVE || a->state == FAB_PORT_ACTIVE))
            diff_add(w, FAB_CHANGE_PORT_STATE, guid, a->num, of, state_b, state_a);
        else
            other_fact(w, a, of, "state", state_b, state_a);
    }
    diff_lid(w, of, guid, a->num, b->lid, a->lid);
    if (!cabled && !fab_same_rate(b, a)) {
        fab_rate_text(b, text_b);
        fab_rate_text(a, text_a);
        other_fact(w, a, of, "rate", text_b, text_a);
    }
    diff_number(w, of, guid, a->num, "port GUID", b->guid, a->guid, 16);
    diff_number(w, of, guid, a->num, "LMC", b->lmc, a->lmc, 0);
    diff_number(w, of, guid, a->num, "subnet", b->subnet, a->subnet, 0);
}

/* Add a port without a cable that only one inventory lists, of a node in both. */
static void one_sided_port(struct diff_walk *w, const struct fab_inventory *inv, const struct fab_port *port)
{
    const struct fab_inventory *other = inv == w->after ? w->before : w->after;
    const struct fab_node *node = &inv->nodes[port->node];
    uint32_t same = fab_inventory_find(other, node->guid);
    char what[FAB_PORT_TEXT];

    if (same == FAB_NONE || other->nodes[same].kind != node->kind)
        return;
    fab_port_text(inv, port, what);
    diff_add_one_sided(w, inv, FAB_CHANGE_OTHER, node->guid, port->num, what, fab_state_text(port->state));
}

/* Compare one port; NULL: that inventory does not have it. */
static void compare_port(struct diff_walk *w, const struct fab_port *b, const struct fab_port *a)
{
    bool was_device = diff_port_is_device(w->before, b);

    if (was_device != diff_port_is_device(w->after, a))
        one_sided_device(w, was_device ? w->before : w->after, was_device ? b : a);
    diff_compare_cables(w, b, a);
    if (b != NULL && a != NULL) {
        if (w->before->nodes[b->node].kind == w->after->nodes[a->node].kind)
            diff_compare_facts(w, b, a);
    } else if (b != NULL && b->peer == FAB_NONE) {
        one_sided_port(w, w->before, b);
    } else if (a != NULL && a->peer == FAB_NONE) {
        one_sided_port(w, w->after, a);
    }
}

static void diff_each_port(struct diff_walk *w)
{
    uint32_t i = 0, k = 0;

    while (i < w->before->n_ports || k < w->after->n_ports) {
        const struct fab_port *b = i < w->before->n_ports ? &w->before->ports[i] : NULL;
        const struct fab_port *a = k < w->after->n_ports ? &w->after->ports[k] : NULL;
        int order = b == NULL ? 1 : a == NULL ? -1 : diff_compare_ports(w, b, a);
        compare_port(w, order <= 0 ? b : NULL, order >= 0 ? a : NULL);
        i += order <= 0;
        k += order >= 0;
    }
}

/*
 * ---- hosts ----------------------------------------------------------------------------------------
 *
 * A host is the set of HCAs with its name and a cabled port. It can only have been added or lost if such a
 * device was, or was renamed. Those names are noted first, and no others are checked.
 */

/* A noted host: the number of its devices on either side, and its node with the lowest GUID. */
struct noted {
    const char *name;
    struct {
        uint32_t n;
        uint64_t guid;
    } before, after;
};

static int diff_compare_host_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void diff_count_devices(const struct fab_inventory *inv, struct noted *list, uint32_t n, bool is_after)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        const char *name = fab_str(inv, node->host);
        uint32_t cabled = 0;
        if (node->kind != FAB_HCA)
            continue;
        for (uint32_t p = 0; p < node->n_ports; p++)
            cabled += inv->ports[node->first_port + p].peer != FAB_NONE;
        uint32_t at = cabled == 0 ? n : FAB_LOWER_BOUND(0, n, k, strcmp(list[k].name, name) < 0);
        if (at == n || strcmp(list[at].name, name) != 0)
            continue;
        uint32_t *count = is_after ? &list[at].after.n : &list[at].before.n;
        if (*count == 0) /* nodes are in the order of their GUIDs */
            *(is_after ? &list[at].after.guid : &list[at].before.guid) = node->guid;
        *count += cabled;
    }
}

static void diff_hosts(struct diff_walk *w)
{
    uint32_t n = 0;
    char what[FAB_NODE_TEXT], devices[32];

    if (w->out.rc != 0 || w->n_hosts == 0)
        return;
    struct noted *list = calloc(w->n_hosts, sizeof(*list));
    if (list == NULL) {
        w->out.rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    qsort(w->hosts, w->n_hosts, sizeof(*w->hosts), diff_compare_host_names);
    for (uint32_t i = 0; i < w->n_hosts; i++) {
        if (n == 0 || strcmp(list[n - 1].name, w->hosts[i]) != 0)
            list[n++].name = w->hosts[i];
    }
    diff_count_devices(w->before, list, n, false);
    diff_count_devices(w->after, list, n, true);
    for (uint32_t i = 0; i < n; i++) {
        const struct noted *host = &list[i];
        const bool added = host->after.n > 0;
        if ((host->before.n > 0) == added)
            continue;
        const uint32_t count = added ? host->after.n : host->before.n;
        fab_text_clean(what, sizeof(what), host->name, strlen(host->name), NULL);
        snprintf(devices, sizeof(devices), "%" PRIu32 " device%s", count, count == 1 ? "" : "s");
        diff_add_one_sided(w, added ? w->after : w->before, FAB_CHANGE_HOST_ADDED,
                           added ? host->after.guid : host->before.guid, 0, what, devices);
    }
    free(list);
}

int fab_diff_compute(const struct fab_inventory *before, const struct fab_inventory *after,
                     struct fab_diff *diff)
{
    struct diff_walk walk = {.before = before, .after = after, .out = {.diff = diff}};

    *diff = (struct fab_diff){0};
    if ((!before->finished && before->n_nodes > 0) || !after->finished)
        return PMIXFAB_ERR_INVAL;
    diff_each_node(&walk);
    diff_each_port(&walk);
    diff_hosts(&walk);
    compare_subnets(&walk);
    free(walk.hosts);
    if (diff_finish(&walk.out) != PMIXFAB_OK)
        fab_diff_destroy(diff);
    return walk.out.rc;
}
