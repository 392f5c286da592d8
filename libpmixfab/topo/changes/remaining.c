/* remaining.c - what came and went with its cables, and what is told as it is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"
#include "topo/base/text.h"
#include "topo/changes/correlation.h"

static const struct fab_inventory *remaining_inventory(const struct correlation *s, bool added)
{
    return added ? s->after : s->before;
}

/* ---- hosts, devices and switches with their cables ----------------------------------------------- */

/* A device that came or went, by its host. */
struct device {
    const char *host;
    uint32_t raw, port; /* in the inventory that has it */
};

struct devices {
    struct device *list;
    uint32_t n;
};

static int remaining_compare_devices(const void *a, const void *b)
{
    const struct device *x = a, *y = b;
    return strcmp(x->host, y->host) ?: FAB_ORDER(x->raw, y->raw);
}

static struct devices remaining_list_devices(struct correlation *s, enum fab_change_kind kind)
{
    const struct fab_inventory *inv = remaining_inventory(s, came(kind));
    struct devices devices = {malloc((s->raw->n + 1u) * sizeof(struct device)), 0};

    if (devices.list == NULL)
        s->out.rc = PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; devices.list != NULL && i < s->raw->n; i++) {
        const struct fab_change *change = &s->raw->changes[i];
        if (change->kind != kind || s->taken[i])
            continue;
        uint32_t node = fab_inventory_find(inv, change->guid);
        uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, change->port);
        if (port != FAB_NONE)
            devices.list[devices.n++] = (struct device){fab_str(inv, inv->nodes[node].host), i, port};
    }
    if (devices.n > 1)
        qsort(devices.list, devices.n, sizeof(*devices.list), remaining_compare_devices);
    return devices;
}

/* One that is not told yet goes with the host or device that it was of. */
static void take_device_link(struct correlation *s, const struct fab_inventory *inv, uint32_t port,
                             char place[FAB_PORT_TEXT])
{
    bool added = inv == s->after;
    uint32_t peer = inv->ports[port].peer;

    correlation_subject_link(s, inv, port);
    claim_raw_link(s, added ? FAB_CHANGE_LINK_ADDED : FAB_CHANGE_LINK_LOST, inv, port);
    if (place[0] == '\0')
        fab_port_text(inv, &inv->ports[peer], place);
}

/* Is what this port leads to in the other inventory as well? */
static bool has_switch(const struct correlation *s, const struct fab_inventory *inv, uint32_t port)
{
    uint32_t node = inv->ports[inv->ports[port].peer].node;
    return (inv == s->before ? s->to_after[node] : s->to_before[node]) != FAB_NONE;
}

/* Of a host's change, which has no port: its HCA was. */
static bool was_missing(const struct correlation *s, uint32_t node, uint32_t num)
{
    uint32_t port = node == FAB_NONE || num == 0 ? FAB_NONE : fab_inventory_port(s->before, node, num);
    return node != FAB_NONE &&
           (s->before->nodes[node].missing ||
            (port != FAB_NONE && fab_port_is_missing(s->before, &s->before->ports[port])));
}

/* Append "0x0000000000100004 at leaf2[3]" to a list. False: the list ends here. */
static bool append_device(const struct fab_inventory *inv, uint32_t port, char list[DIFF_VALUE_TEXT])
{
    const struct fab_port *device = &inv->ports[port];
    size_t used = strlen(list);
    char place[FAB_PORT_TEXT], one[DIFF_VALUE_TEXT];

    fab_port_text(inv, &inv->ports[device->peer], place);
    int n = snprintf(one, sizeof(one), "0x%016" PRIx64 " at %.200s", inv->nodes[device->node].guid, place);
    bool fits = n > 0 && used + (size_t)n + sizeof(", ...") + 2 < DIFF_VALUE_TEXT;
    snprintf(list + used, DIFF_VALUE_TEXT - used, "%s%s", used == 0 ? "" : ", ", fits ? one : "...");
    return fits;
}

