/* probe.c - the probe of a simulated site: sweeps of everything and of a part, light sweeps, counters. */
#include <stdlib.h>

#include "test/sim/played.h"
#include "test/sim/site.h"

static int site_check(const struct probe_config *config, struct fab_err *err)
{
    (void)config, (void)err;
    return PMIXFAB_OK;
}

/* Does the place answer from which sweeps are made? *missed: the node that does not, NULL. */
static int site_answers(const char **missed, struct fab_err *err)
{
    const enum sim_sweeps how = sim_sweeps_end(the_sim(), missed);
    if (how != SIM_SWEEPS_MISS)
        *missed = NULL;
    return how == SIM_SWEEPS_FAIL || site_is_cut_off(sim_site(the_sim()))
               ? fab_fail(err, PMIXFAB_ERR_IO, "the port is down")
               : PMIXFAB_OK;
}

static void site_swept(const struct fab_inventory *inv)
{
    const char *missed;
    if (sim_sweeps_end(the_sim(), &missed) == SIM_SWEEPS_GOOD)
        sim_on_swept(the_sim(), inv);
}

static int site_run(const struct probe_config *config, const struct probe_sink *sink,
                    struct fab_inventory *inv, struct fab_err *err)
{
    const char *missed;
    const int rc = site_answers(&missed, err);
    (void)config, (void)sink;
    if (rc != PMIXFAB_OK)
        return rc;
    fab_inventory_destroy(inv);
    site_inventory(sim_site(the_sim()), missed, inv);
    site_swept(inv);
    return PMIXFAB_OK;
}

/* ---- light sweeps
 * -------------------------------------------------------------------------------------------------------- */

static bool same_end(const struct fab_inventory *a, uint32_t one, const struct fab_inventory *b,
                     uint32_t other)
{
    const struct fab_port *p = &a->ports[one], *q = &b->ports[other];
    if (p->num != q->num || p->state != q->state || !fab_same_rate(p, q) ||
        (p->peer == FAB_NONE) != (q->peer == FAB_NONE))
        return false;
    return p->peer == FAB_NONE ||
           (a->ports[p->peer].num == b->ports[q->peer].num &&
            a->nodes[a->ports[p->peer].node].guid == b->nodes[b->ports[q->peer].node].guid);
}

static bool same_ports(const struct fab_inventory *a, const struct fab_node *one,
                       const struct fab_inventory *b, const struct fab_node *other)
{
    bool same = one->n_ports == other->n_ports && one->kind == other->kind;
    for (uint32_t i = 0; same && i < one->n_ports; i++)
        same = same_end(a, one->first_port + i, b, other->first_port + i);
    return same;
}

struct probe_monitor {
    struct fab_inventory saw;
    uint64_t version; /* one more than that of the site then; 0: it is no site's */
};

static int site_monitor_open(const struct probe_config *config, const struct fab_inventory *inv,
                             struct probe_monitor **out, struct fab_err *err)
{
    (void)config;
    *out = calloc(1, sizeof(**out));
    return *out == NULL || fab_inventory_copy(&(*out)->saw, inv) != PMIXFAB_OK
               ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory")
               : PMIXFAB_OK;
}

/* Switches that are otherwise now, or not there. */
static int site_monitor_poll(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err)
{
    const struct fab_inventory *was = &monitor->saw;
    const uint64_t version = site_version(sim_site(the_sim())) + 1;
    struct fab_inventory now;
    const char *missed;
    int rc = site_answers(&missed, err);
    if (rc != PMIXFAB_OK || (missed == NULL && monitor->version == version))
        return rc;
    site_inventory(sim_site(the_sim()), missed, &now);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < was->n_nodes; i++) {
        const uint32_t at = fab_inventory_find(&now, was->nodes[i].guid);
        if (was->nodes[i].kind == FAB_SWITCH &&
            (at == FAB_NONE || !same_ports(was, &was->nodes[i], &now, &now.nodes[at])))
            rc = dirty_switches_add(dirty, was->nodes[i].guid, err);
    }
    dirty->requests = now.n_nodes;
    fab_inventory_destroy(&monitor->saw);
    monitor->saw = now;
    monitor->version = missed == NULL ? version : 0;
    return rc;
}

static void site_monitor_close(struct probe_monitor *monitor)
{
    if (monitor == NULL)
        return;
    fab_inventory_destroy(&monitor->saw);
    free(monitor);
}

/* It answers where its cable is in. */
static void site_monitor_manager(const struct probe_monitor *monitor, struct probe_manager *out)
{
    *out = (struct probe_manager){.asked = true, .lid = 1, .guid = sim_manager_guid(the_sim())};
    out->master = out->guid != 0;
    (void)monitor;
}

/* ---- the rest
 * ------------------------------------------------------------------------------------------------------------
 */

static int site_sweep_switches(const struct probe_config *config, const struct probe_sink *sink,
                               const struct fab_inventory *last, const struct dirty_switches *dirty,
                               struct fab_inventory *inv, struct fab_err *err)
{
    const char *missed;
    uint32_t n = 0;
    (void)config;
    if (sim_sweeps_end(the_sim(), &missed) != SIM_SWEEPS_GOOD || site_is_cut_off(sim_site(the_sim())))
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "a switch is not in its former place");
    fab_inventory_destroy(inv);
    const int rc = site_part(sim_site(the_sim()), last, dirty->guids, dirty->n, inv, &n, err);
    if (rc != PMIXFAB_OK)
        return rc;
    probe_note(sink, PMIXFAB_LOG_DEBUG, "%u switch%s read anew", n, n == 1 ? "" : "es");
    site_swept(inv);
    return PMIXFAB_OK;
}

static int site_counters(const struct probe_config *config, const struct fab_inventory *last,
                         struct probe_reading *list, uint32_t n, struct fab_err *err)
{
    const char *missed;
    const enum sim_sweeps how = sim_sweeps_end(the_sim(), &missed);
    (void)config, (void)err;
    for (uint32_t i = 0; i < n; i++) {
        struct probe_reading *reading = &list[i];
        if (reading->state != READING_NONE || fab_inventory_find(last, reading->guid) == FAB_NONE)
            continue;
        const bool answers = site_count(sim_site(the_sim()), how == SIM_SWEEPS_MISS ? missed : NULL,
                                        reading->guid, reading->num, reading->value);
        reading->state = answers ? READING_GOOD : READING_SILENT;
    }
    return PMIXFAB_OK;
}

const struct probe probe_site = {.name = "site",
                                 .summary = "the site of a simulation",
                                 .check = site_check,
                                 .run = site_run,
                                 .monitor_open = site_monitor_open,
                                 .monitor_poll = site_monitor_poll,
                                 .monitor_close = site_monitor_close,
                                 .monitor_manager = site_monitor_manager,
                                 .sweep_switches = site_sweep_switches,
                                 .counters = site_counters};
