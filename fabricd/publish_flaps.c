/* publish_flaps.c - cables that come and go are counted, and cut while they are held down. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fabricd/log.h"
#include "fabricd/publish_keep.h"
#include "fabricd/publish_priv.h"
#include "topo/keep.h"

static int by_end(const struct cable_end *a, const struct cable_end *b)
{
    if (a->guid != b->guid)
        return a->guid < b->guid ? -1 : 1;
    return (a->port > b->port) - (a->port < b->port);
}

static struct cable_end end_of(const struct fab_inventory *inv, uint32_t port)
{
    return (struct cable_end){inv->nodes[inv->ports[port].node].guid, inv->ports[port].num};
}

/* Its cable is there, and not down at either end. Ends are those at switches. */
static bool is_up(const struct fab_inventory *inv, uint32_t p)
{
    const struct fab_port *port = &inv->ports[p];
    return port->peer != FAB_NONE && inv->nodes[port->node].kind == FAB_SWITCH &&
           port->state != FAB_PORT_DOWN && inv->ports[port->peer].state != FAB_PORT_DOWN;
}

static int collect(const struct fab_inventory *inv, struct cable_ends *out)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        n += is_up(inv, p);
    *out = (struct cable_ends){.known = true};
    out->list = malloc(((size_t)n + 1) * sizeof(*out->list));
    if (out->list == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (is_up(inv, p))
            out->list[out->n++] = end_of(inv, p); /* nodes are in the order of their GUIDs */
    return PMIXFAB_OK;
}

/* It is held from now on. Without memory it is not told. */
static void note_held(struct keeper *keeper, const struct cable_end *end)
{
    struct cable_end *larger = reallocarray(keeper->told.list, (size_t)keeper->told.n + 1, sizeof(*larger));
    if (larger == NULL)
        return;
    keeper->told.list = larger;
    keeper->told.list[keeper->told.n++] = *end;
    log_warning("sweep: the cable in port %u of switch 0x%016llx comes and goes: it is held down", end->port,
                (unsigned long long)end->guid);
}

/* Count the ends that had a cable and have none now, and those that have one again. */
static int count_changes(struct keeper *keeper, const struct fab_inventory *swept, int64_t now)
{
    struct cable_ends ends;
    const struct cable_ends *old = &keeper->seen;
    int rc = collect(swept, &ends);
    if (rc != PMIXFAB_OK)
        return rc;
    for (uint32_t i = 0, k = 0; old->known && (i < old->n || k < ends.n);) {
        int order = i == old->n ? 1 : k == ends.n ? -1 : by_end(&old->list[i], &ends.list[k]);
        const struct cable_end *end = order < 0 ? &old->list[i] : &ends.list[k];
        if (order != 0 && hold_change(keeper->hold, end->guid, end->port, now))
            note_held(keeper, end);
        i += order <= 0;
        k += order >= 0;
    }
    free(keeper->seen.list);
    keeper->seen = ends;
    return PMIXFAB_OK;
}

static bool cut_held(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    struct cable_end end = end_of(inv, port);
    return hold_is_held(cbdata, end.guid, end.port, NULL);
}

int keep_hold_down(struct draft *draft, bool *cut, struct fab_err *err)
{
    struct keeper *keeper = &draft->publisher->keeper;
    struct fab_inventory rest;
    struct moment now;
    moment_now(&now);
    *cut = false;
    if (draft->publisher->config->flap_count == 0)
        return PMIXFAB_OK;
    hold_pass(keeper->hold, now.running);
    int rc = count_changes(keeper, &draft->inv, now.running);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    if (hold_count(keeper->hold, NULL) == 0)
        return PMIXFAB_OK;
    rc = fab_inventory_cut(&draft->inv, cut_held, keeper->hold, &rest, err);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_inventory_destroy(&draft->inv);
    draft->inv = rest;
    *cut = true;
    return PMIXFAB_OK;
}

bool publisher_release(struct publisher *publisher)
{
    struct moment now;
    moment_now(&now);
    return hold_pass(publisher->keeper.hold, now.running) > 0;
}

/* ---- telling ------------------------------------------------------------------------------------- */

static uint32_t find_port(const struct fab_inventory *inv, const struct cable_end *end)
{
    uint32_t node = fab_inventory_find(inv, end->guid);
    return node == FAB_NONE ? FAB_NONE : fab_inventory_port(inv, node, end->port);
}

/* Of a cable both of whose ends are held only one is told. */
static bool other_is_told(const struct keeper *keeper, const struct fab_inventory *inv, uint32_t port)
{
    uint32_t peer = inv->ports[port].peer;
    if (peer == FAB_NONE)
        return false;
    struct cable_end end = end_of(inv, port), other = end_of(inv, peer);
    for (uint32_t i = 0; i < keeper->told.n; i++)
        if (by_end(&keeper->told.list[i], &other) == 0)
            return by_end(&other, &end) < 0;
    return false;
}

static int tell_flap(struct draft *draft, const struct cable_end *end, const struct moment *now)
{
    const struct publisher *publisher = draft->publisher;
    const struct fab_inventory *inv = &publisher->current;
    char count[64], until[80];
    struct tm utc;
    int64_t end_of_hold;
    uint32_t port = find_port(inv, end);
    if (port == FAB_NONE || inv->ports[port].peer == FAB_NONE) {
        inv = draft->after;
        port = find_port(inv, end);
    }
    if (port == FAB_NONE || other_is_told(&publisher->keeper, inv, port) ||
        !hold_is_held(publisher->keeper.hold, end->guid, end->port, &end_of_hold))
        return PMIXFAB_OK;
    time_t when = (time_t)((now->wall + end_of_hold - now->running) / 1000000);
    gmtime_r(&when, &utc);
    snprintf(count, sizeof(count), "%u changes within %u s", publisher->config->flap_count,
             publisher->config->flap_window);
    strftime(until, sizeof(until), "held down until %Y-%m-%dT%H:%M:%SZ", &utc);
    return fab_diff_tell_port(
        &draft->diff, FAB_CHANGE_FLAPPING, inv, port, count, until,
        "the cable came and went so often; while it is held down its changes are not told");
}

int keep_tell_flaps(struct draft *draft, struct fab_err *err)
{
    const struct keeper *keeper = &draft->publisher->keeper;
    struct moment now;
    int rc = PMIXFAB_OK;
    moment_now(&now);
    for (uint32_t i = 0; i < keeper->told.n && rc == PMIXFAB_OK; i++)
        rc = tell_flap(draft, &keeper->told.list[i], &now);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void keep_was_told(struct publisher *publisher)
{
    free(publisher->keeper.told.list);
    publisher->keeper.told = (struct cable_ends){0};
}
