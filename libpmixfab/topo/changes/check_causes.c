/*
 * check_causes.c - find the cause of findings about missing or lost things.
 *
 * A missing or lost node with a cable to a present node is a cause. Everything that is reached from it over
 * missing and lost nodes only is caused by it. The nearest cause counts.
 */
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/changes/changes_private.h"

#define MOST_STEPS 64 /* from a cause: farther nodes stand for themselves */

/* A cable with at least one end that is gone: a node of the inventory or, after these, a lost one. */
struct cut {
    uint32_t node[2];
    struct fab_about about;
};

/* An HCA that is gone. */
struct hanging_hca {
    const char *host;
    uint32_t node;
    bool others; /* of the host's first entry: another HCA of the host is present */
};

struct causes {
    struct fab_scratch scratch;
    const struct fab_inventory *inv;
    const struct fab_lost *lost;
    struct fab_finding **by_id; /* of all lists */
    uint32_t n_by_id;
    uint32_t n_nodes;
    bool *gone;
    uint32_t *step; /* distance from its cause; FAB_NONE: not reached */
    struct fab_finding **cause, **finding;
    struct cut *cuts;
    uint32_t n_cuts, cap_cuts;
    struct hanging_hca *hcas; /* by host */
    uint32_t n_hcas;
};

static int causes_compare_ids(const void *x, const void *y)
{
    const struct fab_finding *const *a = x, *const *b = y;
    return FAB_ORDER((*a)->id, (*b)->id);
}

/* Return the finding, or NULL if there is none. */
static struct fab_finding *causes_find(const struct causes *c, enum fab_check_kind kind,
                                       const struct fab_about *about)
{
    const uint64_t id = fab_finding_id(kind, about);
    const uint32_t at = FAB_LOWER_BOUND(0, c->n_by_id, i, c->by_id[i]->id < id);
    return at < c->n_by_id && c->by_id[at]->id == id ? c->by_id[at] : NULL;
}

static struct past_node causes_node(const struct causes *c, uint32_t node)
{
    return past_node(c->inv, c->lost, node);
}

/* ---- gone nodes and their cables --------------------------------------------------------------------- */

static int causes_add_cut(struct causes *c, uint32_t a, uint32_t b, const struct fab_about *about)
{
    if (a == FAB_NONE || b == FAB_NONE || (!c->gone[a] && !c->gone[b]))
        return PMIXFAB_OK;
    if (!FAB_ARRAY_ROOM(&c->cuts, &c->cap_cuts, c->n_cuts + 1))
        return PMIXFAB_ERR_NOMEM;
    c->cuts[c->n_cuts++] = (struct cut){{a, b}, *about};
    return PMIXFAB_OK;
}

static int causes_collect(struct causes *c)
{
    const struct fab_inventory *inv = c->inv;
    int rc = PMIXFAB_OK;
    for (uint32_t n = 0; n < c->n_nodes; n++) {
        const struct past_node node = causes_node(c, n);
        const struct fab_about about = {.end[0].guid = node.guid};
        c->gone[n] = node.lost == NULL ? inv->nodes[n].missing : !node.lost->forgotten;
        c->finding[n] = c->gone[n] ? causes_find(c, FAB_CHECK_MISSING, &about) : NULL;
        c->step[n] = FAB_NONE;
    }
    for (uint32_t p = 0; rc == PMIXFAB_OK && p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer == FAB_NONE || p > port->peer || !fab_port_is_missing(inv, port))
            continue;
        const struct fab_about about = fab_about_cable(inv, port);
        rc = causes_add_cut(c, port->node, inv->ports[port->peer].node, &about);
    }
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < c->lost->cables.n; i++) {
        const struct fab_lost_item *cable = &c->lost->cables.items[i];
        const struct fab_about about = check_about_lost_cable(cable);
        if (fab_lost_is_waited_for(inv, c->lost, cable))
            rc = causes_add_cut(c, past_node_at(inv, c->lost, cable->end[0].guid),
                                past_node_at(inv, c->lost, cable->end[1].guid), &about);
    }
    return rc;
}

/* ---- causes ------------------------------------------------------------------------------------------ */

/*
 * Return the deeper cause of a gone node with a cable to a present node. The cause is that the gone node or
 * the cable flaps, or that the far port is switched off.
 */
