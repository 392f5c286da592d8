/*
 * check_uplinks.c - switches that have fewer cables up than their peers.
 *
 * A switch's level is how far it is from a host: leaves have hosts, spines have leaves below them, and may
 * have a few hosts, too (topo/geometry). Peers are the switches of a plane that stand on one level and have
 * as many ports. What is told as lost or switched off counts as if it were there: its absence is no second
 * finding. In a fabric where every switch has hosts (a torus, a dragonfly) nothing is above anything, and
 * nothing is found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/changes/finding.h"
#include "topo/plane/geometry.h"

#define NAMED 4 /* switches above that one finding names */

/* One plane. */
struct climb {
    const struct fab_plane *plane;
    uint8_t *level;  /* of each switch */
    uint32_t *queue; /* room for each switch */
    struct low {     /* of each switch: what it has less of than is usual; of 0: of nothing */
        struct fewer {
            struct check_usual usual;
            uint32_t has;
        } fewer[2];   /* by enum counted */
        uint32_t few; /* so many switches above have fewer cables to it than to others */
        uint32_t few_to[NAMED];
        uint32_t few_has[NAMED], few_usual[NAMED];
    } * low;
    uint32_t *seen;                         /* of each switch: scratch */
    enum counted { CABLES, ABOVE } counted; /* what is being counted: cables upwards, or switches above */
};

/* Without a host all are 0, and nothing is above. */
static bool is_above(const struct climb *climb, uint32_t to, uint32_t from)
{
    return climb->level[to] == climb->level[from] + 1;
}

static uint64_t peers_of(const struct check *c, const struct climb *climb, uint32_t s)
{
    return (uint64_t)climb->level[s] << 8 | c->whole->nodes[climb->plane->switches[s].node].num_ports;
}

/* ---- counting -------------------------------------------------------------------------------------- */

static void on_odd_count(struct check *c, const struct check_vote *odd, const struct check_usual *usual,
                         void *cbdata)
{
    struct climb *climb = cbdata;
    (void)c;
    if (odd->value < usual->value)
        climb->low[odd->index].fewer[climb->counted] = (struct fewer){*usual, (uint32_t)odd->value};
}

/* index is of the edge, from the lower switch. */
static void on_odd_edge(struct check *c, const struct check_vote *odd, const struct check_usual *usual,
                        void *cbdata)
{
    struct climb *climb = cbdata;
    uint32_t from = 0;
    (void)c;
    if (odd->value > usual->value)
        return;
    for (uint32_t s = 0; s < climb->plane->n_switches; s++)
        if (climb->plane->switches[s].adj_first <= odd->index && climb->plane->switches[s].n_adj > 0)
            from = s;
    struct low *low = &climb->low[from];
    if (low->few < NAMED) {
        low->few_to[low->few] = climb->plane->adj[odd->index].to;
        low->few_has[low->few] = (uint32_t)odd->value;
        low->few_usual[low->few] = (uint32_t)usual->value;
    }
    low->few++;
}

static void count_edges(struct check *c, struct climb *climb, struct check_vote *votes)
{
    const struct fab_plane *plane = climb->plane;
    uint32_t n = 0;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        const struct fab_vertex *sw = &plane->switches[s];
        for (uint32_t k = sw->adj_first; k < sw->adj_first + sw->n_adj; k++)
            if (is_above(climb, plane->adj[k].to, s))
                votes[n++] = (struct check_vote){.group = (uint64_t)plane->adj[k].to << 8 |
                                                          c->whole->nodes[sw->node].num_ports,
                                                 .value = plane->adj[k].cables,
                                                 .index = k};
    }
    check_count(c, votes, n, on_odd_edge, climb);
}

