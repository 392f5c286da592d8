/*
 * correlate.c - run the correlation: the conclusions in order, then nodes that came or went with their
 * cables, then all other raw changes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/changes/changes_private.h"

/* ---- hosts, devices and switches with their cables ----------------------------------------------- */

/* An added or lost device, by its host. */
struct device {
    const char *host;
    uint32_t raw, port;
};

/* The added or the lost things: kinds of changes, and the inventory that has them. */
struct gone {
    const struct fab_inventory *inv;
    bool added;
    enum fab_change_kind host, device, sw;
    struct device *devices;
    uint32_t n_devices;
};

static int compare_devices(const void *a, const void *b)
{
    const struct device *x = a, *y = b;
    return strcmp(x->host, y->host) ?: FAB_ORDER(x->raw, y->raw);
}

static void list_devices(struct correlation *s, struct gone *g)
{
    const struct fab_inventory *inv = g->inv;

    g->devices = malloc((s->raw->n + 1u) * sizeof(*g->devices));
    if (g->devices == NULL)
        s->out.rc = PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; g->devices != NULL && i < s->raw->n; i++) {
        const struct fab_change *change = &s->raw->changes[i];
        if (change->kind != g->device || s->taken[i])
            continue;
        const uint32_t node = fab_inventory_find(inv, change->guid);
        const uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, change->port);
        if (port != FAB_NONE)
            g->devices[g->n_devices++] = (struct device){fab_str(inv, inv->nodes[node].host), i, port};
    }
    if (g->n_devices > 1)
        qsort(g->devices, g->n_devices, sizeof(*g->devices), compare_devices);
}

/* The cables of a lost or added host or device. */
struct cables_gone {
    uint32_t n;
    char place[FAB_PORT_TEXT],
        list[DIFF_VALUE_TEXT]; /* of the devices; "0x0000000000100004 at leaf2[3], ..." */
    bool with_switch, full;    /* the first one's switch is concerned, too */
};

/* Take a device with its cable, unless the cable is reported already. */
static void claim_device(struct correlation *s, const struct gone *g, const struct device *device,
                         struct cables_gone *cables)
{
    const uint32_t peer = g->inv->ports[device->port].peer, far = peer_node(g->inv, device->port);
    const size_t used = strlen(cables->list);
    char place[FAB_PORT_TEXT], one[DIFF_VALUE_TEXT];

    claim_this(s, device->raw);
    fab_port_text(g->inv, &g->inv->ports[peer], place);
    if (cables->n++ == 0) {
        cables->with_switch = (g->added ? s->to_before : s->to_after)[far] == FAB_NONE;
        snprintf(cables->place, sizeof(cables->place), "%s", place);
    }
    if (!cables->full) {
        const int n = snprintf(one, sizeof(one), "0x%016" PRIx64 " at %.200s",
                               port_end(g->inv, device->port).guid, place);
        cables->full = n <= 0 || used + (size_t)n + sizeof(", ...") + 2 >= DIFF_VALUE_TEXT;
        snprintf(cables->list + used, DIFF_VALUE_TEXT - used, "%s%s", used == 0 ? "" : ", ",
                 cables->full ? "..." : one);
    }
    subject_link(s, g->inv, device->port);
    claim_link(s, g->inv, device->port);
}

/* Return whether it was missing. A host's change has no port; then the node is checked. */
static bool was_missing(const struct correlation *s, uint32_t node, uint32_t num)
{
    const uint32_t port = node == FAB_NONE || num == 0 ? FAB_NONE : fab_inventory_port(s->before, node, num);
    return node != FAB_NONE &&
           (s->before->nodes[node].missing ||
            (port != FAB_NONE && fab_port_is_missing(s->before, &s->before->ports[port])));
}