static struct fab_finding *causes_deeper(const struct causes *c, uint32_t node, const struct cut *cut)
{
    const int side = cut->node[1] == node;
    const struct fab_about of_node = {.end[0].guid = cut->about.end[0].guid},
                           far = {.end[0] = cut->about.end[1]};
    const struct fab_about turned_node = {.end[0].guid = cut->about.end[1].guid},
                           turned = {.end[0] = cut->about.end[0]};
    struct fab_finding *found = causes_find(c, FAB_CHECK_FLAPPING, side ? &turned_node : &of_node);
    if (found == NULL)
        found = causes_find(c, FAB_CHECK_FLAPPING, &cut->about);
    return found != NULL ? found : causes_find(c, FAB_CHECK_PORT_DISABLED, side ? &turned : &far);
}

/*
 * Start from gone nodes with a cable to a present node: each is a cause, unless all of these cables have a
 * cause.
 */
static void causes_find_first(struct causes *c)
{
    for (uint32_t i = 0; i < c->n_cuts; i++)
        for (int side = 0; side < 2; side++) {
            const uint32_t node = c->cuts[i].node[side];
            if (!c->gone[node] || c->gone[c->cuts[i].node[!side]])
                continue;
            struct fab_finding *deeper = causes_deeper(c, node, &c->cuts[i]);
            const bool first = c->step[node] == FAB_NONE;
            c->step[node] = 0;
            if (first)
                c->cause[node] = deeper != NULL ? deeper : c->finding[node];
            else if (deeper == NULL && c->finding[node] != NULL)
                c->cause[node] = c->finding[node];
        }
}

static void causes_spread(struct causes *c)
{
    bool going = true;
    for (uint32_t step = 0; going && step < MOST_STEPS; step++) {
        going = false;
        for (uint32_t i = 0; i < c->n_cuts; i++)
            for (int side = 0; side < 2; side++) {
                const uint32_t from = c->cuts[i].node[side], to = c->cuts[i].node[!side];
                if (c->step[from] != step || causes_node(c, from).kind != FAB_SWITCH || !c->gone[to] ||
                    c->step[to] != FAB_NONE)
                    continue;
                c->step[to] = step + 1;
                c->cause[to] = c->cause[from];
                going = true;
            }
    }
}

/* Start from switches if no cable has a present node at its end, as when a whole plane is gone. */
static void causes_take_switches(struct causes *c)
{
    for (uint32_t n = 0; n < c->n_nodes; n++)
        if (c->gone[n] && c->step[n] == FAB_NONE && causes_node(c, n).kind == FAB_SWITCH) {
            c->step[n] = 0;
            c->cause[n] = c->finding[n];
        }
}

/* ---- hosts ------------------------------------------------------------------------------------------- */

static int causes_compare_hcas(const void *x, const void *y)
{
    const struct hanging_hca *a = x, *b = y;
    return strcmp(a->host, b->host) ?: FAB_ORDER(a->node, b->node);
}

static void causes_collect_hcas(struct causes *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t n = 0; n < c->n_nodes; n++)
        if (c->gone[n] && causes_node(c, n).kind == FAB_HCA)
            c->hcas[c->n_hcas++] = (struct hanging_hca){causes_node(c, n).host, n, false};
    if (c->n_hcas > 1)
        qsort(c->hcas, c->n_hcas, sizeof(*c->hcas), causes_compare_hcas);
    for (uint32_t n = 0; c->n_hcas > 0 && n < inv->n_nodes; n++) {
        const char *host = causes_node(c, n).host;
        if (c->gone[n] || inv->nodes[n].kind != FAB_HCA)
            continue;
        const uint32_t at = FAB_LOWER_BOUND(0, c->n_hcas, i, strcmp(c->hcas[i].host, host) < 0);
        if (at < c->n_hcas && strcmp(c->hcas[at].host, host) == 0)
            c->hcas[at].others = true;
    }
}

/* Handle the HCAs of one host. If all are gone, those without another cause are caused by the first one. */
static void causes_of_host(struct causes *c, const struct hanging_hca *hcas, uint32_t n)
{
    struct fab_finding *first = NULL;
    const bool all = !hcas[0].others;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t node = hcas[i].node;
        struct fab_finding *finding = c->finding[node], *cause = c->cause[node];
        const bool alone = cause == NULL || cause == finding;
        bool again = false;
        if (finding == NULL)
            continue;
        if (alone && all && first != NULL) {
            finding->cause = first->id;
            first->hcas_of_host++;
        } else if (alone) {
            first = first != NULL ? first : finding;
        } else {
            for (uint32_t k = 0; k < i; k++)
                again |= c->cause[hcas[k].node] == cause;
            finding->cause = cause->id;
            cause->hosts += all && !again;
            cause->hcas += !all;
        }
    }
}

