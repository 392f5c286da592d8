/*
 * retention.c - let missing devices keep their places until they are retired, and list them as lost after
 * that.
 *
 * CLOCK_BOOTTIME measures the time since a device is missing. It counts from the machine's boot and continues
 * over a suspend. The wall clock is only shown to users. If the wall clock is set an hour back or forth, each
 * device is still retired at the right time, even if fabricd is restarted meanwhile. After a boot of the
 * machine, and in a store from another machine, the times start again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/file_io.h"
#include "fabricd/engine/publisher.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/changes/check.h"
#include "topo/model/host_name.h"
#include "topo/model/retain.h"

#define SECOND 1000000ll

/* ---- times of missing devices ---------------------------------------------------------------------- */

void moment_now(struct moment *out)
{
    out->wall = clock_now(CLOCK_REALTIME);
    out->running = clock_now(CLOCK_BOOTTIME);
    snprintf(out->boot, sizeof(out->boot), "%s", boot_id());
}

/* Return the position of the entry, or where to insert it; by GUID and port. */
static uint32_t place_position(const struct retained *missing, uint64_t guid, uint32_t port)
{
    const struct retained_place *places = missing->places;
    return FAB_LOWER_BOUND(0, missing->n, i,
                           (FAB_ORDER(places[i].guid, guid) ?: FAB_ORDER(places[i].port, port)) < 0);
}

static struct retained_place *find_retained(const struct retained *missing, uint64_t guid, uint32_t port)
{
    const uint32_t at = place_position(missing, guid, port);
    return at < missing->n && missing->places[at].guid == guid && missing->places[at].port == port
               ? &missing->places[at]
               : NULL;
}

/* Return whether this port is missing. */
static bool is_place(const struct fab_inventory *inv, const struct fab_node *node, uint32_t p)
{
    return node->kind == FAB_HCA && inv->ports[p].peer != FAB_NONE &&
           (node->missing || inv->ports[p].missing);
}

static void add_place(const struct retained *before, uint64_t guid, uint32_t port, const struct moment *now,
                      int64_t seen, struct retained *out)
{
    const struct retained_place *known = find_retained(before, guid, port) ?: find_retained(before, guid, 0);
    struct retained_place *place = &out->places[out->n++];
    *place = (struct retained_place){.since = now->wall, .seen = seen, .counted = now->running};
    if (known != NULL)
        *place = *known;
    if (strcmp(before->boot, now->boot) != 0 || place->counted > now->running)
        place->counted = now->running;
    place->guid = guid;
    place->port = port;
}

int retained_follow(const struct retained *before, const struct fab_inventory *inv, const struct moment *now,
                    int64_t seen, struct retained *out)
{
    uint32_t n = 0;
    *out = (struct retained){0};
    snprintf(out->boot, sizeof(out->boot), "%s", now->boot);
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        n += inv->nodes[i].kind != FAB_HCA && inv->nodes[i].missing;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        n += is_place(inv, &inv->nodes[inv->ports[p].node], p);
    out->places = calloc((size_t)n + 1, sizeof(*out->places));
    if (out->places == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        if (node->kind != FAB_HCA && node->missing)
            add_place(before, node->guid, 0, now, seen, out);
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            if (is_place(inv, node, p))
                add_place(before, node->guid, inv->ports[p].num, now, seen, out);
    }
    return PMIXFAB_OK;
}

static int64_t time_left(const struct retained_place *place, unsigned retire, const struct moment *now)
{
    return place->counted + retire * SECOND - now->running;
}

/* Return whether it was missing for so many seconds, or will be within the next one, so that devices of one
 * incident are retired together. */
static bool is_due(const struct retained_place *place, unsigned retire, const struct moment *now)
{
    return time_left(place, retire, now) <= SECOND;
}

int64_t retained_next(const struct retained *missing, unsigned retire, const struct moment *now)
{
    int64_t first = -1;
    for (uint32_t i = 0; i < missing->n; i++) {
        int64_t one = time_left(&missing->places[i], retire, now);
        one = one < 0 || missing->places[i].forgotten ? 0 : one;
        if (missing->places[i].port != 0 && (first < 0 || one < first))
            first = one;
    }
    return first;
}

/* ---- keeping places -------------------------------------------------------------------------------- */

