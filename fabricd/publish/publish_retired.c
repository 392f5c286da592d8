/* publish_lost.c - what was lost is remembered, so that what comes can be told as what it is. */
#include "fabricd/publish/update.h"
#include "fabricd/store/store_retired.h"

int publisher_read_lost(struct publisher *publisher, struct fab_err *err)
{
    return store_retired_load(publisher->store, &publisher->lost, err);
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
        node == FAB_NONE ? NULL
                         : cable_missing(&publisher->retention.missing, &publisher->current, node, num);
    return place == NULL ? 0 : seen_at(place);
}

/* When the last sweep saw this node, or its port (0: all of it), which is missing in what is published; 0: it
 * is not. */
static int64_t missing_seen(const struct publisher *publisher, uint64_t guid, uint32_t num)
{
    const struct fab_inventory *inv = &publisher->current;
    const uint32_t at = fab_inventory_find(inv, guid);
    const struct fab_node *node = at == FAB_NONE ? NULL : &inv->nodes[at];
    int64_t last = 0;
    if (node == NULL || (num == 0 && !node->missing))
        return 0;
    for (uint32_t i = 0; i <= node->n_ports; i++) {
        const uint32_t port =
            i == 0 ? 0 : inv->ports[node->first_port + i - 1].num; /* a switch has 0 alone */
        const struct retained_place *place = retained_find(&publisher->retention.missing, guid, port);
        if (place == NULL || (num != 0 && port != num))
            continue;
        int64_t seen = seen_at(place);
        last = seen > last ? seen : last;
    }
    return last;
}

void update_correct_seen(struct update *update)
{
    const struct publisher *publisher = update->publisher;
    for (uint32_t i = 0; publisher->retention.missing.n > 0 && i < update->diff.n; i++) {
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

int update_remember(struct update *update, uint64_t generation, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    struct store_bounds bounds;
    if (update->after != &update->inv) /* reports alone */
        return PMIXFAB_OK;
    int rc = store_bounds(publisher->store, &bounds, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_retired_update(&publisher->lost, &publisher->current, &update->inv, &update->diff, generation,
                            bounds.trimmed, &update->lost);
    update->remembers = rc == PMIXFAB_OK;
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void publish_remembered(struct update *update)
{
    if (!update->remembers)
        return;
    fab_retired_destroy(&update->publisher->lost);
    update->publisher->lost = update->lost;
    update->lost = (struct fab_retired){0};
    update->remembers = false;
}
