/* publish_retired.c - what is absent, so that what comes can be told as what it is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/engine/update.h"
#include "topo/base/search.h"
#include "topo/changes/check.h"
#include "topo/model/host_name.h"

int publisher_read_absent(struct publisher *publisher, struct fab_err *err)
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

/* Of a cable at either end: a port of an HCA, or a switch as a whole, has been missing. */
static const struct retained_place *
cable_missing(const struct retained *missing, const struct fab_inventory *inv, uint32_t node, uint32_t num)
{
    uint32_t port = fab_inventory_port(inv, node, num);
    const struct retained_place *first = NULL;
    for (int i = 0; i < 2 && port != FAB_NONE; i++, port = inv->ports[port].peer) {
        const struct fab_node *end = &inv->nodes[inv->ports[port].node];
        const struct retained_place *place =
            retained_find(missing, end->guid, end->kind == FAB_HCA ? inv->ports[port].num : 0);
        if (place != NULL && (first == NULL || place->since < first->since))
            first = place;
    }
    return first;
}

static int64_t seen_at(const struct retained_place *place)
{
    return place->seen != 0 ? place->seen : place->since;
}

static int64_t cable_seen(const struct publisher *publisher, uint64_t guid, uint32_t num)
{
    const uint32_t node = fab_inventory_find(&publisher->current, guid);
    const struct retained_place *place =
        node == FAB_NONE ? NULL : cable_missing(&publisher->absent.missing, &publisher->current, node, num);
    return place == NULL ? 0 : seen_at(place);
}

/* When the last sweep saw this node, or its port (0: all of it), which is missing in what is published; 0: it
 * is not. */
static int64_t missing_seen(const struct publisher *publisher, uint64_t guid, uint32_t num)
{
    const struct fab_inventory *inv = &publisher->current;
    const uint32_t at = fab_inventory_find(inv, guid);
    const struct fab_node *node = at == FAB_NONE ? NULL : &inv->nodes[at];
    const struct retained *missing = &publisher->absent.missing;
    int64_t last = 0;
    if (node == NULL || (num == 0 && !node->missing))
        return 0;
    uint32_t place = FAB_LOWER_BOUND(0, missing->n, i, missing->places[i].guid < guid);
    for (; place < missing->n && missing->places[place].guid == guid; place++) {
        int64_t seen = seen_at(&missing->places[place]);
        if ((num == 0 || missing->places[place].port == num) && seen > last)
            last = seen;
    }
    return last;
}

void update_correct_seen(struct update *update)
{
    const struct publisher *publisher = update->publisher;
    for (uint32_t i = 0; publisher->absent.missing.n > 0 && i < update->diff.n; i++) {
        struct fab_change *change = &update->diff.changes[i];
        int64_t seen = 0;
        switch (change->kind) {
        case FAB_CHANGE_HOST_LOST:
        case FAB_CHANGE_SWITCH_LOST:
        case FAB_CHANGE_HOST_BACK:
        case FAB_CHANGE_SWITCH_BACK:
            seen = missing_seen(publisher, change->guid, 0);
            break;
        case FAB_CHANGE_DEVICE_LOST:
        case FAB_CHANGE_HOST_MOVED:
        case FAB_CHANGE_PORT_BACK:
            seen = missing_seen(publisher, change->guid, change->port);
            break;
        case FAB_CHANGE_LINK_LOST:
            seen = cable_seen(publisher, change->guid, change->port);
            break;
        case FAB_CHANGE_HCA_REPLACED:
        case FAB_CHANGE_SWITCH_REPLACED:
            seen = missing_seen(publisher, change->former, 0);
            break;
        default:
            break;
        }
        if (seen != 0 && seen < change->last_seen)
            change->last_seen = seen;
    }
}

int64_t publish_history_since(const struct publisher *publisher)
{
    return publisher->swept != 0 ? publisher->swept : publisher->published;
}

/* What the operator wanted to be retired is lost now, and not waited for. */
static void forget_retired(const struct retained *missing, struct fab_lost *lost)
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

int update_remember(struct update *update, uint64_t generation, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    struct store_bounds bounds;
    struct moment now;
    if (update->after != &update->inv) /* reports alone */
        return PMIXFAB_OK;
    moment_now(&now);
    int rc = retained_follow(&publisher->absent.missing, &update->inv, &now, publish_history_since(publisher),
                             &update->absent.missing);
    if (rc == PMIXFAB_OK && generation != 0) {
        rc = store_bounds(publisher->store, &bounds, err);
        if (rc != PMIXFAB_OK)
            return rc;
        rc = fab_lost_update(&publisher->absent.lost, &publisher->current, &update->inv, &update->diff,
                             generation, bounds.trimmed, &update->absent.lost);
        if (rc == PMIXFAB_OK)
            forget_retired(&publisher->absent.missing, &update->absent.lost);
    }
    update->remembers = rc == PMIXFAB_OK;
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void publish_remembered(struct update *update, bool lost)
{
    struct absent *now = &update->publisher->absent;
    if (!update->remembers)
        return;
    if (!lost) { /* is as it was */
        update->absent.lost = now->lost;
        now->lost = (struct fab_lost){0};
    }
    absent_free(now);
    *now = update->absent;
    update->absent = (struct absent){0};
    update->remembers = false;
}

/* ---- what the operator forgets --------------------------------------------------------------------- */

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

/* A list of the same things, with those called so forgotten. The texts are those of `from`. False: no memory.
 */
static bool forget_called(const struct publisher *publisher, const struct fab_lost_list *from,
                          const char *name, struct fab_lost_list *to, uint32_t *n)
{
    *to = (struct fab_lost_list){.items = calloc(from->n + 1, sizeof(*to->items)), .n = from->n};
    for (uint32_t i = 0; to->items != NULL && i < from->n; i++) {
        const bool called = lost_is_called(publisher, &from->items[i], name);
        to->items[i] = from->items[i];
        to->items[i].forgotten |= called;
        *n += called;
    }
    return to->items != NULL;
}

/* As in the copy, which goes. */
static void take_forgotten(struct fab_lost_list *list, struct fab_lost_list *copy, bool take)
{
    for (uint32_t i = 0; take && i < list->n; i++)
        list->items[i].forgotten = copy->items[i].forgotten;
    free(copy->items);
}

int publisher_forget_lost(struct publisher *publisher, const char *name, uint32_t *n, struct fab_err *err)
{
    struct fab_lost *lost = &publisher->absent.lost;
    struct absent after = {.missing = publisher->absent.missing};
    int rc = PMIXFAB_OK;
    *n = 0;
    const bool nodes = forget_called(publisher, &lost->nodes, name, &after.lost.nodes, n);
    if (!forget_called(publisher, &lost->cables, name, &after.lost.cables, n) || !nodes)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "forget: out of memory");
    if (rc == PMIXFAB_OK && *n > 0)
        rc = store_lost_put(publisher->store, &publisher->absent, &after, err);
    take_forgotten(&lost->nodes, &after.lost.nodes, rc == PMIXFAB_OK);
    take_forgotten(&lost->cables, &after.lost.cables, rc == PMIXFAB_OK);
    fab_findings_destroy(&publisher->findings);
    publisher->checked = false;
    return rc;
}
