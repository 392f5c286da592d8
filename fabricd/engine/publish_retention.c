/* publish_retention.c - what is not seen any more keeps its place, until it is retired. */
#include "fabricd/engine/publish_retention.h"

#include "fabricd/engine/update.h"
#include "topo/model/retain.h"

static struct damping_limits configured_limits(const struct config *config)
{
    return (struct damping_limits){config->flap_count, config->flap_window, config->suppress,
                                   config->suppress_max};
}

void publisher_reconfigured(struct publisher *publisher)
{
    const struct damping_limits limits = configured_limits(publisher->config);
    damping_limit(publisher->retention.damping, &limits);
    if (limits.count == 0)
        publisher_release_now(publisher, NULL);
}

int retention_init(struct publisher *publisher, struct fab_err *err)
{
    const struct damping_limits limits = configured_limits(publisher->config);
    publisher->retention.damping = damping_new(&limits);
    return publisher->retention.damping != NULL ? PMIXFAB_OK
                                                : fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
}

void retention_free(struct retention *retention)
{
    damping_free(retention->damping);
    sweep_links_free(&retention->seen);
    fab_diff_destroy(&retention->news);
    *retention = (struct retention){0};
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

int retention_compare_swept(struct update *update, struct sweep_findings *report, struct fab_err *err)
{
    const struct publisher *publisher = update->publisher;
    struct fab_inventory seen;
    struct fab_diff diff;
    if (!fab_inventory_has_missing(&publisher->current)) {
        int rc = retention_diff(&publisher->current, &update->inv, &update->diff, err);
        if (rc == PMIXFAB_OK)
            publish_fill_report(publisher, &update->inv, &update->diff, report);
        return rc;
    }
    /* What is missing cannot be lost again. */
    int rc = fab_inventory_seen(&publisher->current, &seen, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = retention_diff(&seen, &update->inv, &diff, err);
    if (rc == PMIXFAB_OK)
        publish_fill_report(publisher, &update->inv, &diff, report);
    if (rc == PMIXFAB_OK)
        rc = retention_diff(&publisher->current, &update->inv, &update->diff, err);
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

/* It is not seen because its cable is suppressed. */
static bool port_is_damped(const struct publisher *publisher, const struct fab_inventory *inv, uint32_t port)
{
    const struct fab_port *peer = &inv->ports[inv->ports[port].peer];
    return damping_suppresses_end(publisher->retention.damping, inv->nodes[peer->node].guid, peer->num);
}

static bool may_stay(const struct fab_inventory *before, uint32_t port, void *cbdata)
{
    const struct deciding *deciding = cbdata;
    const struct publisher *publisher = deciding->publisher;
    const struct retained_place *known = retained_find(
        &publisher->absent.missing, before->nodes[before->ports[port].node].guid, before->ports[port].num);
    if (publisher->config->retain_seconds == 0)
        return false;
    if (known == NULL)
        return true;
    if (known->forgotten)
        return false;
    return !deciding->due || !retained_is_due(known, publisher->config->retain_seconds, &deciding->now) ||
           port_is_damped(publisher, before, port);
}

/* The update's inventory is another one from here on. */
static int update_replace_inventory(struct update *update, struct fab_inventory *inv, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    fab_inventory_destroy(&update->inv);
    update->inv = *inv;
    int rc = fab_names_apply(publisher->names, &update->inv, err);
    fab_diff_destroy(&update->diff);
    return rc == PMIXFAB_OK ? retention_diff(&publisher->current, &update->inv, &update->diff, err) : rc;
}

static int retain_what_lacks(struct update *update, bool due, struct fab_err *err)
{
    struct deciding deciding = {.publisher = update->publisher, .due = due};
    struct fab_inventory kept;
    moment_now(&deciding.now);
    int rc = fab_retain(&update->publisher->current, &update->inv, may_stay, &deciding, &kept, err);
    return rc == PMIXFAB_OK ? update_replace_inventory(update, &kept, err) : rc;
}

int retention_sweep(struct update *update, struct fab_err *err)
{
    bool cut = false;
    int rc = publish_suppress(update, &cut, err);
    if (rc == PMIXFAB_OK && fab_inventory_lacks_port(&update->publisher->current, &update->inv))
        return retain_what_lacks(update, true, err);
    if (rc == PMIXFAB_OK && cut) { /* between switches */
        fab_diff_destroy(&update->diff);
        rc = retention_diff(&update->publisher->current, &update->inv, &update->diff, err);
    }
    return rc;
}

int retention_retire(struct update *update, bool due, bool *none, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    struct moment now;
    moment_now(&now);
    *none = true;
    for (uint32_t i = 0; i < publisher->absent.missing.n; i++) {
        const struct retained_place *place = &publisher->absent.missing.places[i];
        if (place->forgotten ||
            (due && place->port != 0 && retained_is_due(place, publisher->config->retain_seconds, &now)))
            *none = false;
    }
    if (*none)
        return PMIXFAB_OK;
    int rc = fab_inventory_seen(&publisher->current, &update->inv, err);
    return rc == PMIXFAB_OK ? retain_what_lacks(update, due, err) : rc;
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

/* When the places around it are retired, it is lost, too, and forgotten then. */
static void forget_switch(struct publisher *publisher, const char *name)
{
    uint32_t at = 0;
    uint64_t guid;
    while (publisher_next_switch(publisher, name, &at, &guid)) {
        struct retained_place *place = retained_find(&publisher->absent.missing, guid, 0);
        if (place != NULL)
            place->forgotten = true;
    }
}

uint32_t publisher_forget(struct publisher *publisher, const char *name, bool *there)
{
    const struct fab_inventory *inv = &publisher->current;
    uint32_t n = 0;
    *there = false;
    forget_switch(publisher, name);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        const bool named = strcmp(fab_str(inv, node->host), name) == 0;
        bool found = false;
        if (node->kind != FAB_HCA)
            continue;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            if (!named && !at_missing(inv, p, name))
                continue;
            struct retained_place *place =
                retained_find(&publisher->absent.missing, node->guid, inv->ports[p].num);
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
    const struct retention *retention = &publisher->retention;
    const struct damping_counts suppressed = damping_count(retention->damping);
    struct moment now;
    moment_now(&now);
    *out = (struct publisher_waits){.retire = -1,
                                    .release = -1,
                                    .suppressed = suppressed.cables,
                                    .suppressed_switches = suppressed.switches};
    if (publisher->swept != 0)
        out->retire = retained_next(&publisher->absent.missing, publisher->config->retain_seconds, &now);
    if (suppressed.next != 0)
        out->release = suppressed.next > now.running ? suppressed.next - now.running : 0;
    for (uint32_t i = 0; i < publisher->absent.missing.n; i++) { /* each HCA once */
        const struct retained_place *place = &publisher->absent.missing.places[i];
        out->missing += place->port != 0 && (i == 0 || place[-1].guid != place->guid);
    }
}