struct deciding {
    const struct publisher *publisher;
    struct moment now;
    bool due; /* retire devices that are missing for too long */
};

static bool may_stay(const struct fab_inventory *before, uint32_t port, void *cbdata)
{
    const struct deciding *deciding = cbdata;
    const struct publisher *publisher = deciding->publisher;
    const unsigned retire = publisher->config->retain_seconds;
    const struct fab_port *end = &before->ports[port], *far = &before->ports[end->peer];
    const struct retained_place *known =
        find_retained(&publisher->absent.missing, before->nodes[end->node].guid, end->num);
    if (retire == 0 || (known != NULL && known->forgotten))
        return false;
    /* A device that is not seen because its cable is suppressed is not retired. */
    return known == NULL || !deciding->due || !is_due(known, retire, &deciding->now) ||
           damping_suppresses_end(publisher->damping, before->nodes[far->node].guid, far->num);
}

static int keep_places(struct swept_fabric *sweep, bool due, struct fab_err *err)
{
    struct publisher *publisher = sweep->publisher;
    struct deciding deciding = {.publisher = publisher, .due = due};
    struct fab_inventory kept;
    moment_now(&deciding.now);
    int rc = fab_retain(&publisher->current, &sweep->inv, may_stay, &deciding, &kept, err);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_inventory_destroy(&sweep->inv);
    sweep->inv = kept;
    return fab_names_apply(publisher->names, &sweep->inv, err);
}

int sweep_retain(struct swept_fabric *sweep, struct fab_err *err)
{
    return fab_inventory_lacks_port(&sweep->publisher->current, &sweep->inv) ? keep_places(sweep, true, err)
                                                                             : PMIXFAB_OK;
}

int retention_retire(struct swept_fabric *sweep, bool due, bool *any, struct fab_err *err)
{
    const struct publisher *publisher = sweep->publisher;
    struct moment now;
    moment_now(&now);
    *any = false;
    for (uint32_t i = 0; i < publisher->absent.missing.n; i++) {
        const struct retained_place *place = &publisher->absent.missing.places[i];
        *any |= place->forgotten ||
                (due && place->port != 0 && is_due(place, publisher->config->retain_seconds, &now));
    }
    if (!*any)
        return PMIXFAB_OK;
    return fab_inventory_seen(&publisher->current, &sweep->inv, err) ?: keep_places(sweep, due, err);
}

/* ---- when it was seen last ------------------------------------------------------------------------- */

static int64_t seen_at(const struct retained_place *place)
{
    return place->seen != 0 ? place->seen : place->since;
}

/*
 * Return the time at which the cable was seen last, if one of its ends is missing: a port of an HCA, or a
 * switch as a whole. 0: neither end is missing.
 */
static int64_t cable_seen(const struct publisher *publisher, uint64_t guid, uint32_t num)
{
    const struct fab_inventory *inv = &publisher->current;
    const uint32_t node = fab_inventory_find(inv, guid);
    uint32_t port = node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, num);
    const struct retained_place *first = NULL;
    for (int i = 0; i < 2 && port != FAB_NONE; i++, port = inv->ports[port].peer) {
        const struct fab_node *end = &inv->nodes[inv->ports[port].node];
        const struct retained_place *place = find_retained(&publisher->absent.missing, end->guid,
                                                           end->kind == FAB_HCA ? inv->ports[port].num : 0);
        if (place != NULL && (first == NULL || place->since < first->since))
            first = place;
    }
    return first == NULL ? 0 : seen_at(first);
}

/*
 * Return the time at which a sweep saw this missing node or port last (port 0: the whole node). 0: it is
 * not missing in the published state.
 */
static int64_t missing_seen(const struct publisher *publisher, uint64_t guid, uint32_t num)
{
    const struct fab_inventory *inv = &publisher->current;
    const uint32_t node = fab_inventory_find(inv, guid);
    const struct retained *missing = &publisher->absent.missing;
    int64_t last = 0;
    if (node == FAB_NONE || (num == 0 && !inv->nodes[node].missing))
        return 0;
    for (uint32_t i = place_position(missing, guid, num); i < missing->n; i++) {
        const struct retained_place *place = &missing->places[i];
        if (place->guid != guid || (num != 0 && place->port != num))
            break;
        last = seen_at(place) > last ? seen_at(place) : last;
    }
    return last;
}