/* `value`: the old or the new value. */
static void conclude_with_cables(struct correlation *s, const struct gone *g, const struct fab_change *change,
                                 const char *value, const struct cables_gone *cables, const char *more)
{
    const struct fab_told_end at = {change->guid, change->port};
    const uint32_t node = g->added ? FAB_NONE : fab_inventory_find(s->before, change->guid);
    char others[40] = "";

    say(s, change->what, g->added ? "" : value, g->added ? value : "");
    if (cables->n > 1)
        snprintf(others, sizeof(others), " and %" PRIu32 " more", cables->n - 1);
    if (was_missing(s, node, change->port))
        conclude(s, change->kind, at, "it was missing; its place is no longer kept");
    else if (cables->n == 0)
        conclude(s, change->kind, at, g->added ? "it is seen now" : "it is no longer seen");
    else
        conclude(s, change->kind, at, "a cable at %.200s%s %s%s%s", cables->place, others,
                 g->added ? "came" : "is gone", cables->with_switch ? ", with the switch" : "", more);
}

static void conclude_host_gone(struct correlation *s, uint32_t raw, const struct gone *g)
{
    const struct fab_change *change = claim_this(s, raw);
    const uint32_t node = fab_inventory_find(g->inv, change->guid);
    const char *host = node == FAB_NONE ? "" : fab_str(g->inv, g->inv->nodes[node].host);
    struct cables_gone cables = {.n = 0};
    char value[DIFF_VALUE_TEXT + 40];

    subject(s, change->what);
    for (uint32_t i = FAB_LOWER_BOUND(0, g->n_devices, k, strcmp(g->devices[k].host, host) < 0);
         i < g->n_devices && strcmp(g->devices[i].host, host) == 0; i++) {
        if (!s->taken[g->devices[i].raw])
            claim_device(s, g, &g->devices[i], &cables);
    }
    snprintf(value, sizeof(value), "%s%s%s%s", change->before, change->after, cables.n == 0 ? "" : ": ",
             cables.list);
    conclude_with_cables(s, g, change, value, &cables, "");
}

/* Return whether another HCA has the name of this one. */
static bool shares_name(const struct fab_inventory *inv, const struct named *list, uint32_t n, uint32_t node)
{
    const struct named key = named_node(inv, node);
    const uint32_t at = FAB_LOWER_BOUND(0, n, i, compare_named(&list[i], &key) < 0);
    return at + 1 < n && compare_named(&list[at + 1], &key) == 0;
}

/* Conclude for devices whose host is still present, or was before. */
static void conclude_devices_gone(struct correlation *s, const struct gone *g)
{
    struct named *by_name = NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_devices && s->out.rc == 0; i++) {
        const struct device *device = &g->devices[i];
        const uint32_t node = g->inv->ports[device->port].node;
        struct cables_gone cables = {.n = 0};
        if (s->taken[device->raw])
            continue;
        if (by_name == NULL && (by_name = list_named(g->inv, &n)) == NULL) {
            s->out.rc = PMIXFAB_ERR_NOMEM;
            break;
        }
        subject_node(s, g->inv, node);
        claim_device(s, g, device, &cables);
        conclude_with_cables(
            s, g, &s->raw->changes[device->raw], cables.list, &cables,
            shares_name(g->inv, by_name, n, node)
                ? "; another HCA has the same host and device name: check for two hosts with one name"
                : "");
    }
    free(by_name);
}

static void conclude_switch_gone(struct correlation *s, uint32_t raw, const struct gone *g)
{
    const struct fab_change *change = claim_this(s, raw);
    const struct fab_inventory *inv = g->inv;
    const uint32_t node = fab_inventory_find(inv, change->guid);
    const uint32_t first = node == FAB_NONE ? 0 : inv->nodes[node].first_port;
    const uint32_t end = node == FAB_NONE ? 0 : first + inv->nodes[node].n_ports;
    uint32_t cables = 0;

    if (node != FAB_NONE)
        subject_node(s, inv, node);
    for (uint32_t port = first; port < end; port++) {
        cables += inv->ports[port].peer != FAB_NONE;
        if (claim_link(s, inv, port) != FAB_NONE)
            subject_link(s, inv, port);
    }
    say(s, change->what, change->before, change->after);
    conclude(s, change->kind, (struct fab_told_end){change->guid, 0}, "it %s, with %" PRIu32 " cable%s",
             g->added ? "is seen now" : "is no longer seen", cables, cables == 1 ? "" : "s");
}