static void causes_of_hosts(struct causes *c)
{
    for (uint32_t from = 0, to = 0; from < c->n_hcas; from = to) {
        while (to < c->n_hcas && strcmp(c->hcas[to].host, c->hcas[from].host) == 0)
            to++;
        causes_of_host(c, c->hcas + from, to - from);
    }
}

/* Handle switches, and cables and ports with findings of their own. */
static void causes_of_others(struct causes *c)
{
    for (uint32_t n = 0; n < c->n_nodes; n++) {
        struct fab_finding *finding = c->finding[n], *cause = c->cause[n];
        if (finding == NULL || cause == NULL || cause == finding || causes_node(c, n).kind != FAB_SWITCH)
            continue;
        finding->cause = cause->id;
        cause->switches += strcmp(cause->where, finding->where) != 0;
    }
}

/*
 * Find the cause for a cable or port with a finding of its own: the cause of the far node, or flapping of the
 * cable.
 */
static void causes_of_cable(const struct causes *c, const struct fab_about *about,
                            struct fab_finding *finding, uint32_t far)
{
    struct fab_finding *cause = far != FAB_NONE && c->gone[far] ? c->cause[far] : NULL;
    if (cause == NULL)
        cause = causes_find(c, FAB_CHECK_FLAPPING, about);
    if (finding == NULL || cause == NULL || cause == finding || cause->cause == finding->id)
        return;
    finding->cause = cause->id;
    cause->hcas += finding->kind != FAB_CHECK_LINK_LOST;
}

static void causes_of_cables(const struct causes *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (!port->missing || port->peer == FAB_NONE)
            continue;
        const struct fab_about about = fab_about_port(inv, port), cable = fab_about_cable(inv, port);
        causes_of_cable(c, &cable, causes_find(c, FAB_CHECK_MISSING, &about), inv->ports[port->peer].node);
    }
    for (uint32_t i = 0; i < c->lost->cables.n; i++) {
        const struct fab_lost_item *item = &c->lost->cables.items[i];
        struct fab_about about;
        const enum fab_check_kind kind = fab_lost_is_about(inv, c->lost, item, &about);
        const struct fab_about cable = check_about_lost_cable(item);
        if (kind == FAB_CHECK_LOST || kind == FAB_CHECK_LINK_LOST)
            causes_of_cable(c, &cable, causes_find(c, kind, &about), FAB_NONE);
    }
}

/* ---- all findings ------------------------------------------------------------------------------------ */

static void causes_sort(struct causes *c, struct fab_findings *const *lists, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < lists[k]->n; i++) {
            struct fab_finding *finding = &lists[k]->findings[i];
            finding->cause = 0;
            finding->switches = finding->hosts = finding->hcas = finding->hcas_of_host = 0;
            c->by_id[c->n_by_id++] = finding;
        }
    if (c->n_by_id > 1)
        qsort(c->by_id, c->n_by_id, sizeof(struct fab_finding *), causes_compare_ids);
}

int fab_check_causes(const struct fab_inventory *inv, const struct fab_lost *lost,
                     struct fab_findings *served, struct fab_findings *flapping)
{
    struct fab_findings *const lists[] = {served, flapping};
    struct causes c = {.inv = inv, .lost = lost, .n_nodes = inv->n_nodes + lost->nodes.n};
    int rc = PMIXFAB_ERR_NOMEM;
    FAB_SCRATCH(&c.scratch, &c.by_id, (size_t)served->n + flapping->n);
    FAB_SCRATCH(&c.scratch, &c.gone, c.n_nodes);
    FAB_SCRATCH(&c.scratch, &c.step, c.n_nodes);
    FAB_SCRATCH(&c.scratch, &c.cause, c.n_nodes);
    FAB_SCRATCH(&c.scratch, &c.finding, c.n_nodes);
    FAB_SCRATCH(&c.scratch, &c.hcas, c.n_nodes);
    if (c.scratch.failed)
        goto cleanup;
    causes_sort(&c, lists, 2);
    rc = causes_collect(&c);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    causes_find_first(&c);
    causes_spread(&c);
    causes_take_switches(&c);
    causes_spread(&c);
    causes_collect_hcas(&c);
    causes_of_hosts(&c);
    causes_of_others(&c);
    causes_of_cables(&c);
cleanup:
    fab_scratch_free(&c.scratch);
    free(c.cuts);
    return rc;
}
