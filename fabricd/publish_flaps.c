/* publish_flaps.c - what comes and goes is counted, and cut while it is held down. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/log.h"
#include "fabricd/publish_keep.h"
#include "fabricd/publish_priv.h"
#include "topo/join.h"
#include "topo/keep.h"

static struct hold_key damping_cable_key(const struct fab_inventory *inv, uint32_t port)
{
    const struct fab_port *end = &inv->ports[port], *far = &inv->ports[end->peer];
    return hold_cable((struct hold_end){inv->nodes[end->node].guid, end->num},
                      (struct hold_end){inv->nodes[far->node].guid, far->num});
}

static bool at_switch(const struct fab_inventory *inv, uint32_t port)
{
    return inv->nodes[inv->ports[port].node].kind == FAB_SWITCH;
}

/* Is it the lower end of a cable that is up, and at a switch with either end? */
static bool is_up(const struct fab_inventory *inv, uint32_t p)
{
    const struct fab_port *port = &inv->ports[p];
    return port->peer != FAB_NONE && p < port->peer && (at_switch(inv, p) || at_switch(inv, port->peer)) &&
           port->state != FAB_PORT_DOWN && inv->ports[port->peer].state != FAB_PORT_DOWN;
}

/* Nodes are in the order of their GUIDs, and ports in that of their numbers. */
static int sweep_links_collect(const struct fab_inventory *inv, struct flaps_seen *out)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        n += is_up(inv, p);
    *out = (struct flaps_seen){.known = true};
    out->cables = malloc(((size_t)n + 1) * sizeof(*out->cables));
    if (out->cables == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (is_up(inv, p))
            out->cables[out->n++] = (struct flaps_cable){damping_cable_key(inv, p), at_switch(inv, p),
                                                         at_switch(inv, inv->ports[p].peer)};
    return PMIXFAB_OK;
}

/* ---- counting ------------------------------------------------------------------------------------ */

struct noting {
    struct draft *draft;
    struct moment now;
};

/* As it is called in the sweep, or was in what is published. */
static bool damping_is_planned(uint64_t guid, void *cbdata)
{
    const struct noting *noting = cbdata;
    struct publisher *publisher = noting->draft->publisher;
    const struct fab_inventory *invs[] = {&noting->draft->inv, &publisher->current};
    uint32_t n;
    const struct store_expected *all = expected_all(publisher->expected, noting->now.wall, &n);
    for (size_t i = 0; n > 0 && i < 2; i++) {
        uint32_t at = fab_inventory_find(invs[i], guid);
        if (at == FAB_NONE)
            continue;
        const struct fab_node *node = &invs[i]->nodes[at];
        const char *name = fab_str(invs[i], node->kind == FAB_HCA ? node->host : node->name);
        for (uint32_t k = 0; k < n; k++)
            if (fab_same_host(all[k].name, name))
                return true;
    }
    return false;
}

/* It is held from now on: the change that the next generation tells. Without memory it is not told. */
static void note_held(const struct hold_key *key, void *cbdata)
{
    struct noting *noting = cbdata;
    struct publisher *publisher = noting->draft->publisher;
    struct keeper *keeper = &publisher->keeper;
    const struct fab_inventory *invs[] = {&publisher->current, &noting->draft->inv};
    struct held held;
    char count[64], down[64];
    struct fab_diff news = {0};
    if (!hold_find(keeper->hold, key, &held))
        return;
    snprintf(count, sizeof(count), "%u changes within %u s", publisher->config->flap_count,
             publisher->config->flap_window);
    snprintf(down, sizeof(down), "held down for at least %lld s",
             (long long)(held.until - noting->now.running) / 1000000);
    int rc = fab_diff_tell(
        &news, FAB_CHANGE_FLAPPING, invs, 2, (struct fab_told_end){key->end.guid, key->end.port},
        (struct fab_told_end){key->far.guid, key->far.port}, count, down,
        hold_is_switch(key)
            ? "the switch came and went so often; while it is held down its changes are not told"
            : "the cable came and went so often; while it is held down its changes are not told");
    if (rc != PMIXFAB_OK)
        return;
    hold_name(keeper->hold, key, news.changes[0].what, news.changes[0].subjects);
    log_warning("sweep: %s %s comes and goes: it is held down",
                hold_is_switch(key) ? "the switch" : "the cable", news.changes[0].what);
    publish_stamp(&news, noting->draft->seen, 0);
    fab_diff_move(&keeper->news, &news);
    fab_diff_destroy(&news);
}

