/*
 * flapping.c - count the changes between sweeps (damping.c), and cut suppressed cables out of a sweep.
 * Count the claims of several hosts to one HCA, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publisher.h"
#include "topo/model/host_name.h"

static struct damping_limits configured_limits(const struct config *config)
{
    return (struct damping_limits){config->flap_count, config->flap_window, config->suppress,
                                   config->suppress_max};
}

int flapping_init(struct publisher *publisher, struct fab_err *err)
{
    const struct damping_limits limits = configured_limits(publisher->config);
    publisher->damping = damping_new(&limits);
    return publisher->damping != NULL ? PMIXFAB_OK : no_memory(err);
}

void publisher_reconfigured(struct publisher *publisher)
{
    const struct damping_limits limits = configured_limits(publisher->config);
    damping_limit(publisher->damping, &limits);
    if (limits.count == 0)
        publisher_release_now(publisher, NULL);
}

/* ---- the cables of a sweep ------------------------------------------------------------------------- */

static struct damping_key key_of_cable(const struct fab_inventory *inv, uint32_t port)
{
    const struct fab_port *end = &inv->ports[port], *far = &inv->ports[end->peer];
    return damping_cable((struct damping_end){inv->nodes[end->node].guid, end->num},
                         (struct damping_end){inv->nodes[far->node].guid, far->num});
}

static bool at_switch(const struct fab_inventory *inv, uint32_t port)
{
    return inv->nodes[inv->ports[port].node].kind == FAB_SWITCH;
}

/* Return whether this port is the lower end of a cable that is up and has at least one end at a switch. */
static bool is_up(const struct fab_inventory *inv, uint32_t p)
{
    const struct fab_port *port = &inv->ports[p];
    return port->peer != FAB_NONE && p < port->peer && (at_switch(inv, p) || at_switch(inv, port->peer)) &&
           !fab_state_is_down(port->state) && !fab_state_is_down(inv->ports[port->peer].state);
}

/* Nodes are in the order of their GUIDs, and ports in that of their numbers. */
static int collect_links(const struct fab_inventory *inv, struct sweep_links *out)
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
            out->cables[out->n++] = (struct sweep_cable){key_of_cable(inv, p), at_switch(inv, p),
                                                         at_switch(inv, inv->ports[p].peer)};
    return PMIXFAB_OK;
}

/* ---- counting -------------------------------------------------------------------------------------- */

struct counted_sweep {
    const struct swept_fabric *sweep;
    struct moment now;
};

/* Return whether a swap is announced, by the name in the sweep or in the published inventory. */
static bool flap_is_planned(uint64_t guid, void *cbdata)
{
    const struct counted_sweep *counted = cbdata;
    struct publisher *publisher = counted->sweep->publisher;
    const struct fab_inventory *invs[] = {&counted->sweep->inv, &publisher->current};
    uint32_t n;
    const struct store_planned *all = planned_all(publisher->planned, counted->now.wall, &n);
    for (size_t i = 0; n > 0 && i < 2; i++) {
        const uint32_t at = fab_inventory_find(invs[i], guid);
        const char *name = at == FAB_NONE ? NULL : fab_node_known_as(invs[i], &invs[i]->nodes[at]);
        for (uint32_t k = 0; name != NULL && k < n; k++)
            if (fab_same_host(all[k].name, name))
                return true;
    }
    return false;
}

/* Report a new suppression as a change of the next generation. Without memory it is not reported. */
static void note_suppressed(const struct damping_key *key, void *cbdata)
{
    const struct counted_sweep *counted = cbdata;
    struct publisher *publisher = counted->sweep->publisher;
    const struct fab_inventory *invs[] = {&publisher->current, &counted->sweep->inv};
    const struct damped *damped = damping_find(publisher->damping, key);
    char count[64], down[64], why[96];
    struct fab_diff news = {0};
    if (damped == NULL)
        return;
    const char *kind = damping_is_switch(key) ? "switch" : "cable";
    snprintf(count, sizeof(count), "%u changes within %u s", publisher->config->flap_count,
             publisher->config->flap_window);
    snprintf(down, sizeof(down), "suppressed for at least %lld s",
             (long long)(damped->until - counted->now.running) / 1000000);
    snprintf(why, sizeof(why),
             "the %s came and went too often; while it is suppressed, its changes are not reported", kind);
    int rc = fab_diff_tell(&news, FAB_CHANGE_FLAPPING, invs, 2,
                           (struct fab_told_end){key->end.guid, key->end.port},
                           (struct fab_told_end){key->far.guid, key->far.port}, count, down, why);
    if (rc != PMIXFAB_OK)
        return;
    damping_name(publisher->damping, key, news.changes[0].what, news.changes[0].subjects);
    log_warning("sweep: the %s %s flaps: it is suppressed", kind, news.changes[0].what);
    publish_stamp(&news, counted->sweep->seen, 0);
    fab_diff_move(&publisher->flaps, &news);
    fab_diff_destroy(&news);
}

