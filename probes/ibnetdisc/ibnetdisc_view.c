/* ibnetdisc_view.c - the decisions of a light sweep: expectations, and the next requests. */
#include "probes/ibnetdisc/ibnetdisc.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_BUDGET 512u /* requests: negligible, and the whole of a small subnet */
#define PART         20u  /* a light sweep may send one of so many requests of a sweep */

void view_free(struct view *view)
{
    free(view->switches);
    free(view->edges);
    free(view->signs);
    free(view->at);
    free(view->up);
    free(view->queue);
    *view = (struct view){0};
}

uint32_t view_sweep_cost(const struct fab_inventory *inv)
{
    uint32_t cost = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        /* each cable is followed from both ends; then node and port info, and the description */
        cost += node->n_ports + 3 + (node->kind == FAB_SWITCH ? node->num_ports + 1u : 0);
    }
    return cost;
}

/* ---- the relevant state of a port -------------------------------------------------------------------- */

static uint32_t sign_of(bool link, unsigned state, unsigned width)
{
    return link ? 1u << 16 | state << 8 | width : 0;
}

static bool port_is_unstable(unsigned state)
{
    return state == FAB_PORT_INIT || state == FAB_PORT_ARMED;
}

static uint32_t sign_listed(const struct fab_port *port)
{
    return sign_of(port->peer != FAB_NONE || fab_state_is_up(port->state), port->state, port->width);
}

/* ---- from an inventory ---------------------------------------------------------------------------- */

static uint32_t find_own(const struct fab_inventory *inv, uint64_t guid)
{
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (inv->ports[i].guid == guid && guid != 0 && inv->ports[i].peer != FAB_NONE)
            return i;
    return FAB_NONE;
}

static int port_info_reserve(struct view *view)
{
    const struct fab_inventory *inv = view->inv;
    size_t n_switches = 0, n_signs = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        n_switches += inv->nodes[i].kind == FAB_SWITCH;
        n_signs += inv->nodes[i].kind == FAB_SWITCH ? inv->nodes[i].num_ports + 1u : 0;
    }
    view->switches = calloc(n_switches + 1, sizeof(*view->switches));
    view->edges = calloc(inv->n_ports + 1, sizeof(*view->edges));
    view->signs = calloc(n_signs + 1, sizeof(*view->signs));
    view->at = malloc((inv->n_nodes + 1) * sizeof(*view->at));
    view->up = malloc((inv->n_nodes + 1) * sizeof(*view->up));
    view->queue = malloc((inv->n_nodes + 1) * sizeof(*view->queue));
    if (view->switches == NULL || view->edges == NULL || view->signs == NULL || view->at == NULL ||
        view->up == NULL || view->queue == NULL)
        return PMIXFAB_ERR_NOMEM;
    return PMIXFAB_OK;
}

/* Switches of another subnet belong to another probe. */
static bool in_subnet(const struct fab_inventory *inv, const struct fab_node *node, uint8_t subnet)
{
    return node->n_ports > 0 && inv->ports[node->first_port].subnet == subnet;
}

static void take_switch(struct view *view, uint32_t index, uint32_t *n_signs)
{
    const struct fab_inventory *inv = view->inv;
    const struct fab_node *node = &inv->nodes[index];
    view->at[index] = FAB_NONE;
    if (node->kind != FAB_SWITCH || !in_subnet(inv, node, inv->ports[view->own].subnet))
        return;
    struct view_switch *sw = &view->switches[view->n_switches];
    *sw = (struct view_switch){.node = index, .first_sign = *n_signs, .bit = VIEW_UNKNOWN};
    for (uint32_t i = node->first_port; i < node->first_port + node->n_ports; i++) {
        const struct fab_port *port = &inv->ports[i];
        view->signs[sw->first_sign + port->num] = sign_listed(port);
        sw->unsettled |= port_is_unstable(port->state);
    }
    *n_signs += node->num_ports + 1u;
    view->at[index] = view->n_switches++;
}

/* Add an edge that is cabled to one of the switches and not completely up. */
static void take_edge(struct view *view, uint32_t index)
{
    const struct fab_inventory *inv = view->inv;
    const struct fab_port *port = &inv->ports[index];
    if (inv->nodes[port->node].kind == FAB_SWITCH || port->peer == FAB_NONE ||
        view->at[inv->ports[port->peer].node] == FAB_NONE ||
        (port->state == FAB_PORT_ACTIVE && port->lid != 0))
        return;
    view->edges[view->n_edges++] = (struct view_edge){.port = index, .lid = port->lid, .state = port->state};
}

