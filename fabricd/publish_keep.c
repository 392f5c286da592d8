/* publish_keep.c - what is not seen any more keeps its place, until it is retired. */
#include "fabricd/publish_keep.h"

#include <stdlib.h>

#include "fabricd/publish_priv.h"
#include "topo/join.h"
#include "topo/keep.h"

int keeper_init(struct publisher *publisher, struct fab_err *err)
{
    const struct config *config = publisher->config;
    const struct hold_limits limits = {config->flap_count, config->flap_window, config->hold_down,
                                       config->hold_down_max};
    struct missing loaded;
    struct moment now;
    moment_now(&now);
    publisher->keeper.hold = hold_new(&limits);
    if (publisher->keeper.hold == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    int rc = missing_load(publisher->store, &now, &loaded, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = missing_follow(&loaded, &publisher->current, &now, 0, &publisher->keeper.missing);
    missing_free(&loaded);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void keeper_free(struct keeper *keeper)
{
    missing_free(&keeper->missing);
    hold_free(keeper->hold);
    flaps_seen_free(&keeper->seen);
    fab_diff_destroy(&keeper->news);
    *keeper = (struct keeper){0};
}

/* ---- comparing ----------------------------------------------------------------------------------- */

static int retention_diff(const struct fab_inventory *before, const struct fab_inventory *after,
                          struct fab_diff *diff, struct fab_err *err)
{
    int rc = fab_diff_compute(before, after, diff);
    return rc == PMIXFAB_OK
               ? rc
               : fab_fail(err, rc, "the difference cannot be computed: %s", pmixfab_strerror(rc));
}

int keep_compare_seen(struct draft *draft, struct publish_report *report, struct fab_err *err)
{
    const struct publisher *publisher = draft->publisher;
    struct fab_inventory seen;
    struct fab_diff diff;
    if (!fab_inventory_has_missing(&publisher->current)) {
        int rc = retention_diff(&publisher->current, &draft->inv, &draft->diff, err);
        if (rc == PMIXFAB_OK)
            publish_fill_report(publisher, &draft->inv, &draft->diff, report);
        return rc;
    }
    /* What is missing cannot be lost again. */
    int rc = fab_inventory_seen(&publisher->current, &seen, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = retention_diff(&seen, &draft->inv, &diff, err);
    if (rc == PMIXFAB_OK)
        publish_fill_report(publisher, &draft->inv, &diff, report);
    if (rc == PMIXFAB_OK)
        rc = retention_diff(&publisher->current, &draft->inv, &draft->diff, err);
    fab_diff_destroy(&diff);
    fab_inventory_destroy(&seen);
    return rc;
}

/* ---- keeping ------------------------------------------------------------------------------------- */

struct deciding {
    const struct publisher *publisher;
    struct moment now;
    bool due; /* what has been missing for too long is retired */
};

/* It is not seen because its cable is held down. */
static bool port_is_damped(const struct publisher *publisher, const struct fab_inventory *inv, uint32_t port)
{
    const struct fab_port *peer = &inv->ports[inv->ports[port].peer];
    return hold_holds_end(publisher->keeper.hold, inv->nodes[peer->node].guid, peer->num);
}

static bool may_stay(const struct fab_inventory *before, uint32_t port, void *cbdata)
{
    const struct deciding *deciding = cbdata;
    const struct publisher *publisher = deciding->publisher;
    const struct missing_place *known = missing_find(
        &publisher->keeper.missing, before->nodes[before->ports[port].node].guid, before->ports[port].num);
    if (publisher->config->retire == 0)
        return false;
    if (known == NULL)
        return true;
    if (known->forgotten)
        return false;
    return !deciding->due || !missing_is_due(known, publisher->config->retire, &deciding->now) ||
           port_is_damped(publisher, before, port);
}

/* The draft's inventory is another one from here on. */
static int update_replace_inventory(struct draft *draft, struct fab_inventory *inv, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    fab_inventory_destroy(&draft->inv);
    draft->inv = *inv;
    int rc = fab_names_apply(publisher->names, &draft->inv, err);
    fab_diff_destroy(&draft->diff);
    return rc == PMIXFAB_OK ? retention_diff(&publisher->current, &draft->inv, &draft->diff, err) : rc;
}

static int keep_what_lacks(struct draft *draft, bool due, struct fab_err *err)
{
    struct deciding deciding = {.publisher = draft->publisher, .due = due};
    struct fab_inventory kept;
    moment_now(&deciding.now);
    int rc = fab_inventory_keep(&draft->publisher->current, &draft->inv, may_stay, &deciding, &kept, err);
    return rc == PMIXFAB_OK ? update_replace_inventory(draft, &kept, err) : rc;
}

int keep_sweep(struct draft *draft, struct fab_err *err)
{
    bool cut = false;
    int rc = keep_hold_down(draft, &cut, err);
    if (rc == PMIXFAB_OK && fab_inventory_lacks_port(&draft->publisher->current, &draft->inv))
        return keep_what_lacks(draft, true, err);
    if (rc == PMIXFAB_OK && cut) { /* between switches */
        fab_diff_destroy(&draft->diff);
        rc = retention_diff(&draft->publisher->current, &draft->inv, &draft->diff, err);
    }
    return rc;
}

int keep_retire(struct draft *draft, bool due, bool *none, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    struct moment now;
    moment_now(&now);
    *none = true;
    for (uint32_t i = 0; i < publisher->keeper.missing.n; i++) {
        const struct missing_place *place = &publisher->keeper.missing.places[i];
        if (place->forgotten ||
            (due && place->port != 0 && missing_is_due(place, publisher->config->retire, &now)))
            *none = false;
    }
    if (*none)
        return PMIXFAB_OK;
    int rc = fab_inventory_seen(&publisher->current, &draft->inv, err);
    return rc == PMIXFAB_OK ? keep_what_lacks(draft, due, err) : rc;
}

/* ---- the list ------------------------------------------------------------------------------------ */

int keep_plan(struct draft *draft, struct fab_err *err)
{
    struct moment now;
    if (draft->after != &draft->inv)
        return PMIXFAB_OK;
    moment_now(&now);
    int rc = missing_follow(&draft->publisher->keeper.missing, draft->after, &now,
                            publish_seen_before(draft->publisher), &draft->missing);
    if (rc == PMIXFAB_OK) {
        draft->missing_rows = calloc((size_t)draft->missing.n + 1, sizeof(*draft->missing_rows));
        rc = draft->missing_rows == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    }
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    snprintf(draft->boot, sizeof(draft->boot), "%s", now.boot);
    for (uint32_t i = 0; i < draft->missing.n; i++) {
        const struct missing_place *place = &draft->missing.places[i];
        draft->missing_rows[i] = (struct store_missing){.guid = place->guid,
                                                        .port = place->port,
                                                        .since = place->since,
                                                        .seen = place->seen,
                                                        .boot = draft->boot,
                                                        .counted = place->counted};
    }
    return PMIXFAB_OK;
}

void keep_take(struct draft *draft)
{
    if (draft->missing_rows == NULL)
        return;
    missing_free(&draft->publisher->keeper.missing);
    draft->publisher->keeper.missing = draft->missing;
    draft->missing = (struct missing){0};
}

/* ---- for the daemon ------------------------------------------------------------------------------ */

/* Is the port of an HCA cabled to a switch of this name that is missing, too? */
static bool at_missing(const struct fab_inventory *inv, uint32_t port, const char *sw)
{
    const uint32_t peer = inv->ports[port].peer;
    const struct fab_node *node = peer == FAB_NONE ? NULL : &inv->nodes[inv->ports[peer].node];
    return node != NULL && node->kind == FAB_SWITCH && node->missing &&
           strcmp(fab_str(inv, node->name), sw) == 0;
}

uint32_t publisher_forget(struct publisher *publisher, const char *name, bool *there)
{
    const struct fab_inventory *inv = &publisher->current;
    uint32_t n = 0;
    *there = false;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        const bool named = strcmp(fab_str(inv, node->host), name) == 0;
        bool found = false;
        if (node->kind != FAB_HCA)
            continue;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            if (!named && !at_missing(inv, p, name))
                continue;
            struct missing_place *place =
                missing_find(&publisher->keeper.missing, node->guid, inv->ports[p].num);
            if (place != NULL)
                found = place->forgotten = true;
        }
        n += found;
        *there |= named && !node->missing;
    }
    return n;
}

void publisher_waits(const struct publisher *publisher, struct publisher_waits *out)
{
    const struct keeper *keeper = &publisher->keeper;
    const struct hold_counts held = hold_count(keeper->hold);
    struct moment now;
    moment_now(&now);
    *out = (struct publisher_waits){
        .retire = -1, .release = -1, .held = held.cables, .held_switches = held.switches};
    if (publisher->swept != 0)
        out->retire = missing_next(&keeper->missing, publisher->config->retire, &now);
    if (held.next != 0)
        out->release = held.next > now.running ? held.next - now.running : 0;
    for (uint32_t i = 0; i < keeper->missing.n; i++) { /* each HCA once */
        const struct missing_place *place = &keeper->missing.places[i];
        out->missing += place->port != 0 && (i == 0 || place[-1].guid != place->guid);
    }
}