int flapping_count(const struct swept_fabric *sweep)
{
    struct publisher *publisher = sweep->publisher;
    struct counted_sweep counted = {.sweep = sweep};
    const struct flap_calls calls = {
        .is_planned = flap_is_planned, .on_suppressed = note_suppressed, .cbdata = &counted};
    struct sweep_links seen;
    moment_now(&counted.now);
    damping_advance(publisher->damping, counted.now.running);
    int rc = collect_links(&sweep->inv, &seen)
                 ?: flaps_count(publisher->damping, &publisher->links, &seen, counted.now.running, &calls);
    sweep_links_free(&seen);
    return rc;
}

bool flapping_is_cut(const struct fab_inventory *inv, uint32_t port, void *damping)
{
    const struct damping_key key = key_of_cable(inv, port);
    return damping_is_suppressed(damping, &key);
}

/* ---- HCAs that several hosts claim ------------------------------------------------------------------ */

/*
 * If claims to an HCA begin and end more than once within an hour, no host gets the HCA until the claims
 * have been quiet for ten minutes. The time doubles each further time. Otherwise one host could move other
 * hosts' indices at will.
 */
#define CLAIM_CHANGES 3
#define CLAIM_WINDOW  3600
#define CLAIM_QUIET   600
#define CLAIM_MOST    86400

int claims_init(struct publisher *publisher, struct fab_err *err)
{
    publisher->claims =
        damping_new(&(struct damping_limits){CLAIM_CHANGES, CLAIM_WINDOW, CLAIM_QUIET, CLAIM_MOST});
    return publisher->claims != NULL ? PMIXFAB_OK : no_memory(err);
}

static void claim_changed(struct publisher *publisher, uint64_t guid, bool began, int64_t now)
{
    const struct damping_key key = damping_switch(guid);
    if (damping_change(publisher->claims, &key, began, now))
        log_warning("reports: claims to the HCA 0x%016" PRIx64
                    " come and go: no host gets it until they are quiet",
                    guid);
}

void claims_accept(struct publisher *publisher, struct guids *contested)
{
    struct guids *before = &publisher->contested;
    struct moment now;
    moment_now(&now);
    damping_advance(publisher->claims, now.running);
    for (uint32_t old = 0, new = 0; old < before->n || new < contested->n;) {
        const bool began =
            old == before->n || (new < contested->n && contested->guids[new] < before->guids[old]);
        const bool ended =
            new == contested->n || (old < before->n && before->guids[old] < contested->guids[new]);
        if (began || ended)
            claim_changed(publisher, began ? contested->guids[new] : before->guids[old], began, now.running);
        old += !began;
        new += !ended;
    }
    free(before->guids);
    *before = *contested;
    *contested = (struct guids){0};
    publisher->claims_released = false;
}

/* ---- for the daemon -------------------------------------------------------------------------------- */

bool publisher_release(struct publisher *publisher)
{
    struct moment now;
    moment_now(&now);
    publisher->claims_released |= damping_advance(publisher->claims, now.running) > 0;
    return damping_advance(publisher->damping, now.running) > 0;
}

/* Return whether the entry concerns this host or switch, by name or GUID. */
static bool is_about(const struct damped *damped, const char *name)
{
    const uint64_t guids[] = {damped->key.end.guid, damped->key.far.guid};
    char text[24];
    for (const char *at = damped_subjects(damped); *at != '\0'; at = fab_subject_next(at))
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
    const struct damped *damped;
    for (uint32_t at = 0; (damped = damping_next(publisher->damping, &at)) != NULL;) {
        const struct damping_key key = damped->key;
        if (name != NULL && !is_about(damped, name))
            continue;
        log_info("%s is released", damped_what(damped));
        n += damping_release(publisher->damping, &key);
        at--; /* the next one has moved to its position */
    }
    return n;
}