/* `value`: what it was, or is. */
static void tell_gone(struct correlation *s, const struct fab_change *change, const char *value,
                      const char *place, uint32_t cables, bool with_switch, const char *more)
{
    bool added = came(change->kind);
    uint32_t node = added ? FAB_NONE : fab_inventory_find(s->before, change->guid);
    char why[DIFF_WHY_TEXT], others[40] = "";

    if (cables > 1)
        snprintf(others, sizeof(others), " and %" PRIu32 " more", cables - 1);
    if (was_missing(s, node, change->port))
        snprintf(why, sizeof(why), "it was missing, and its place is not kept any more");
    else if (cables == 0)
        snprintf(why, sizeof(why), "%s", added ? "it is seen now" : "it is not seen any more");
    else
        snprintf(why, sizeof(why), "a cable at %.200s%s %s%s%s", place, others, added ? "came" : "is gone",
                 with_switch ? ", with the switch" : "", more);
    correlation_conclude(s, change->kind, change->guid, change->port, change->what, added ? "" : value,
                         added ? value : "", why);
}

static void host_gone(struct correlation *s, uint32_t raw, const struct devices *devices)
{
    const struct fab_change *change = claim_raw_this(s, raw);
    const struct fab_inventory *inv = remaining_inventory(s, came(change->kind));
    uint32_t node = fab_inventory_find(inv, change->guid), cables = 0;
    const char *host = node == FAB_NONE ? "" : fab_str(inv, inv->nodes[node].host);
    char place[FAB_PORT_TEXT] = "", list[DIFF_VALUE_TEXT] = "", value[DIFF_VALUE_TEXT + 40];
    bool with_switch = false, room = true;

    uint32_t low = FAB_LOWER_BOUND(0, devices->n, i, strcmp(devices->list[i].host, host) < 0);
    correlation_subject(s, change->what);
    for (; low < devices->n && strcmp(devices->list[low].host, host) == 0; low++) {
        const struct device *device = &devices->list[low];
        if (s->taken[device->raw])
            continue;
        claim_raw_this(s, device->raw);
        with_switch |= cables++ == 0 && !has_switch(s, inv, device->port);
        room = room && append_device(inv, device->port, list);
        take_device_link(s, inv, device->port, place);
    }
    snprintf(value, sizeof(value), "%s%s%s%s", change->before, change->after, cables == 0 ? "" : ": ", list);
    tell_gone(s, change, value, place, cables, with_switch, "");
}

/* ---- devices and switches -------------------------------------------------------------------------- */

static void device_gone(struct correlation *s, const struct device *device, bool twice)
{
    const struct fab_change *change = claim_raw_this(s, device->raw);
    const struct fab_inventory *inv = remaining_inventory(s, came(change->kind));
    char place[FAB_PORT_TEXT] = "", value[DIFF_VALUE_TEXT] = "";

    correlation_subject_node(s, inv, inv->ports[device->port].node);
    append_device(inv, device->port, value);
    bool with_switch = !has_switch(s, inv, device->port);
    take_device_link(s, inv, device->port, place);
    tell_gone(s, change, value, place, 1, with_switch,
              twice ? "; another HCA has this host's and device's name: two hosts of one name?" : "");
}

/* Has another HCA this one's name? */
static bool correlation_is_twice(const struct fab_inventory *inv, const struct correlation_named *list,
                                 uint32_t n, uint32_t node)
{
    const struct correlation_named key = correlation_name_of(inv, node);
    uint32_t at = FAB_LOWER_BOUND(0, n, i, correlation_compare_named(&list[i], &key) < 0);
    return at + 1 < n && correlation_compare_named(&list[at + 1], &key) == 0;
}

/* Those whose host is still there, or was before. */
static void devices_gone(struct correlation *s, const struct fab_inventory *inv,
                         const struct devices *devices)
{
    struct correlation_named *by_name = NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; i < devices->n && s->out.rc == 0; i++) {
        const struct device *device = &devices->list[i];
        if (s->taken[device->raw])
            continue;
        if (by_name == NULL && (by_name = correlation_list_named(inv, NULL, NULL, &n)) == NULL)
            s->out.rc = PMIXFAB_ERR_NOMEM;
        else
            device_gone(s, device, correlation_is_twice(inv, by_name, n, inv->ports[device->port].node));
    }
    free(by_name);
}