/* Handle hosts with their cables, then devices, then switches. */
static void conclude_gone(struct correlation *s, struct gone g)
{
    list_devices(s, &g);
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (s->raw->changes[i].kind == g.host && !s->taken[i])
            conclude_host_gone(s, i, &g);
    }
    conclude_devices_gone(s, &g);
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (s->raw->changes[i].kind == g.sw && !s->taken[i])
            conclude_switch_gone(s, i, &g);
    }
    free(g.devices);
}

/* ---- changes reported unchanged ------------------------------------------------------------------ */

/* Return the text for a node that is seen again: whether its cables are in their old places. */
static const char *back_where(const struct correlation *s, uint64_t guid)
{
    const uint32_t b = fab_inventory_find(s->before, guid), a = fab_inventory_find(s->after, guid);
    uint32_t had = 0, has = 0, stayed = 0;

    for (uint32_t p = 0; b != FAB_NONE && p < s->before->nodes[b].n_ports; p++)
        had += s->before->ports[s->before->nodes[b].first_port + p].peer != FAB_NONE;
    for (uint32_t i = 0; b != FAB_NONE && a != FAB_NONE && i < s->after->nodes[a].n_ports; i++) {
        const struct fab_port *port = &s->after->ports[s->after->nodes[a].first_port + i];
        const uint32_t was = fab_inventory_port(s->before, b, port->num);
        has += port->peer != FAB_NONE;
        stayed += port->peer != FAB_NONE && was != FAB_NONE && s->before->ports[was].peer != FAB_NONE &&
                  port_after(s, s->before->ports[was].peer) == port->peer;
    }
    if (stayed == has || stayed == had) /* the other cables are out, or were added */
        return "it is seen again, at its old place";
    return stayed > 0 ? "it is seen again, with some of its cables at another place"
                      : "it is seen again, at another place";
}

/*
 * Find the reason for a missing node: a port at its cable that is disabled now. Return false if there is
 * none.
 */
static bool find_disabled(const struct correlation *s, const struct fab_change *change,
                          char text[FAB_PORT_TEXT])
{
    const uint32_t b = change->guid == 0 ? FAB_NONE : fab_inventory_find(s->before, change->guid);
    for (uint32_t i = 0; b != FAB_NONE && i < s->before->nodes[b].n_ports; i++) {
        const uint32_t port = s->before->nodes[b].first_port + i;
        const uint32_t ends[] = {port, s->before->ports[port].peer};
        if (ends[1] == FAB_NONE || (change->port != 0 && s->before->ports[port].num != change->port))
            continue;
        for (size_t e = 0; e < 2; e++) {
            const uint32_t now = port_after(s, ends[e]);
            if (now == FAB_NONE || s->after->ports[now].state != FAB_PORT_DISABLED)
                continue;
            fab_port_text(s->after, &s->after->ports[now], text);
            return true;
        }
    }
    return false;
}

/* Return the reason for a port's change besides its cable; its states are reported as texts. */
static const char *other_reason(const struct fab_change *change)
{
    static const struct {
        enum fab_port_state state;
        const char *begins, *ends;
    } reasons[] = {
        {FAB_PORT_LOOPED, "both ends of its cable are on the same node",
         "its cable no longer has both ends on the same node"},
        {FAB_PORT_DISABLED, "the port was switched off", "the port is no longer switched off"},
    };
    for (size_t i = 0; change->port != 0 && i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        const char *state = fab_state_text(reasons[i].state);
        if (strcmp(change->after, state) == 0)
            return reasons[i].begins;
        if (strcmp(change->before, state) == 0)
            return reasons[i].ends;
    }
    return "found by the sweep";
}