static int64_t change_seen(const struct publisher *publisher, const struct fab_change *change)
{
    switch (change->kind) {
    case FAB_CHANGE_HOST_LOST:
    case FAB_CHANGE_SWITCH_LOST:
    case FAB_CHANGE_HOST_BACK:
    case FAB_CHANGE_SWITCH_BACK:
        return missing_seen(publisher, change->guid, 0);
    case FAB_CHANGE_DEVICE_LOST:
    case FAB_CHANGE_HOST_MOVED:
    case FAB_CHANGE_PORT_BACK:
        return missing_seen(publisher, change->guid, change->port);
    case FAB_CHANGE_LINK_LOST:
        return cable_seen(publisher, change->guid, change->port);
    case FAB_CHANGE_HCA_REPLACED:
    case FAB_CHANGE_SWITCH_REPLACED:
        return missing_seen(publisher, change->former, 0);
    default:
        return 0;
    }
}

void retention_correct_seen(const struct publisher *publisher, struct fab_diff *diff)
{
    for (uint32_t i = 0; publisher->absent.missing.n > 0 && i < diff->n; i++) {
        const int64_t seen = change_seen(publisher, &diff->changes[i]);
        if (seen != 0 && seen < diff->changes[i].last_seen)
            diff->changes[i].last_seen = seen;
    }
}

/* ---- absent objects -------------------------------------------------------------------------------- */

