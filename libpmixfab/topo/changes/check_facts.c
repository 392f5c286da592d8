/* check_facts.c - what hosts say of their devices, against each other and against the sweep. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/changes/finding.h"

/* What is believed of a port; NULL: nothing is known. */
static const struct fab_detail *check_chosen_fact(const struct check *c, uint32_t port, enum fab_fact kind)
{
    const struct fab_details *details = c->details;
    for (uint32_t f = details->first[port]; f < details->first[port + 1]; f++)
        if (details->facts[f].kind == kind && (details->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
            return &details->facts[f];
    return NULL;
}

static const char *check_fact_text(const struct check *c, uint32_t port, enum fab_fact kind)
{
    const struct fab_detail *fact = check_chosen_fact(c, port, kind);
    return fact == NULL ? NULL : c->details->pool + fact->text;
}

static bool check_port_is_hca(const struct check *c, uint32_t port)
{
    return c->inv->nodes[c->inv->ports[port].node].kind == FAB_HCA;
}

/* ---- who sees what --------------------------------------------------------------------------------- */

static int check_compare_texts(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;
    return strcmp(*a, *b);
}

/* Does this host tell of any device? `reporters` is sorted. */
static bool check_is_reporter(const char *const *reporters, uint32_t n, const char *host)
{
    return n > 0 && bsearch(&host, reporters, n, sizeof(*reporters), check_compare_texts) != NULL;
}

static void tell_one_sided(struct check *c, uint32_t p, enum fab_check_kind kind)
{
    const struct fab_port *port = &c->inv->ports[p];
    char where[FAB_PORT_TEXT], at[FAB_PORT_TEXT] = "?";
    fab_port_text(c->inv, port, where);
    if (port->peer != FAB_NONE)
        fab_port_text(c->inv, &c->inv->ports[port->peer], at);
    if (kind == FAB_CHECK_NOT_SWEPT)
        check_add(c, kind, fab_about_port(c->inv, port), where,
                  "its host says that it is up, and no sweep sees it");
    else
        check_add(c, kind, fab_about_port(c->inv, port), where,
                  "it is at %s, and its host, which reports, does not know of it", at);
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
            tell_one_sided(c, p, FAB_CHECK_NOT_SWEPT);
        if (seen == FAB_SEEN_SUBNET && port->peer != FAB_NONE && !fab_port_is_missing(inv, port) &&
            check_is_reporter(reporters, n, fab_str(inv, inv->nodes[port->node].host)))
            tell_one_sided(c, p, FAB_CHECK_NOT_REPORTED);
    }
    free(reporters);
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
    char where[FAB_PORT_TEXT], what[CHECK_WHAT_TEXT] = "", value[64];
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
    struct fab_about about = fab_about_port(c->inv, &c->inv->ports[p]);
    fab_port_text(c->inv, &c->inv->ports[p], where);
    about.text = fab_fact_name(kind);
    check_add(c, FAB_CHECK_CONFLICT, about, where, "%s: %s", fab_fact_name(kind), what);
}

/* ---- slots ----------------------------------------------------------------------------------------- */

/* What of a link's nominal rate are data: below FDR a fifth of it is the code on the line. */
static uint64_t data_rate(const struct fab_port *port)
{
    uint64_t mbps = fab_rate_mbps(port->width, port->speed);
    return port->speed <= FAB_QDR ? mbps * 8 / 10 : mbps;
}

/* Of a card with several ports, the first that is too fast. */
static void check_slot(struct check *c, const struct fab_node *node)
{
    const struct fab_inventory *inv = c->inv;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        const char *text = check_fact_text(c, p, FAB_FACT_SLOT_SPEED);
        uint64_t slot = text == NULL ? 0 : strtoull(text, NULL, 10);
        char where[FAB_NODE_TEXT], has[32], needs[32];
        if (slot == 0 || port->peer == FAB_NONE || slot >= data_rate(port))
            continue;
        fab_node_text(inv, node, where);
        check_rate_text(slot, has);
        check_rate_text(data_rate(port), needs);
        check_add(c, FAB_CHECK_SLOW_SLOT, check_about_state(fab_about_node(node), slot), where,
                  "its PCI slot has %s, the link of port %u %s", has, port->num, needs);
        return;
    }
}

/* ---- firmware -------------------------------------------------------------------------------------- */

static void on_odd_firmware(struct check *c, const struct check_vote *odd, const struct check_usual *usual,
                            void *cbdata)
{
    uint32_t p = odd->index;
    const char *part = check_fact_text(c, p, FAB_FACT_PART);
    const char *firmware = check_fact_text(c, p, FAB_FACT_FIRMWARE);
    const struct fab_node *node = &c->inv->nodes[c->inv->ports[p].node];
    char where[FAB_NODE_TEXT];
    (void)cbdata;
    fab_node_text(c->inv, node, where);
    check_add(c, FAB_CHECK_FIRMWARE,
              check_about_state(fab_about_node(node), check_hash(firmware, strlen(firmware), 0)), where,
              "%s; %u of %u %s have %s", firmware, usual->n, usual->of, part != NULL ? part : "of its part",
              c->details->pool + usual->value);
}

/* The pool has each text once: two are equal where their offsets are. */
static bool vote_firmware(const struct check *c, uint32_t p, struct check_vote *vote)
{
    const struct fab_detail *firmware = check_chosen_fact(c, p, FAB_FACT_FIRMWARE);
    const struct fab_detail *part = check_chosen_fact(c, p, FAB_FACT_PART_ID);
    const struct fab_detail *vendor = check_chosen_fact(c, p, FAB_FACT_VENDOR_ID);
    const struct fab_detail *name = check_chosen_fact(c, p, FAB_FACT_PART);
    if (firmware == NULL || (part == NULL && name == NULL))
        return false;
    const uint32_t key[3] = {vendor == NULL ? 0 : vendor->text, part == NULL ? 0 : part->text,
                             name == NULL ? 0 : name->text};
    *vote = (struct check_vote){
        .group = check_hash((const char *)key, sizeof(key), 1), .value = firmware->text, .index = p};
    return true;
}

/* A vote for each card. */
static void check_firmware(struct check *c)
{
    const struct fab_inventory *inv = c->inv;
    struct check_vote *votes = check_array(c, inv->n_nodes, sizeof(*votes));
    uint32_t n = 0;
    for (uint32_t i = 0; votes != NULL && i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        bool voted = node->kind != FAB_HCA;
        for (uint32_t p = node->first_port; !voted && p < node->first_port + node->n_ports; p++)
            voted = vote_firmware(c, p, &votes[n]);
        n += voted && node->kind == FAB_HCA;
    }
    check_count(c, votes, n, on_odd_firmware, NULL);
    free(votes);
}

void check_facts(struct check *c)
{
    if (c->details == NULL || c->rc != PMIXFAB_OK)
        return;
    check_seen(c);
    for (uint32_t n = 0; n < c->inv->n_nodes; n++) {
        const struct fab_node *node = &c->inv->nodes[n];
        if (node->kind != FAB_HCA)
            continue;
        check_slot(c, node);
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            check_conflict(c, p, FAB_FACT_STATE);
            check_conflict(c, p, FAB_FACT_SPEED);
        }
    }
    check_firmware(c);
}