/* A switch that has nothing above it, on a level where others have, is a spine with a host of its own. */
static void count_switches(struct check *c, struct climb *climb, struct check_vote *votes,
                           enum counted counted)
{
    const struct fab_plane *plane = climb->plane;
    uint32_t n = 0;
    for (uint32_t s = 0; s < plane->n_switches; s++) {
        const struct fab_vertex *sw = &plane->switches[s];
        uint32_t count = 0;
        for (uint32_t k = sw->adj_first; k < sw->adj_first + sw->n_adj; k++)
            if (is_above(climb, plane->adj[k].to, s))
                count += counted == CABLES ? plane->adj[k].cables : 1;
        if (count > 0)
            votes[n++] = (struct check_vote){.group = peers_of(c, climb, s), .value = count, .index = s};
    }
    climb->counted = counted;
    check_count(c, votes, n, on_odd_count, climb);
}

/* ---- telling --------------------------------------------------------------------------------------- */

/* Append to a text that may be full. */
static void uplink_text_append(char *text, size_t size, const char *a, const char *b, const char *c)
{
    size_t len = strlen(text);
    snprintf(text + len, size - len, "%s%s%s", a, b, c);
}

/* Switches above that most of those have that have one of the same above them, and this one has not. */
static void name_absent(const struct check *c, struct climb *climb, uint32_t s, char *text, size_t size)
{
    const struct fab_plane *plane = climb->plane;
    uint32_t *siblings = climb->queue, n = 0, named = 0;
    memset(climb->seen, 0, plane->n_switches * sizeof(*climb->seen));
    const struct fab_vertex *sw = &plane->switches[s];
    for (uint32_t k = sw->adj_first; k < sw->adj_first + sw->n_adj; k++) {
        const struct fab_vertex *up = &plane->switches[plane->adj[k].to];
        if (!is_above(climb, plane->adj[k].to, s))
            continue;
        for (uint32_t j = up->adj_first; j < up->adj_first + up->n_adj; j++) {
            uint32_t sibling = plane->adj[j].to;
            if (climb->level[sibling] == climb->level[s] && climb->seen[sibling]++ == 0)
                siblings[n++] = sibling;
        }
    }
    memset(climb->seen, 0, plane->n_switches * sizeof(*climb->seen));
    for (uint32_t i = 0; i < n; i++) {
        const struct fab_vertex *sibling = &plane->switches[siblings[i]];
        for (uint32_t k = sibling->adj_first; k < sibling->adj_first + sibling->n_adj; k++)
            climb->seen[plane->adj[k].to]++;
    }
    for (uint32_t k = sw->adj_first; k < sw->adj_first + sw->n_adj; k++)
        climb->seen[plane->adj[k].to] = 0;
    for (uint32_t u = 0; u < plane->n_switches && named < NAMED; u++) {
        char name[FAB_NODE_TEXT];
        if (climb->seen[u] <= n / 2 || !is_above(climb, u, s))
            continue;
        fab_node_text(c->whole, &c->whole->nodes[plane->switches[u].node], name);
        uplink_text_append(text, size, named++ == 0 ? "; none to " : ", ", name, "");
    }
}

/* Each count that is less than is usual. */
static uint64_t uplinks_state(const struct low *low)
{
    uint64_t state = (uint64_t)low->fewer[CABLES].has << 16 | low->fewer[ABOVE].has;
    for (uint32_t i = 0; i < low->few && i < NAMED; i++)
        state = state * 31 + low->few_has[i];
    return state * 31 + low->few;
}

/* Its cables upwards that only the whole fabric has. */
static uint32_t count_put_back(const struct check *c, const struct climb *climb, uint32_t s)
{
    const struct fab_plane *plane = climb->plane;
    const struct fab_inventory *whole = c->whole;
    const struct fab_vertex *sw = &plane->switches[s];
    const struct fab_node *node = &whole->nodes[sw->node];
    const uint32_t here = fab_inventory_find(c->inv, node->guid);
    uint32_t n = 0;
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports && whole != c->inv; p++) {
        const uint32_t port = fab_inventory_port(c->inv, here, whole->ports[p].num);
        if (whole->ports[p].peer == FAB_NONE || (port != FAB_NONE && c->inv->ports[port].peer != FAB_NONE))
            continue;
        const uint32_t far = whole->ports[whole->ports[p].peer].node;
        for (uint32_t k = sw->adj_first; k < sw->adj_first + sw->n_adj; k++)
            n += plane->switches[plane->adj[k].to].node == far && is_above(climb, plane->adj[k].to, s);
    }
    return n;
}

