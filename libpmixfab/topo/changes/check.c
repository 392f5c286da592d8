/*
 * check.c - run all checks. The file has the checks of cables and ports (down, not active, nothing behind
 * them). It also compares host reports with each other and with the sweep.
 */
#include <stdio.h>
#include <stdlib.h>

#include "topo/changes/changes_private.h"

/*
 * ---- missing nodes and cables ----------------------------------------------------------------------------
 */

/*
 * Return whether the node is missing because the switch ports at its cables are switched off. Then those
 * ports are reported instead.
 */
static bool is_switched_off(const struct fab_inventory *inv, const struct fab_node *node)
{
    uint32_t off = 0, cables = 0;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const uint32_t peer = inv->ports[p].peer;
        cables += peer != FAB_NONE;
        off += peer != FAB_NONE && inv->ports[peer].state == FAB_PORT_DISABLED;
    }
    return cables > 0 && off == cables;
}

static void add_missing_nodes(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t n = 0; n < inv->n_nodes; n++) {
        const struct fab_node *node = &inv->nodes[n];
        char cable[FAB_LINK_TEXT] = "";
        uint32_t cables = 0;
        if (!node->missing || is_switched_off(inv, node))
            continue;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            if (inv->ports[p].peer != FAB_NONE && cables++ == 0)
                fab_port_text(inv, &inv->ports[inv->ports[p].peer], cable);
        if (cables == 1)
            check_add(c, FAB_CHECK_MISSING, check_at_node(inv, n, 0),
                      "no longer seen; its place is kept at %s", cable);
        else
            check_add(c, FAB_CHECK_MISSING, check_at_node(inv, n, 0),
                      "no longer seen; the places of its %u cables are kept, the first at %s", cables, cable);
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        char cable[FAB_PORT_TEXT];
        if (!inv->ports[p].missing || inv->ports[p].peer == FAB_NONE ||
            inv->ports[inv->ports[p].peer].state == FAB_PORT_DISABLED)
            continue;
        fab_port_text(inv, &inv->ports[inv->ports[p].peer], cable);
        check_add(c, FAB_CHECK_MISSING, check_at_port(inv, p),
                  "its cable is no longer seen; its place is kept at %s", cable);
    }
}

/*
 * ---- ports switched off ---------------------------------------------------------------------------------
 */

/* Add one finding for all ports of a node that are in this state and have no cable. */
static void add_ports_of_node(struct check *c, const struct fab_inventory *inv, uint32_t n_node,
                              enum fab_port_state state, enum fab_check_kind kind, const char *words)
{
    const struct fab_node *node = &inv->nodes[n_node];
    uint64_t which = 0;
    char list[400] = "";
    size_t used = 0;
    uint32_t n = 0;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->state != state || port->peer != FAB_NONE)
            continue;
        if (used + 8 < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%u", n > 0 ? ", " : "", port->num);
        which = which * 31 + port->num;
        n++;
    }
    if (n > 0)
        check_add(c, kind, check_at_node(inv, n_node, which), "%u port%s %s: %s", n, n == 1 ? " is" : "s are",
                  words, list);
}

static void check_disabled_ports(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t n = 0; n < inv->n_nodes; n++)
        add_ports_of_node(c, inv, n, FAB_PORT_LOOPED, FAB_CHECK_SELF_CABLE, "cabled to the same node");
    for (uint32_t n = 0; n < c->whole->n_nodes; n++) /* those of a lost cable are reported with the cable */
        if (c->whole->nodes[n].kind == FAB_SWITCH)   /* some sites switch off all unused ports */
            add_ports_of_node(c, c->whole, n, FAB_PORT_DISABLED, FAB_CHECK_DISABLED_PORTS, "disabled");
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        char behind[FAB_PORT_TEXT];
        if (port->state != FAB_PORT_DISABLED || port->peer == FAB_NONE)
            continue;
        fab_port_text(inv, &inv->ports[port->peer], behind);
        check_add(c, FAB_CHECK_PORT_DISABLED, check_at_port(inv, p),
                  "it is switched off (physical state Disabled); %s is behind it", behind);
    }
}

/* ---- states ---------------------------------------------------------------------------------------- */

static bool is_inactive(const struct fab_port *port)
{
    return port->state == FAB_PORT_INIT || port->state == FAB_PORT_ARMED;
}

