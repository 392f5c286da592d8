/*
 * check_uplinks.c - find switches with fewer cables up than their peers, and cables in the wrong rail.
 *
 * A switch's level is its distance from a host: leaves have hosts, spines have leaves below them and may have
 * a few hosts, too (topo/geometry). Peers are the switches of a plane on one level with the same number of
 * ports. Things reported as lost or switched off count as present, so their absence is not reported twice. In
 * a fabric where every switch has hosts (a torus, a dragonfly) nothing is above anything, and nothing is
 * found.
 */
#include <stdio.h>
#include <stdlib.h>

#include "topo/changes/changes_private.h"
#include "topo/plane/geometry.h"
#include "topo/plane/units.h"

#define NAMED 4 /* upper switches named in one finding */

/* The number that is compared: cables upwards, or switches above. */
enum counted { CABLES, ABOVE };

/* One plane. */
struct climb {
    const struct fab_plane *plane;
    uint8_t *level;  /* of each switch */
    uint32_t *queue; /* room for each switch */
    struct low {     /* of each switch: the number that is too low; of 0: none is */
        struct fewer {
            struct check_usual usual;
            uint32_t has;
        } fewer[2];   /* by enum counted */
        uint32_t few; /* switches above that have fewer cables to it than to others */
        uint32_t few_to[NAMED];
        uint32_t few_has[NAMED], few_usual[NAMED];
    } * low;
    uint32_t *seen; /* of each switch: scratch */
};

/* Return whether a switch is above another one. Without hosts all levels are 0. */
static bool is_above(const struct climb *climb, uint32_t to, uint32_t from)
{
    return climb->level[to] == climb->level[from] + 1;
}

static uint64_t peers_of(const struct check *c, const struct climb *climb, uint32_t s)
{
    return (uint64_t)climb->level[s] << 8 | c->whole->nodes[climb->plane->switches[s].node].num_ports;
}

/* ---- counting -------------------------------------------------------------------------------------- */

/* Note that a switch has fewer cables to one above than others have. `edge` is from the lower switch. */
static void note_few_to(struct climb *climb, const struct check_vote *edge)
{
    uint32_t from = 0;
    for (uint32_t s = 0; s < climb->plane->n_switches; s++)
        if (climb->plane->switches[s].adj_first <= edge->index && climb->plane->switches[s].n_adj > 0)
            from = s;
    struct low *low = &climb->low[from];
    if (low->few < NAMED) {
        low->few_to[low->few] = climb->plane->adj[edge->index].to;
        low->few_has[low->few] = (uint32_t)edge->value;
        low->few_usual[low->few] = (uint32_t)edge->usual.value;
    }
    low->few++;
}

static void count_edges(const struct check *c, struct climb *climb, struct check_vote *votes)
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
    check_count(votes, n);
    for (uint32_t i = 0; i < n; i++)
        if (check_is_odd(&votes[i]) && votes[i].value < votes[i].usual.value)
            note_few_to(climb, &votes[i]);
}

/*
 * Count. A switch with nothing above it, on a level where others have something, is a spine with a host of
 * its own.
 */
static void count_switches(const struct check *c, struct climb *climb, struct check_vote *votes,
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
    check_count(votes, n);
    for (uint32_t i = 0; i < n; i++)
        if (check_is_odd(&votes[i]) && votes[i].value < votes[i].usual.value)
            climb->low[votes[i].index].fewer[counted] =
                (struct fewer){votes[i].usual, (uint32_t)votes[i].value};
}

/* ---- findings ------------------------------------------------------------------------------------ */

/* Append the name of a switch to a text that may be full. */
static void append_switch(const struct check *c, const struct fab_plane *plane, uint32_t s,
                          const char *before, const char *behind, char text[CHECK_WHAT_TEXT])
{
    const size_t len = strlen(text);
    char name[FAB_NODE_TEXT];
    fab_node_text(c->whole, &c->whole->nodes[plane->switches[s].node], name);
    snprintf(text + len, CHECK_WHAT_TEXT - len, "%s%s%s", before, name, behind);
}

/*
 * Name the switches above that most of its peers below one common switch are cabled to, but this one is not.
 */
static void name_missing(const struct check *c, struct climb *climb, uint32_t s, char text[CHECK_WHAT_TEXT])
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
        if (climb->seen[u] > n / 2 && is_above(climb, u, s))
            append_switch(c, plane, u, named++ == 0 ? "; none to " : ", ", "", text);
    }
}

/* Return a number for each combination of counts that are too low. */
static uint64_t uplinks_state(const struct low *low)
{
    uint64_t state = (uint64_t)low->fewer[CABLES].has << 16 | low->fewer[ABOVE].has;
    for (uint32_t i = 0; i < low->few && i < NAMED; i++)
        state = state * 31 + low->few_has[i];
    return state * 31 + low->few;
}

