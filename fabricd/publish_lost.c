/* publish_lost.c - what was lost is remembered, so that what comes can be told as what it is. */
#include "fabricd/publish_priv.h"
#include "fabricd/store_lost.h"

int publisher_read_lost(struct publisher *publisher, struct fab_err *err)
{
    return store_lost_load(publisher->store, &publisher->lost, err);
}

/* What was missing was last seen before it was. */
static void correct_seen(struct draft *draft)
{
    const struct missing *missing = &draft->publisher->keeper.missing;
    const struct fab_inventory *before = &draft->publisher->current;
    for (uint32_t i = 0; i < draft->diff.n; i++) {
        struct fab_change *change = &draft->diff.changes[i];
        uint32_t node = fab_inventory_find(before, change->guid), num = change->port;
        if ((change->kind != FAB_CHANGE_HOST_LOST && change->kind != FAB_CHANGE_DEVICE_LOST &&
             change->kind != FAB_CHANGE_SWITCH_LOST) ||
            node == FAB_NONE)
            continue;
        for (uint32_t k = 0;
             change->kind == FAB_CHANGE_HOST_LOST && num == 0 && k < before->nodes[node].n_ports; k++) {
            const struct fab_port *port = &before->ports[before->nodes[node].first_port + k];
            num = port->peer == FAB_NONE ? 0 : port->num;
        }
        const struct missing_place *place = missing_find(missing, change->guid, num);
        if (place != NULL && place->since < change->last_seen)
            change->last_seen = place->since;
    }
}

int draft_remember(struct draft *draft, uint64_t generation, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    struct store_bounds bounds;
    if (draft->after != &draft->inv) /* reports alone */
        return PMIXFAB_OK;
    int rc = store_bounds(publisher->store, &bounds, err);
    if (rc != PMIXFAB_OK)
        return rc;
    correct_seen(draft);
    rc = fab_lost_follow(&publisher->lost, &publisher->current, &draft->inv, &draft->diff, generation,
                         bounds.trimmed, &draft->lost);
    draft->remembers = rc == PMIXFAB_OK;
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void publish_remembered(struct draft *draft)
{
    if (!draft->remembers)
        return;
    fab_lost_destroy(&draft->publisher->lost);
    draft->publisher->lost = draft->lost;
    draft->lost = (struct fab_lost){0};
    draft->remembers = false;
}
