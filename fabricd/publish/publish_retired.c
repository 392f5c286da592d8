/* publish_retired.c - what is absent, so that what comes can be told as what it is. */
#include "fabricd/publish/update.h"
#include "topo/base/search.h"

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
        rc = fab_retired_update(&publisher->absent.lost, &publisher->current, &update->inv, &update->diff,
                                generation, bounds.trimmed, &update->absent.lost);
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
        now->lost = (struct fab_retired){0};
    }
    absent_free(now);
    *now = update->absent;
    update->absent = (struct absent){0};
    update->remembers = false;
}