static void switch_gone(struct correlation *s, uint32_t raw)
{
    const struct fab_change *change = claim_raw_this(s, raw);
    bool added = came(change->kind);
    const struct fab_inventory *inv = remaining_inventory(s, added);
    uint32_t node = fab_inventory_find(inv, change->guid), cables = 0;
    char why[DIFF_WHY_TEXT];

    if (node != FAB_NONE)
        correlation_subject_node(s, inv, node);
    for (uint32_t i = 0; node != FAB_NONE && i < inv->nodes[node].n_ports; i++) {
        uint32_t port = inv->nodes[node].first_port + i;
        if (inv->ports[port].peer == FAB_NONE)
            continue;
        cables++;
        if (claim_raw_link(s, added ? FAB_CHANGE_LINK_ADDED : FAB_CHANGE_LINK_LOST, inv, port) != FAB_NONE)
            correlation_subject_link(s, inv, port);
    }
    snprintf(why, sizeof(why), "it %s, with %" PRIu32 " cable%s",
             added ? "is seen now" : "is not seen any more", cables, cables == 1 ? "" : "s");
    correlation_conclude(s, change->kind, change->guid, 0, change->what, change->before, change->after, why);
}

/* Those that came, or those that went. Hosts have their cables, then devices, then switches. */
static void remaining_conclude(struct correlation *s, enum fab_change_kind host, enum fab_change_kind device,
                               enum fab_change_kind sw)
{
    struct devices devices = remaining_list_devices(s, device);

    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (s->raw->changes[i].kind == host && !s->taken[i])
            host_gone(s, i, &devices);
    }
    devices_gone(s, remaining_inventory(s, came(device)), &devices);
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (s->raw->changes[i].kind == sw && !s->taken[i])
            switch_gone(s, i);
    }
    free(devices.list);
}

void correlation_gone(struct correlation *s)
{
    remaining_conclude(s, FAB_CHANGE_HOST_LOST, FAB_CHANGE_DEVICE_LOST, FAB_CHANGE_SWITCH_LOST);
    remaining_conclude(s, FAB_CHANGE_HOST_ADDED, FAB_CHANGE_DEVICE_ADDED, FAB_CHANGE_SWITCH_ADDED);
}

/* ---- what is told as it is ------------------------------------------------------------------------- */

/* Of a node that is seen again: are its cables where they were? */
static const char *back_where(const struct correlation *s, uint64_t guid)
{
    uint32_t b = fab_inventory_find(s->before, guid), a = fab_inventory_find(s->after, guid);
    uint32_t had = 0, has = 0, stayed = 0;

    for (uint32_t i = 0; b != FAB_NONE && i < s->before->nodes[b].n_ports; i++)
        had += peer_of(s->before, b, i) != FAB_NONE;
    for (uint32_t i = 0; b != FAB_NONE && a != FAB_NONE && i < s->after->nodes[a].n_ports; i++) {
        uint32_t far = peer_of(s->after, a, i);
        uint32_t was =
            fab_inventory_port(s->before, b, s->after->ports[s->after->nodes[a].first_port + i].num);
        has += far != FAB_NONE;
        stayed += far != FAB_NONE && was != FAB_NONE && s->before->ports[was].peer != FAB_NONE &&
                  correlation_port_after(s, s->before->ports[was].peer) == far;
    }
    if (stayed == has || stayed == had) /* the others are out, or are more than it had */
        return "it is seen again, at its old place";
    return stayed > 0 ? "it is seen again, with some of its cables at another place"
                      : "it is seen again, at another place";
}

#define NODE_MISSING "it is not seen any more, and nothing took its place, which is kept for a while"

/* Why it is not seen: a port that is disabled now was at its cable. False: none was. */
static bool tell_disabled(const struct correlation *s, const struct fab_change *change,
                          char why[DIFF_WHY_TEXT])
{
    const uint32_t b = change->guid == 0 ? FAB_NONE : fab_inventory_find(s->before, change->guid);
    for (uint32_t i = 0; b != FAB_NONE && i < s->before->nodes[b].n_ports; i++) {
        const uint32_t port = s->before->nodes[b].first_port + i;
        const uint32_t ends[] = {port, s->before->ports[port].peer};
        if (ends[1] == FAB_NONE || (change->port != 0 && s->before->ports[port].num != change->port))
            continue;
        for (size_t e = 0; e < 2; e++) {
            const uint32_t now = correlation_port_after(s, ends[e]);
            char text[FAB_PORT_TEXT];
            if (now == FAB_NONE || s->after->ports[now].state != FAB_PORT_DISABLED)
                continue;
            fab_port_text(s->after, &s->after->ports[now], text);
            snprintf(why, DIFF_WHY_TEXT, "%.200s is disabled: somebody switched that port off", text);
            return true;
        }
    }
    return false;
}