int retention_load(struct publisher *publisher, struct fab_err *err)
{
    struct moment now;
    struct retained followed;
    int rc = store_absent_load(publisher->store, &publisher->absent, err);
    if (rc != PMIXFAB_OK)
        return rc;
    moment_now(&now);
    rc = retained_follow(&publisher->absent.missing, &publisher->current, &now, 0, &followed);
    retained_free(&publisher->absent.missing);
    publisher->absent.missing = followed;
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

/* Delete the lost objects that the operator has retired: they are not expected back. */
static void forget_lost(const struct retained *missing, struct fab_lost *lost)
{
    for (uint32_t i = 0; i < missing->n; i++) {
        const struct retained_place *place = &missing->places[i];
        const uint32_t node = place->forgotten ? fab_lost_find(lost, place->guid) : FAB_NONE;
        if (node != FAB_NONE)
            lost->nodes.items[node].forgotten = true;
        for (uint32_t k = 0; place->forgotten && k < lost->cables.n; k++)
            for (int end = 0; end < 2; end++)
                if (lost->cables.items[k].end[end].guid == place->guid &&
                    (place->port == 0 || lost->cables.items[k].end[end].num == place->port))
                    lost->cables.items[k].forgotten = true;
    }
}

int retention_plan(const struct publisher *publisher, const struct fab_inventory *after,
                   const struct fab_diff *diff, uint64_t generation, struct absent *out, struct fab_err *err)
{
    struct store_bounds bounds;
    struct moment now;
    moment_now(&now);
    int rc = retained_follow(&publisher->absent.missing, after, &now, publisher_seen_last(publisher),
                             &out->missing);
    if (rc == PMIXFAB_OK && generation != 0) {
        rc = store_bounds(publisher->store, &bounds, err);
        if (rc != PMIXFAB_OK)
            return rc;
        rc = fab_lost_update(&publisher->absent.lost, &publisher->current, after, diff, generation,
                             bounds.trimmed, &out->lost);
        if (rc == PMIXFAB_OK)
            forget_lost(&publisher->absent.missing, &out->lost);
    }
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void retention_accept(struct publisher *publisher, struct absent *planned, bool lost)
{
    if (!lost) {
        planned->lost = publisher->absent.lost;
        publisher->absent.lost = (struct fab_lost){0};
    }
    absent_free(&publisher->absent);
    publisher->absent = *planned;
    *planned = (struct absent){0};
}

/* ---- for the daemon -------------------------------------------------------------------------------- */

/* Return whether the HCA's port is cabled to a missing switch of this name. */
static bool at_missing(const struct fab_inventory *inv, uint32_t port, const char *sw)
{
    const uint32_t peer = inv->ports[port].peer;
    const struct fab_node *node = peer == FAB_NONE ? NULL : &inv->nodes[inv->ports[peer].node];
    return node != NULL && node->kind == FAB_SWITCH && node->missing &&
           strcmp(fab_str(inv, node->name), sw) == 0;
}

static bool forget_place(struct publisher *publisher, uint64_t guid, uint32_t port)
{
    struct retained_place *place = find_retained(&publisher->absent.missing, guid, port);
    if (place != NULL)
        place->forgotten = true;
    return place != NULL;
}

uint32_t publisher_forget(struct publisher *publisher, const char *name, bool *there)
{
    const struct fab_inventory *inv = &publisher->current;
    uint32_t n = 0, at = 0;
    uint64_t guid;
    *there = false;
    /* The switch is lost, and forgotten, when the places around it are retired. */
    while (publisher_next_switch(publisher, name, &at, &guid))
        forget_place(publisher, guid, 0);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        const bool named = strcmp(fab_str(inv, node->host), name) == 0;
        bool found = false;
        if (node->kind != FAB_HCA)
            continue;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            if (named || at_missing(inv, p, name))
                found |= forget_place(publisher, node->guid, inv->ports[p].num);
        n += found;
        *there |= named && !node->missing;
    }
    return n;
}

void publisher_waits(const struct publisher *publisher, struct publisher_waits *out)
{
    const struct damping_counts suppressed = damping_count(publisher->damping);
    const struct retained *missing = &publisher->absent.missing;
    struct moment now;
    moment_now(&now);
    *out = (struct publisher_waits){.retire = -1,
                                    .release = -1,
                                    .suppressed = suppressed.cables,
                                    .suppressed_switches = suppressed.switches};
    if (publisher->swept != 0)
        out->retire = retained_next(missing, publisher->config->retain_seconds, &now);
    const int64_t claims = damping_count(publisher->claims).next;
    const int64_t next =
        claims != 0 && (suppressed.next == 0 || claims < suppressed.next) ? claims : suppressed.next;
    if (next != 0)
        out->release = next > now.running ? next - now.running : 0;
    for (uint32_t i = 0; i < missing->n; i++) { /* each HCA once */
        const struct retained_place *place = &missing->places[i];
        out->missing += place->port != 0 && (i == 0 || place[-1].guid != place->guid);
    }
}

static bool lost_is_called(const struct publisher *publisher, const struct fab_lost_item *item,
                           const char *name)
{
    struct fab_about about;
    char guid[24], id[FAB_FINDING_ID_TEXT];
    const enum fab_check_kind kind =
        fab_lost_is_about(&publisher->current, &publisher->absent.lost, item, &about);
    if (kind == 0)
        return false;
    snprintf(guid, sizeof(guid), "0x%016" PRIx64, item->guid);
    fab_finding_id_text(fab_finding_id(kind, &about), id);
    return fab_finding_id_matches(id, name) ||
           (item->kind != 0 && (fab_same_host(item->kind == FAB_SWITCH ? item->name : item->host, name) ||
                                strcmp(guid, name) == 0));
}

int publisher_forget_lost(struct publisher *publisher, const char *name, uint32_t *n, struct fab_err *err)
{
    struct fab_lost *lost = &publisher->absent.lost;
    struct absent after = {.missing = publisher->absent.missing}; /* borrows everything but the lists */
    struct fab_lost_list *lists[] = {&lost->nodes, &lost->cables};
    struct fab_lost_list *copies[] = {&after.lost.nodes, &after.lost.cables};
    int rc = PMIXFAB_OK;
    *n = 0;
    for (int l = 0; l < 2; l++) {
        *copies[l] = (struct fab_lost_list){.items = calloc(lists[l]->n + 1, sizeof(*lists[l]->items)),
                                            .n = lists[l]->n};
        if (copies[l]->items == NULL) {
            rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "forget: out of memory");
            goto cleanup;
        }
        for (uint32_t i = 0; i < lists[l]->n; i++) {
            const bool called = lost_is_called(publisher, &lists[l]->items[i], name);
            copies[l]->items[i] = lists[l]->items[i];
            copies[l]->items[i].forgotten |= called;
            *n += called;
        }
    }
    if (*n > 0)
        rc = store_lost_put(publisher->store, &publisher->absent, &after, err);
    for (int l = 0; rc == PMIXFAB_OK && l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++)
            lists[l]->items[i].forgotten = copies[l]->items[i].forgotten;
cleanup:
    free(copies[0]->items);
    free(copies[1]->items);
    publisher_unchecked(publisher);
    return rc;
}