/* Kinds of changes that are reported unchanged: their reason, and their subjects. */
#define NODE_MISSING "it is no longer seen and was not replaced; its place is kept for a while"
static const struct {
    const char *why;
    bool is_link; /* both ends */
    bool is_host; /* also the peers of its HCA, which may be the reason */
    bool is_gone; /* check for a disabled port */
} as_it_is[FAB_CHANGE_KINDS] = {
    [FAB_CHANGE_LINK_ADDED] = {"a new cable", .is_link = true},
    [FAB_CHANGE_LINK_LOST] = {"the cable is no longer seen and was not replaced", .is_link = true,
                              .is_gone = true},
    [FAB_CHANGE_LINK_RATE] = {"the same cable at another width or speed", .is_link = true},
    [FAB_CHANGE_NAME] = {"the same GUID under another name"},
    [FAB_CHANGE_LID] = {"the subnet manager assigned another LID"},
    [FAB_CHANGE_HOST_MISSING] = {NODE_MISSING, .is_host = true, .is_gone = true},
    [FAB_CHANGE_HOST_BACK] = {.is_host = true},
    [FAB_CHANGE_SWITCH_MISSING] = {NODE_MISSING},
    [FAB_CHANGE_PORT_MISSING] =
        {"the cable is no longer seen and was not replaced; its place is kept for a while", .is_link = true,
         .is_gone = true},
    [FAB_CHANGE_PORT_BACK] = {"the cable is seen again, at its old place", .is_link = true},
};

static void subjects_of(struct correlation *s, const struct fab_inventory *inv,
                        const struct fab_change *change)
{
    const uint32_t node = change->guid == 0 ? FAB_NONE : fab_inventory_find(inv, change->guid);
    if (node == FAB_NONE)
        return;
    const uint32_t port =
        as_it_is[change->kind].is_link ? fab_inventory_port(inv, node, change->port) : FAB_NONE;
    if (port != FAB_NONE)
        subject_link(s, inv, port);
    else
        subject_node(s, inv, node);
    for (uint32_t i = 0; as_it_is[change->kind].is_host && i < inv->nodes[node].n_ports; i++)
        subject_link(s, inv, inv->nodes[node].first_port + i);
}

/* Return whether a switch is in both inventories, under a name that no switch had before. */
static bool is_switch_renamed(const struct correlation *s, uint64_t guid)
{
    const uint32_t b = fab_inventory_find(s->before, guid), a = fab_inventory_find(s->after, guid);
    return b != FAB_NONE && a != FAB_NONE && is_kind(s->after, a, FAB_SWITCH) &&
           is_renamed(s, fab_node_known_as(s->before, &s->before->nodes[b]), a);
}

static void conclude_as_it_is(struct correlation *s, uint32_t raw)
{
    const struct fab_change *change = claim_this(s, raw);
    const struct fab_told_end at = {change->guid, change->port};
    const char *why = as_it_is[change->kind].why;
    char port[FAB_PORT_TEXT];

    if (change->kind != FAB_CHANGE_LINK_ADDED)
        subjects_of(s, s->before, change);
    if (change->kind != FAB_CHANGE_LINK_LOST)
        subjects_of(s, s->after, change);
    say(s, change->what, change->before, change->after);
    if (change->kind == FAB_CHANGE_NAME)
        s->now.renamed = is_switch_renamed(s, change->guid);
    if (change->kind == FAB_CHANGE_HOST_BACK || change->kind == FAB_CHANGE_SWITCH_BACK)
        why = back_where(s, change->guid);
    if (as_it_is[change->kind].is_gone && find_disabled(s, change, port))
        conclude(s, change->kind, at, "%.200s is disabled: that port was switched off", port);
    else
        conclude(s, change->kind, at, "%s", why != NULL ? why : other_reason(change));
}