/* Of what is told of a port beside its cable; its states are told as texts. */
static const char *other_reason(const struct fab_change *change)
{
    static const struct {
        enum fab_port_state state;
        const char *begins, *ends;
    } reasons[] = {
        {FAB_PORT_LOOPED, "its cable leads to the same node",
         "its cable does not lead to the same node any more"},
        {FAB_PORT_DISABLED, "somebody switched the port off", "the port is not switched off any more"},
    };
    for (size_t i = 0; change->port != 0 && i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        const char *state = fab_state_text(reasons[i].state);
        if (strcmp(change->after, state) == 0)
            return reasons[i].begins;
        if (strcmp(change->before, state) == 0)
            return reasons[i].ends;
    }
    return "the sweep found it so";
}

static const char *remaining_reason(const struct correlation *s, const struct fab_change *change)
{
    static const char *const reasons[FAB_CHANGE_KINDS] = {
        [FAB_CHANGE_LINK_ADDED] = "a cable where none was",
        [FAB_CHANGE_LINK_LOST] = "the cable is not seen any more, and no other took its place",
        [FAB_CHANGE_LINK_RATE] = "the same cable at another width or speed",
        [FAB_CHANGE_NAME] = "the same GUID under another name",
        [FAB_CHANGE_LID] = "the subnet manager gave it another one",
        [FAB_CHANGE_HOST_MISSING] = NODE_MISSING,
        [FAB_CHANGE_SWITCH_MISSING] = NODE_MISSING,
        [FAB_CHANGE_PORT_MISSING] =
            "the cable is not seen any more, and nothing took its place, which is kept for a while",
        [FAB_CHANGE_PORT_BACK] = "the cable is seen again, at its old place",
    };
    if (change->kind == FAB_CHANGE_HOST_BACK || change->kind == FAB_CHANGE_SWITCH_BACK)
        return back_where(s, change->guid);
    return reasons[change->kind] != NULL ? reasons[change->kind] : other_reason(change);
}

static void remaining_subjects(struct correlation *s, const struct fab_inventory *inv,
                               const struct fab_change *change)
{
    uint32_t node = change->guid == 0 ? FAB_NONE : fab_inventory_find(inv, change->guid);
    uint32_t port = FAB_NONE;
    bool host = change->kind == FAB_CHANGE_HOST_MISSING || change->kind == FAB_CHANGE_HOST_BACK;
    bool link = change->kind == FAB_CHANGE_LINK_ADDED || change->kind == FAB_CHANGE_LINK_LOST ||
                change->kind == FAB_CHANGE_LINK_RATE || change->kind == FAB_CHANGE_PORT_MISSING ||
                change->kind == FAB_CHANGE_PORT_BACK;

    if (node == FAB_NONE)
        return;
    if (link)
        port = fab_inventory_port(inv, node, change->port);
    if (port != FAB_NONE)
        correlation_subject_link(s, inv, port);
    else
        correlation_subject_node(s, inv, node);
    for (uint32_t i = 0; host && i < inv->nodes[node].n_ports; i++) /* whose switch may be why */
        correlation_subject_link(s, inv, inv->nodes[node].first_port + i);
}

void correlation_rest(struct correlation *s)
{
    for (uint32_t i = 0; i < s->raw->n; i++) {
        if (s->taken[i])
            continue;
        const struct fab_change *change = claim_raw_this(s, i);
        if (change->kind != FAB_CHANGE_LINK_ADDED)
            remaining_subjects(s, s->before, change);
        if (change->kind != FAB_CHANGE_LINK_LOST)
            remaining_subjects(s, s->after, change);
        char why[DIFF_WHY_TEXT];
        const bool gone = change->kind == FAB_CHANGE_HOST_MISSING ||
                          change->kind == FAB_CHANGE_PORT_MISSING || change->kind == FAB_CHANGE_LINK_LOST;
        if (change->kind == FAB_CHANGE_NAME)
            s->past.renamed = correlation_switch_renamed(s, change->guid);
        correlation_conclude(s, change->kind, change->guid, change->port, change->what, change->before,
                             change->after,
                             gone && tell_disabled(s, change, why) ? why : remaining_reason(s, change));
    }
}