int view_new(const struct fab_inventory *inv, uint64_t own_guid, struct view *view, struct fab_err *err)
{
    uint32_t n_signs = 0;
    *view = (struct view){.inv = inv, .own = find_own(inv, own_guid)};
    if (view->own == FAB_NONE)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                        "ibnetdisc: this host's port 0x%016jx has no cable in the last inventory",
                        (uintmax_t)own_guid);
    if (port_info_reserve(view) != PMIXFAB_OK) {
        view_free(view);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "ibnetdisc: out of memory for %u nodes", inv->n_nodes);
    }
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        take_switch(view, i, &n_signs);
    for (uint32_t i = 0; i < inv->n_ports; i++)
        take_edge(view, i);
    const uint32_t part = view_sweep_cost(inv) / PART;
    view->budget = part > view->n_switches + LEAST_BUDGET ? part - view->n_switches : LEAST_BUDGET;
    view_route(view);
    return PMIXFAB_OK;
}

/* ---- routes --------------------------------------------------------------------------------------- */

/* Return whether the cable at this port is still there, as of its switch's last answer. */
static bool link_up(const struct view *view, uint32_t port)
{
    const struct fab_port *p = &view->inv->ports[port];
    const uint32_t at = view->at[p->node];
    return at == FAB_NONE || view->signs[view->switches[at].first_sign + p->num] != 0;
}

static void port_reach(struct view *view, uint32_t port, uint32_t *tail)
{
    const uint32_t peer = view->inv->ports[port].peer;
    if (peer == FAB_NONE)
        return;
    const uint32_t node = view->inv->ports[peer].node;
    if (view->at[node] == FAB_NONE || view->up[node] != FAB_NONE || !link_up(view, port) ||
        !link_up(view, peer))
        return;
    view->up[node] = port;
    view->queue[(*tail)++] = node;
}

void view_route(struct view *view)
{
    uint32_t head = 0, tail = 0;
    memset(view->up, 0xff, view->inv->n_nodes * sizeof(*view->up));
    port_reach(view, view->own, &tail);
    while (head < tail) {
        const uint32_t at = view->queue[head++];
        const struct fab_node *node = &view->inv->nodes[at];
        if (view->switches[view->at[at]].avoid)
            continue;
        for (uint32_t i = node->first_port; i < node->first_port + node->n_ports; i++)
            port_reach(view, i, &tail);
    }
    view->moved = false;
}

bool view_path(const struct view *view, uint32_t node, struct smp_path *path)
{
    uint8_t back[sizeof(path->p)];
    size_t n = 0;
    path->n = 0;
    for (;;) {
        const uint32_t port = view->up[node];
        if (port == FAB_NONE || n == sizeof(back))
            return false;
        back[n++] = view->inv->ports[port].num;
        if (port == view->own)
            break;
        node = view->inv->ports[port].node;
    }
    while (n > 0)
        path->p[path->n++] = back[--n];
    return true;
}

/* ---- answers -------------------------------------------------------------------------------------- */

bool view_answered(struct view *view, uint32_t at, bool bit)
{
    struct view_switch *sw = &view->switches[at];
    const bool is_new = sw->silent || (bit && sw->bit == 0);
    sw->suspect |= sw->silent || (bit && sw->bit != 1);
    sw->silent = sw->avoid = false;
    sw->bit = bit;
    return is_new;
}

bool view_link_down(struct view *view, uint32_t at)
{
    const bool is_new = !view->switches[at].silent;
    view->switches[at].silent = true;
    return is_new;
}

bool view_port(struct view *view, uint32_t at, unsigned num, const uint8_t info[ATTRIBUTE_SIZE])
{
    struct port_info now;
    port_info_decode(info, NULL, false, &now);
    uint32_t *sign = &view->signs[view->switches[at].first_sign + num];
    const uint32_t is = sign_of(now.link_up, now.state, now.width);
    if (*sign == is)
        return false;
    view->moved |= (*sign == 0) != (is == 0);
    *sign = is;
    return true;
}

bool view_edge(struct view *view, uint32_t edge, const uint8_t info[ATTRIBUTE_SIZE])
{
    struct port_info now;
    struct view_edge *e = &view->edges[edge];
    port_info_decode(info, NULL, false, &now);
    if (e->state == now.state && e->lid == now.lid)
        return false;
    e->state = now.state;
    e->lid = now.lid;
    return true;
}