/* Check a cable, given by its lower end. */
static void check_state(struct check *c, uint32_t p, bool managed)
{
    const struct fab_port *port = &c->inv->ports[p], *peer = &c->inv->ports[port->peer];
    bool down = port->state == FAB_PORT_DOWN || peer->state == FAB_PORT_DOWN;
    bool inactive = is_inactive(port) || is_inactive(peer);
    const struct fab_port *first = (down ? port->state == FAB_PORT_DOWN : is_inactive(port)) ? port : peer;
    char end[FAB_PORT_TEXT];
    if (fab_port_is_missing(c->inv, port) || (!down && (!inactive || !managed)))
        return;
    fab_port_text(c->inv, first, end);
    check_add(c, down ? FAB_CHECK_PORT_DOWN : FAB_CHECK_INACTIVE, check_at_cable(c->inv, p, 0), "%s is %s",
              end, fab_state_text(first->state));
}

static void check_states(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    uint32_t cabled = 0, inactive = 0;
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer == FAB_NONE || !check_is_swept(c, port) || fab_port_is_missing(inv, port))
            continue;
        cabled++;
        inactive += is_inactive(port);
    }
    bool managed = inactive <= cabled / 2;
    if (!managed)
        check_add(c, FAB_CHECK_NO_MANAGER, check_at_name("", "the fabric", 0),
                  "%u of %u cabled ports are not active", inactive, cabled);
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (port->peer != FAB_NONE && p < port->peer && check_is_swept(c, port))
            check_state(c, p, managed);
    }
}

/*
 * Report ports that are up without a peer. Ports known from host reports only are skipped: no switch is seen
 * there.
 */
static void check_nowhere(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t p = 0; inv->n_dangling > 0 && p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        if (!fab_port_dangles(inv, port) || !check_is_swept(c, port))
            continue;
        check_add(c, FAB_CHECK_NOWHERE, check_at_port(inv, p), "%s, but nothing is seen at its other end",
                  port->state == FAB_PORT_UNKNOWN ? "it does not answer" : fab_state_text(port->state));
    }
}

static void check_links(struct check *c)
{
    add_missing_nodes(c);
    check_disabled_ports(c);
    check_states(c);
    check_nowhere(c);
}

/*
 * ---- host reports ---------------------------------------------------------------------------------------
 */

static bool check_port_is_hca(const struct check *c, uint32_t port)
{
    return c->inv->nodes[c->inv->ports[port].node].kind == FAB_HCA;
}

/*
 * ---- devices seen by the sweep or the host only ----------------------------------------------------------
 */

static int check_compare_texts(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;
    return strcmp(*a, *b);
}

/* Return whether this host reports any device. `reporters` is sorted. */
static bool check_is_reporter(const char *const *reporters, uint32_t n, const char *host)
{
    return n > 0 && bsearch(&host, reporters, n, sizeof(*reporters), check_compare_texts) != NULL;
}

static void add_one_sided(struct check *c, uint32_t p, enum fab_check_kind kind)
{
    const struct fab_port *port = &c->inv->ports[p];
    char at[FAB_PORT_TEXT] = "?";
    if (port->peer != FAB_NONE)
        fab_port_text(c->inv, &c->inv->ports[port->peer], at);
    if (kind == FAB_CHECK_NOT_SWEPT)
        check_add(c, kind, check_at_port(c->inv, p), "its host reports it as up, but no sweep sees it");
    else
        check_add(c, kind, check_at_port(c->inv, p),
                  "it is at %s, but the report of its host does not contain it", at);
}

static void check_seen(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    const char **reporters = check_array(c, inv->n_ports, sizeof(const char *));
    uint32_t n = 0;
    bool swept = false;
    for (uint32_t p = 0; reporters != NULL && p < inv->n_ports; p++) {
        swept |= (c->details->seen[p] & FAB_SEEN_SUBNET) != 0;
        if (check_port_is_hca(c, p) && (c->details->seen[p] & FAB_SEEN_NODE) != 0)
            reporters[n++] = fab_str(inv, inv->nodes[inv->ports[p].node].host);
    }
    if (n > 1)
        qsort(reporters, n, sizeof(*reporters), check_compare_texts);
    for (uint32_t p = 0; swept && p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        unsigned seen = c->details->seen[p];
        if (!check_port_is_hca(c, p) || fab_prefix_is_ethernet(inv->subnets[port->subnet].prefix))
            continue;
        if (seen == FAB_SEEN_NODE && fab_port_far(inv, port) == FAB_NONE && fab_state_is_up(port->state))
            add_one_sided(c, p, FAB_CHECK_NOT_SWEPT);
        if (seen == FAB_SEEN_SUBNET && port->peer != FAB_NONE && !fab_port_is_missing(inv, port) &&
            check_is_reporter(reporters, n, fab_str(inv, inv->nodes[port->node].host)))
            add_one_sided(c, p, FAB_CHECK_NOT_REPORTED);
    }
}

/* ---- contradictions -------------------------------------------------------------------------------- */

