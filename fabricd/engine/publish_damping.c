/* publish_damping.c - what comes and goes is counted, and cut while it is suppressed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publish_retention.h"
#include "fabricd/engine/update.h"
#include "topo/join/join.h"
#include "topo/model/host_name.h"
#include "topo/model/retain.h"

static struct damping_key damping_cable_key(const struct fab_inventory *inv, uint32_t port)
{
    const struct fab_port *end = &inv->ports[port], *far = &inv->ports[end->peer];
    return damping_cable((struct damping_end){inv->nodes[end->node].guid, end->num},
                         (struct damping_end){inv->nodes[far->node].guid, far->num});
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
           !fab_state_is_down(port->state) && !fab_state_is_down(inv->ports[port->peer].state);
}

/* Nodes are in the order of their GUIDs, and ports in that of their numbers. */
static int sweep_links_collect(const struct fab_inventory *inv, struct sweep_links *out)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        n += is_up(inv, p);
    *out = (struct sweep_links){.known = true};
    out->cables = malloc(((size_t)n + 1) * sizeof(*out->cables));
    if (out->cables == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (is_up(inv, p))
            out->cables[out->n++] = (struct transition_cable){damping_cable_key(inv, p), at_switch(inv, p),
                                                              at_switch(inv, inv->ports[p].peer)};
    return PMIXFAB_OK;
}

/* ---- counting ------------------------------------------------------------------------------------ */

struct noting {
    struct update *update;
    struct moment now;
};

/* As it is called in the sweep, or was in what is published. */
static bool damping_is_planned(uint64_t guid, void *cbdata)
{
    const struct noting *noting = cbdata;
    struct publisher *publisher = noting->update->publisher;
    const struct fab_inventory *invs[] = {&noting->update->inv, &publisher->current};
    uint32_t n;
    const struct store_planned *all = planned_all(publisher->planned, noting->now.wall, &n);
    for (size_t i = 0; n > 0 && i < 2; i++) {
        uint32_t at = fab_inventory_find(invs[i], guid);
        if (at == FAB_NONE)
            continue;
        const char *name = fab_node_known_as(invs[i], &invs[i]->nodes[at]);
        for (uint32_t k = 0; k < n; k++)
            if (fab_same_host(all[k].name, name))
                return true;
    }
    return false;
}

/* It is suppressed from now on: the change that the next generation tells. Without memory it is not told. */
static void note_suppressed(const struct damping_key *key, void *cbdata)
{
    struct noting *noting = cbdata;
    struct publisher *publisher = noting->update->publisher;
    struct retention *retention = &publisher->retention;
    const struct fab_inventory *invs[] = {&publisher->current, &noting->update->inv};
    struct suppressed suppressed;
    char count[64], down[64];
    struct fab_diff news = {0};
    if (!damping_find(retention->damping, key, &suppressed))
        return;
    snprintf(count, sizeof(count), "%u changes within %u s", publisher->config->flap_count,
             publisher->config->flap_window);
    snprintf(down, sizeof(down), "suppressed for at least %lld s",
             (long long)(suppressed.until - noting->now.running) / 1000000);
    int rc = fab_diff_tell(
        &news, FAB_CHANGE_FLAPPING, invs, 2, (struct fab_told_end){key->end.guid, key->end.port},
        (struct fab_told_end){key->far.guid, key->far.port}, count, down,
        damping_is_switch(key)
            ? "the switch came and went so often; while it is suppressed its changes are not told"
            : "the cable came and went so often; while it is suppressed its changes are not told");
    if (rc != PMIXFAB_OK)
        return;
    damping_name(retention->damping, key, news.changes[0].what, news.changes[0].subjects);
    log_warning("sweep: %s %s comes and goes: it is suppressed",
                damping_is_switch(key) ? "the switch" : "the cable", news.changes[0].what);
    publish_stamp(&news, noting->update->seen, 0);
    fab_diff_move(&retention->news, &news);
    fab_diff_destroy(&news);
}

static int count_changes(struct update *update, const struct moment *now)
{
    struct retention *retention = &update->publisher->retention;
    struct noting noting = {.update = update, .now = *now};
    const struct transition_calls calls = {
        .is_planned = damping_is_planned, .on_suppressed = note_suppressed, .cbdata = &noting};
    struct sweep_links seen;
    int rc = sweep_links_collect(&update->inv, &seen);
    if (rc == PMIXFAB_OK)
        rc = transition_count(retention->damping, &retention->seen, &seen, now->running, &calls);
    sweep_links_free(&seen);
    return rc;
}

static bool cut_suppressed(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    const struct damping_key key = damping_cable_key(inv, port);
    return damping_is_suppressed(cbdata, &key);
}

int publish_suppress(struct update *update, bool *cut, struct fab_err *err)
{
    struct retention *retention = &update->publisher->retention;
    struct fab_inventory rest;
    struct moment now;
    moment_now(&now);
    *cut = false;
    if (update->publisher->config->flap_count == 0)
        return PMIXFAB_OK;
    damping_advance(retention->damping, now.running);
    int rc = count_changes(update, &now);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    if (damping_count(retention->damping).next == 0)
        return PMIXFAB_OK;
    rc = update_verify_cut(update, cut_suppressed, retention->damping);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    rc = fab_inventory_cut(&update->inv, cut_suppressed, retention->damping, &rest, err);
    if (rc != PMIXFAB_OK)
        return rc;
    fab_inventory_destroy(&update->inv);
    update->inv = rest;
    *cut = true;
    return PMIXFAB_OK;
}

/* ---- telling ------------------------------------------------------------------------------------- */

int retention_announce_flaps(struct update *update, struct fab_err *err)
{
    int rc = fab_diff_repeat(&update->diff, &update->publisher->retention.news);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "out of memory");
}

void retention_announced(struct publisher *publisher)
{
    fab_diff_destroy(&publisher->retention.news);
}

/* ---- for the daemon ------------------------------------------------------------------------------ */

bool publisher_release(struct publisher *publisher)
{
    struct moment now;
    moment_now(&now);
    return damping_advance(publisher->retention.damping, now.running) > 0;
}

bool publisher_next_suppressed(const struct publisher *publisher, uint32_t *at,
                               struct publisher_suppressed *out)
{
    struct moment now;
    struct suppressed suppressed;
    if (!damping_next(publisher->retention.damping, at, &suppressed))
        return false;
    moment_now(&now);
    const struct damping_end end = suppressed.key.end, far = suppressed.key.far;
    *out = (struct publisher_suppressed){.what = suppressed.what,
                                         .about = {.end = {{end.guid, end.port}, {far.guid, far.port}}},
                                         .since = now.wall + suppressed.since - now.running,
                                         .until = now.wall + suppressed.until - now.running,
                                         .changes = suppressed.changes};
    return true;
}

/* Is it about this host or switch, by name or GUID? */
static bool suppressed_is_about(const struct suppressed *suppressed, const char *name)
{
    const uint64_t guids[] = {suppressed->key.end.guid, suppressed->key.far.guid};
    char text[24];
    for (const char *at = suppressed->subjects; *at != '\0'; at = fab_subject_next(at))
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
    struct suppressed suppressed;
    for (uint32_t at = 0; damping_next(publisher->retention.damping, &at, &suppressed);) {
        const struct damping_key key = suppressed.key;
        if (name != NULL && !suppressed_is_about(&suppressed, name))
            continue;
        log_info("%s is released", suppressed.what);
        n += damping_release(publisher->retention.damping, &key);
        at--; /* the next one stands in its place */
    }
    return n;
}