static void conclude_rest(struct correlation *s)
{
    conclude_gone(s, (struct gone){s->before, false, FAB_CHANGE_HOST_LOST, FAB_CHANGE_DEVICE_LOST,
                                   FAB_CHANGE_SWITCH_LOST, NULL, 0});
    conclude_gone(s, (struct gone){s->after, true, FAB_CHANGE_HOST_ADDED, FAB_CHANGE_DEVICE_ADDED,
                                   FAB_CHANGE_SWITCH_ADDED, NULL, 0});
    conclude_ports(s);
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (!s->taken[i])
            conclude_as_it_is(s, i);
    }
}

/* ---- the whole correlation --------------------------------------------------------------------------- */

int fab_diff_correlate_with(const struct fab_inventory *before, const struct fab_inventory *after,
                            struct fab_lost *lost, struct fab_diff *diff)
{
    struct fab_diff told = {0};
    struct correlation s = {
        .before = before, .after = after, .raw = diff, .lost = lost, .out = {.diff = &told}};

    if ((!before->finished && before->n_nodes > 0) || !after->finished)
        return PMIXFAB_ERR_INVAL;
    for (uint32_t i = 0; lost != NULL && i < lost->cables.n; i++)
        lost->cables.items[i].used = false;
    if (diff->n == 0)
        return PMIXFAB_OK;
    s.out.rc = index_raw_changes(&s) ? correlation_match(&s) : PMIXFAB_ERR_NOMEM;
    if (s.out.rc != PMIXFAB_OK)
        goto cleanup;
    conclude_replaced(&s);
    conclude_moved(&s);
    conclude_names(&s);
    if (s.n_ends > 0 || s.n_past > before->n_nodes) {
        conclude_returned(&s);
        conclude_links_returned(&s);
    }
    conclude_rest(&s);
cleanup:
    free(s.by_key);
    free(s.taken);
    free(s.to_after);
    free(s.to_before);
    free(s.to_lost);
    free(s.ends);
    free(s.now.subjects);
    if (diff_finish(&s.out) != PMIXFAB_OK) {
        fab_diff_destroy(&told);
        return s.out.rc;
    }
    told.n_lost = diff->n_lost;
    fab_diff_destroy(diff);
    *diff = told;
    return PMIXFAB_OK;
}

/*
 * ---- things that are seen again and not usable yet -------------------------------------------------------
 */

static bool is_waiting(const struct fab_port *port)
{
    return port->state == FAB_PORT_INIT || port->state == FAB_PORT_ARMED;
}

/* Return whether this port's cable, or without a port all cables of the node, wait for a subnet manager. */
static bool waits_for_manager(const struct fab_inventory *inv, uint64_t guid, uint32_t num)
{
    const uint32_t n = fab_inventory_find(inv, guid);
    uint32_t waiting = 0;
    if (n == FAB_NONE)
        return false;
    const struct fab_node *node = &inv->nodes[n];
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer == FAB_NONE || (num != 0 && port->num != num))
            continue;
        if (!is_waiting(port) && !is_waiting(&inv->ports[port->peer]))
            return false;
        waiting++;
    }
    return waiting > 0;
}

void fab_diff_mark_inactive(const struct fab_inventory *after, struct fab_diff *diff)
{
    for (uint32_t i = 0; i < diff->n; i++) {
        struct fab_change *change = &diff->changes[i];
        const bool node = change->kind == FAB_CHANGE_HOST_BACK || change->kind == FAB_CHANGE_SWITCH_BACK;
        const bool port = change->kind == FAB_CHANGE_PORT_BACK || change->kind == FAB_CHANGE_LINK_BACK;
        if ((!node && !port) || !waits_for_manager(after, change->guid, node ? 0 : change->port))
            continue;
        change->kind = FAB_CHANGE_INACTIVE;
        change->why = "it is seen again, but no subnet manager answers to activate it";
    }
    fab_diff_sort(diff);
}