static int count_changes(struct draft *draft, const struct moment *now)
{
    struct keeper *keeper = &draft->publisher->keeper;
    struct noting noting = {.draft = draft, .now = *now};
    const struct flaps_calls calls = {
        .is_planned = damping_is_planned, .on_held = note_held, .cbdata = &noting};
    struct flaps_seen seen;
    int rc = sweep_links_collect(&draft->inv, &seen);
    if (rc == PMIXFAB_OK)
        rc = flaps_count(keeper->hold, &keeper->seen, &seen, now->running, &calls);
    flaps_seen_free(&seen);
    return rc;
}

static bool cut_held(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    const struct hold_key key = damping_cable_key(inv, port);
    return hold_is_held(cbdata, &key);
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
    int rc = count_changes(draft, &now);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    if (hold_count(keeper->hold).next == 0)
        return PMIXFAB_OK;
    rc = fab_inventory_cut(&draft->inv, cut_held, keeper->hold, &rest, err);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_inventory_destroy(&draft->inv);
    draft->inv = rest;
    *cut = true;
    return PMIXFAB_OK;
}

/* ---- telling ------------------------------------------------------------------------------------- */

int keep_tell_flaps(struct draft *draft, struct fab_err *err)
{
    int rc = fab_diff_repeat(&draft->diff, &draft->publisher->keeper.news);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void keep_was_told(struct publisher *publisher)
{
    fab_diff_destroy(&publisher->keeper.news);
}

/* ---- for the daemon ------------------------------------------------------------------------------ */

bool publisher_release(struct publisher *publisher)
{
    struct moment now;
    moment_now(&now);
    return hold_pass(publisher->keeper.hold, now.running) > 0;
}

bool publisher_next_held(const struct publisher *publisher, uint32_t *at, struct publisher_held *out)
{
    struct moment now;
    struct held held;
    if (!hold_next(publisher->keeper.hold, at, &held))
        return false;
    moment_now(&now);
    *out = (struct publisher_held){.what = held.what,
                                   .guid = held.key.end.guid,
                                   .is_switch = hold_is_switch(&held.key),
                                   .since = now.wall + held.since - now.running,
                                   .until = now.wall + held.until - now.running,
                                   .changes = held.changes};
    return true;
}

/* Is it about this host or switch, by name or GUID? */
static bool suppressed_is_about(const struct held *held, const char *name)
{
    const uint64_t guids[] = {held->key.end.guid, held->key.far.guid};
    char text[24];
    for (const char *at = held->subjects; *at != '\0'; at = fab_subject_next(at))
        if (fab_same_host(at, name))
            return true;
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), "0x%016" PRIx64, guids[i]);
        if (strcmp(text, name) == 0)
            return true;
    }
    return false;
}

uint32_t publisher_release_now(struct publisher *publisher, const char *name)
{
    uint32_t n = 0;
    struct held held;
    for (uint32_t at = 0; hold_next(publisher->keeper.hold, &at, &held);) {
        const struct hold_key key = held.key;
        if (name != NULL && !suppressed_is_about(&held, name))
            continue;
        log_info("%s is released", held.what);
        n += hold_release(publisher->keeper.hold, &key);
        at--; /* the next one stands in its place */
    }
    return n;
}