/* ---- the subnet manager ---------------------------------------------------------------------------- */

#define AT_REST 16u /* packets between two light sweeps that are no sweep */

bool view_manager(struct view *view, uint32_t count, bool dirty)
{
    const uint32_t sent = count - view->acted_last;
    const bool another = view->manager && count < view->acted_last;
    const bool first = !view->manager, before = view->dirty;
    view->acted_last = count;
    view->manager = true;
    view->dirty = dirty;
    if (first || another) { /* its work may be for changes before this view */
        view->busy = view->explained = true;
        view->acted = 0;
        return another;
    }
    if (!view->busy && sent > AT_REST) {
        view->explained = before;
        view->acted = 0;
        view->busy = true;
    }
    if (!view->busy)
        return false;
    view->acted += sent;
    view->explained |= dirty;
    if (sent > AT_REST)
        return false;
    view->busy = false;
    /* its usual round every few seconds is at most one request to each node */
    return !view->explained && view->acted > (view->n_switches + view->inv->n_nodes) * 3 / 2;
}

bool view_manager_path(const struct view *view, uint16_t lid, struct smp_path *path)
{
    const struct fab_inventory *inv = view->inv;
    path->n = 0;
    if (lid == 0)
        return false;
    for (uint32_t i = 0; i < view->n_switches; i++)
        if (inv->nodes[view->switches[i].node].lid == lid)
            return view_path(view, view->switches[i].node, path);
    for (uint32_t i = 0; i < inv->n_ports; i++) {
        const struct fab_port *port = &inv->ports[i];
        if (port->lid != lid || port->subnet != inv->ports[view->own].subnet || port->peer == FAB_NONE)
            continue;
        const struct fab_port *peer = &inv->ports[port->peer];
        return i == view->own || (view->at[peer->node] != FAB_NONE && view_path(view, peer->node, path) &&
                                  smp_path_extend(path, peer->num));
    }
    return false;
}

/* ---- next requests -------------------------------------------------------------------------------- */

/* The reason to read a switch's ports. */
enum pick { PICK_ANY, PICK_SUSPECT, PICK_UNSETTLED, PICK_SET };

/* While the bit is set, it cannot report another change: without a subnet manager it stays set. */
static bool is_picked(const struct view_switch *sw, enum pick why)
{
    return why == PICK_SUSPECT     ? sw->suspect
           : why == PICK_UNSETTLED ? sw->unsettled
           : why == PICK_SET       ? sw->bit == 1
                                   : true;
}

static uint32_t take_where(const struct view *view, enum pick why, bool *taken, uint32_t *list, uint32_t n,
                           uint32_t *cost)
{
    for (uint32_t k = 0; k < view->n_switches && *cost < view->budget; k++) {
        const uint32_t i = (view->next + k) % view->n_switches;
        const struct view_switch *sw = &view->switches[i];
        if (taken[i] || sw->silent || !is_picked(sw, why))
            continue;
        taken[i] = true;
        list[n++] = i;
        *cost += view->inv->nodes[sw->node].num_ports;
    }
    return n;
}

uint32_t view_pick(struct view *view, bool others, uint32_t *list)
{
    uint32_t cost = 0, n = 0;
    if (view->n_switches == 0)
        return 0;
    bool *taken = calloc(view->n_switches, sizeof(*taken));
    if (taken == NULL)
        return 0; /* next time */
    n = take_where(view, PICK_SUSPECT, taken, list, n, &cost);
    for (uint32_t i = 0; i < n; i++)
        view->switches[list[i]].suspect = false;
    const uint32_t before = n;
    if (others) {
        static const enum pick turns[] = {PICK_UNSETTLED, PICK_SET, PICK_ANY};
        for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
            cost /= 2; /* so that many set bits do not block the others */
            n = take_where(view, turns[i], taken, list, n, &cost);
        }
    }
    if (n > before)
        view->next = (list[n - 1] + 1) % view->n_switches;
    free(taken);
    return n;
}

uint32_t view_pick_edges(struct view *view, uint32_t *list)
{
    uint32_t n = view->n_edges < view->budget / 2 ? view->n_edges : view->budget / 2;
    for (uint32_t i = 0; i < n; i++)
        list[i] = (view->next_edge + i) % view->n_edges;
    if (view->n_edges > 0)
        view->next_edge = (view->next_edge + n) % view->n_edges;
    return n;
}