static void uplink_add_finding(struct check *c, struct climb *climb, uint32_t s)
{
    const struct fab_plane *plane = climb->plane;
    const struct low *low = &climb->low[s];
    const struct fewer *cables = &low->fewer[CABLES], *above = &low->fewer[ABOVE];
    char where[FAB_NODE_TEXT], what[CHECK_WHAT_TEXT] = "", number[96];
    const struct fab_node *node = &c->whole->nodes[plane->switches[s].node];
    if ((cables->usual.of == 0 && above->usual.of == 0 && low->few == 0) ||
        fab_inventory_find(c->inv, node->guid) == FAB_NONE) /* it is lost itself */
        return;
    if (cables->usual.of > 0)
        snprintf(what, sizeof(what), "%u cable%s up, %u of %u such switches have %u", cables->has,
                 cables->has == 1 ? "" : "s", cables->usual.n, cables->usual.of,
                 (unsigned)cables->usual.value);
    else if (above->usual.of > 0)
        snprintf(what, sizeof(what), "cables to %u switch%s above, %u of %u such switches to %u", above->has,
                 above->has == 1 ? "" : "es", above->usual.n, above->usual.of, (unsigned)above->usual.value);
    for (uint32_t i = 0; i < low->few && i < NAMED; i++) {
        char name[FAB_NODE_TEXT];
        fab_node_text(c->whole, &c->whole->nodes[plane->switches[low->few_to[i]].node], name);
        snprintf(number, sizeof(number), ": %u of the usual %u", low->few_has[i], low->few_usual[i]);
        uplink_text_append(what, sizeof(what), what[0] != '\0' ? "; to " : "to ", name, number);
    }
    if (above->usual.of > 0)
        name_absent(c, climb, s, what, sizeof(what));
    const uint32_t lost = count_put_back(c, climb, s);
    snprintf(number, sizeof(number), "counting %u that %s lost or switched off: ", lost,
             lost == 1 ? "is" : "are");
    fab_node_text(c->whole, node, where);
    check_add(c, FAB_CHECK_FEW_UPLINKS, check_about_state(fab_about_node(node), uplinks_state(low)), where,
              "%s%s", lost > 0 ? number : "", what);
}

static void check_plane(struct check *c, const struct fab_plane *plane)
{
    struct climb climb = {.plane = plane};
    climb.level = check_array(c, plane->n_switches, sizeof(*climb.level));
    climb.queue = check_array(c, plane->n_switches, sizeof(*climb.queue));
    climb.seen = check_array(c, plane->n_switches, sizeof(*climb.seen));
    climb.low = check_array(c, plane->n_switches, sizeof(*climb.low));
    struct check_vote *votes = check_array(c, plane->n_adj + plane->n_switches, sizeof(*votes));
    if (c->rc == PMIXFAB_OK) {
        c->rc = fab_geometry_levels(plane, climb.level);
        count_switches(c, &climb, votes, CABLES);
        count_switches(c, &climb, votes, ABOVE);
        count_edges(c, &climb, votes);
        for (uint32_t s = 0; s < plane->n_switches; s++)
            uplink_add_finding(c, &climb, s);
    }
    free(climb.level);
    free(climb.queue);
    free(climb.seen);
    free(climb.low);
    free(votes);
}

/* Of Ethernet only what neighbours say is known, which may be a part. */
void check_uplinks(struct check *c)
{
    struct fab_planes whole = {NULL, 0};
    const struct fab_planes *planes = &c->planes;
    if (c->whole != c->inv && c->rc == PMIXFAB_OK) {
        c->rc = fab_planes_build(c->whole, FAB_COST_HOPS, &whole, NULL);
        planes = &whole;
    }
    for (uint32_t i = 0; i < planes->n; i++)
        if (!planes->planes[i].unattached && !fab_prefix_is_ethernet(planes->planes[i].prefix))
            check_plane(c, &planes->planes[i]);
    fab_planes_destroy(&whole);
}