/* Count its cables upwards that are lost and count as present. */
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

static void add_few_uplinks(struct check *c, struct climb *climb, uint32_t s)
{
    const struct fab_plane *plane = climb->plane;
    const struct low *low = &climb->low[s];
    const struct fewer *cables = &low->fewer[CABLES], *above = &low->fewer[ABOVE];
    const uint32_t node = plane->switches[s].node;
    char what[CHECK_WHAT_TEXT] = "", number[96];
    if ((cables->usual.of == 0 && above->usual.of == 0 && low->few == 0) ||
        fab_inventory_find(c->inv, c->whole->nodes[node].guid) == FAB_NONE) /* it is lost itself */
        return;
    if (cables->usual.of > 0)
        snprintf(what, sizeof(what), "%u cable%s up, %u of %u such switches have %u", cables->has,
                 cables->has == 1 ? "" : "s", cables->usual.n, cables->usual.of,
                 (unsigned)cables->usual.value);
    else if (above->usual.of > 0)
        snprintf(what, sizeof(what), "cables to %u switch%s above, %u of %u such switches to %u", above->has,
                 above->has == 1 ? "" : "es", above->usual.n, above->usual.of, (unsigned)above->usual.value);
    for (uint32_t i = 0; i < low->few && i < NAMED; i++) {
        snprintf(number, sizeof(number), ": %u of the usual %u", low->few_has[i], low->few_usual[i]);
        append_switch(c, plane, low->few_to[i], what[0] != '\0' ? "; to " : "to ", number, what);
    }
    if (above->usual.of > 0)
        name_missing(c, climb, s, what);
    const uint32_t lost = count_put_back(c, climb, s);
    snprintf(number, sizeof(number), "counting %u that %s lost or switched off: ", lost,
             lost == 1 ? "is" : "are");
    check_add(c, FAB_CHECK_FEW_UPLINKS, check_at_node(c->whole, node, uplinks_state(low)), "%s%s",
              lost > 0 ? number : "", what);
}

static void check_plane(struct check *c, const struct fab_plane *plane)
{
    struct climb climb = {.plane = plane};
    climb.level = check_array(c, plane->n_switches, sizeof(*climb.level));
    climb.queue = check_array(c, plane->n_switches, sizeof(*climb.queue));
    climb.seen = check_array(c, plane->n_switches, sizeof(*climb.seen));
    climb.low = check_array(c, plane->n_switches, sizeof(*climb.low));
    struct check_vote *votes = check_array(c, plane->n_adj + plane->n_switches, sizeof(*votes));
    if (c->rc == PMIXFAB_OK)
        c->rc = fab_geometry_levels(plane, climb.level);
    if (c->rc == PMIXFAB_OK) {
        count_switches(c, &climb, votes, CABLES);
        count_switches(c, &climb, votes, ABOVE);
        count_edges(c, &climb, votes);
        for (uint32_t s = 0; s < plane->n_switches; s++)
            add_few_uplinks(c, &climb, s);
    }
    fab_scratch_free(&c->scratch);
}

/* Skip Ethernet: only the neighbours' reports are known, and they may be incomplete. */
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

/* ---- rails ------------------------------------------------------------------------------------------ */

static void add_wrong_rail(struct check *c, const struct fab_plane *plane, const struct fab_stray *stray)
{
    const struct fab_inventory *inv = c->inv;
    const struct fab_device *device = &plane->devices[stray->device];
    const struct fab_port *port = &inv->ports[device->port];
    if (port->peer == FAB_NONE)
        return;
    struct check_at at = check_at_port(inv, device->port);
    at.about.state = inv->nodes[plane->switches[device->sw].node].guid;
    fab_link_text(inv, port, at.where);
    char leaf[FAB_NODE_TEXT];
    if (stray->sw == FAB_NONE) {
        check_add(c, FAB_CHECK_WRONG_RAIL, at,
                  "a leaf of another unit than those of its host's other devices");
        return;
    }
    fab_node_text(inv, &inv->nodes[plane->switches[stray->sw].node], leaf);
    check_add(c, FAB_CHECK_WRONG_RAIL, at, "most %s of its unit's hosts are on %s",
              fab_str(inv, inv->nodes[port->node].name), leaf);
}

void check_rails(struct check *c)
{
    for (uint32_t p = 0; p < c->planes.n && c->rc == PMIXFAB_OK; p++) {
        struct fab_units units;
        c->rc = fab_units_find(&c->planes.planes[p], &units);
        for (uint32_t i = 0; c->rc == PMIXFAB_OK && i < units.n_strays; i++)
            add_wrong_rail(c, &c->planes.planes[p], &units.strays[i]);
        fab_units_destroy(&units);
    }
}