/* "verbs" or "verbs, ucx" */
static void append_sources(char *text, size_t size, unsigned sources)
{
    const char *between = " (";
    for (int s = 0; s < FAB_SOURCES; s++) {
        size_t len = strlen(text);
        if ((sources >> s & 1) == 0)
            continue;
        snprintf(text + len, size - len, "%s%s", between, fab_source_name((enum fab_source)s));
        between = ", ";
    }
    size_t len = strlen(text);
    snprintf(text + len, size - len, ")");
}

static void check_conflict(struct check *c, uint32_t p, enum fab_fact kind)
{
    const struct fab_details *details = c->details;
    char what[CHECK_WHAT_TEXT] = "", value[64];
    bool conflict = false;
    for (uint32_t f = details->first[p]; f < details->first[p + 1]; f++) {
        const struct fab_detail *fact = &details->facts[f];
        size_t len = strlen(what);
        if (fact->kind != kind || (fact->flags & FAB_DETAIL_ESTIMATE) != 0)
            continue;
        conflict |= (fact->flags & FAB_DETAIL_CONFLICT) != 0;
        snprintf(value, sizeof(value), "%.40s", details->pool + fact->text);
        if (kind == FAB_FACT_SPEED)
            check_rate_text(strtoull(value, NULL, 10), value);
        snprintf(what + len, sizeof(what) - len, "%s%s", len > 0 ? "; " : "", value);
        append_sources(what, sizeof(what), fact->sources);
    }
    if (!conflict)
        return;
    struct check_at at = check_at_port(c->inv, p);
    at.about.text = fab_fact_name(kind);
    check_add(c, FAB_CHECK_CONFLICT, at, "%s: %s", fab_fact_name(kind), what);
}

/* ---- slots ----------------------------------------------------------------------------------------- */

/* Return the part of a link's nominal rate that carries data: below FDR a fifth is line coding. */
static uint64_t data_rate(const struct fab_port *port)
{
    uint64_t mbps = fab_rate_mbps(port->width, port->speed);
    return port->speed <= FAB_QDR ? mbps * 8 / 10 : mbps;
}

/* Check a card: of several ports, report the first one that is too fast for the slot. */
static void check_slot(struct check *c, uint32_t n)
{
    const struct fab_inventory *inv = c->inv;
    const struct fab_node *node = &inv->nodes[n];
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        const char *text = check_fact_text(c, p, FAB_FACT_SLOT_SPEED);
        uint64_t slot = text == NULL ? 0 : strtoull(text, NULL, 10);
        char has[CHECK_RATE_TEXT], needs[CHECK_RATE_TEXT];
        if (slot == 0 || port->peer == FAB_NONE || slot >= data_rate(port))
            continue;
        check_add(c, FAB_CHECK_SLOW_SLOT, check_at_node(inv, n, slot),
                  "its PCI slot has %s, the link of port %u %s", check_rate_text(slot, has), port->num,
                  check_rate_text(data_rate(port), needs));
        return;
    }
}

static void check_facts(struct check *c)
{
    if (c->details == NULL || c->rc != PMIXFAB_OK)
        return;
    check_seen(c);
    for (uint32_t n = 0; n < c->inv->n_nodes; n++) {
        const struct fab_node *node = &c->inv->nodes[n];
        if (node->kind != FAB_HCA)
            continue;
        check_slot(c, n);
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            check_conflict(c, p, FAB_FACT_STATE);
            check_conflict(c, p, FAB_FACT_SPEED);
        }
    }
}

/*
 * ---- all checks -----------------------------------------------------------------------------------------
 */

int fab_check(const struct fab_inventory *inv, const struct fab_details *details, const struct fab_lost *lost,
              struct fab_findings *out)
{
    static void (*const checks[])(struct check *) = {check_links,      check_rates,   check_uplinks,
                                                     check_rails,      check_names,   check_facts,
                                                     check_host_ports, check_firmware};
    struct fab_inventory whole;
    struct check c = {.inv = inv, .details = details, .out = out};
    *out = (struct fab_findings){0};
    if (!inv->finished || (details != NULL && details->n_ports != inv->n_ports))
        return PMIXFAB_ERR_INVAL;
    c.rc = check_put_back(inv, lost, &whole);
    c.whole = whole.finished ? &whole : inv;
    if (c.rc == PMIXFAB_OK)
        c.rc = fab_planes_build(inv, FAB_COST_HOPS, &c.planes, NULL);
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && c.rc == PMIXFAB_OK; i++) {
        checks[i](&c);
        fab_scratch_free(&c.scratch);
    }
    fab_planes_destroy(&c.planes);
    fab_inventory_destroy(&whole);
    if (c.rc != PMIXFAB_OK)
        fab_findings_destroy(out);
    else
        fab_findings_sort(out);
    return c.rc;
}
