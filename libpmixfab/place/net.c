/* net.c - the switches of a plane as cells, and the loads that messages put on the cables between cells. */
#include "place/place_private.h"

#include <stdlib.h>
#include <string.h>

#include "topo/base/order.h"

/* Up to so many steps, the tables of all switches are computed. */
#define NET_TABLE_WORK UINT64_C(4000000)

/* One direction of a cable between two switches. */
struct net_hop {
    uint32_t to, mbps, link;
    uint8_t port; /* of the switch that it leaves */
    bool b_to_a;
};

/* The cells, in progress. */
struct net_maker {
    struct fab_scratch scratch;
    const struct pmixfab *fab;
    struct fab_net *net;
    uint32_t *start;       /* per switch and past the last one: its hops */
    struct net_hop *hops;  /* */
    uint64_t *mark, *next; /* per switch: equal in a cell */
    uint64_t *sorted;
    uint32_t *of_first; /* per switch: the first spot whose first device is on it; the last: without switch */
    uint32_t *other;    /* per spot: the next such spot */
    uint32_t n_at;
};

static uint64_t net_mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

static uint32_t net_rate(const struct pmixfab *fab, uint32_t mbps)
{
    const uint64_t fastest = fab->meta->fastest_mbps;
    if (mbps != 0)
        return mbps;
    return fastest > 0 && fastest <= UINT32_MAX ? (uint32_t)fastest : 1;
}

/* ---- cells ----------------------------------------------------------------------------------------------
 */

/* A missing switch carries no traffic of others. */
static bool net_is_hop(const struct pmixfab *fab, const struct snap_link *link)
{
    return (link->a & SNAP_END_KIND) == SNAP_END_SWITCH && (link->b & SNAP_END_KIND) == SNAP_END_SWITCH &&
           link->a != link->b && !fab->switches[link->a & ~SNAP_END_KIND].missing &&
           !fab->switches[link->b & ~SNAP_END_KIND].missing;
}

static int net_port_cmp(const void *a, const void *b)
{
    return FAB_ORDER(((const struct net_hop *)a)->port, ((const struct net_hop *)b)->port);
}

/* List the hops of each switch by their ports. */
static void net_hops(struct net_maker *m)
{
    const struct pmixfab *fab = m->fab;

    for (int round = 0; round < 2; round++) {
        for (uint32_t l = fab->meta->n_links; l-- > 0;) {
            const struct snap_link *link = &fab->links[l];
            if (!net_is_hop(fab, link))
                continue;
            const uint32_t a = link->a & ~SNAP_END_KIND, b = link->b & ~SNAP_END_KIND;
            const uint32_t mbps = net_rate(fab, link->mbps);
            if (round == 0) {
                m->start[a]++;
                m->start[b]++;
            } else {
                m->hops[--m->start[a]] = (struct net_hop){b, mbps, l, link->a_port, false};
                m->hops[--m->start[b]] = (struct net_hop){a, mbps, l, link->b_port, true};
            }
        }
        for (uint32_t s = 0; s < fab->meta->n_switches && round == 0; s++)
            m->start[s + 1] += m->start[s];
    }
    for (uint32_t s = 0; s < fab->meta->n_switches; s++)
        qsort(m->hops + m->start[s], m->start[s + 1] - m->start[s], sizeof(*m->hops), net_port_cmp);
}

static int net_mark_cmp(const void *a, const void *b)
{
    return FAB_ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Sort the marks, each once. Return their number. */
static uint32_t net_distinct(struct net_maker *m)
{
    const uint32_t n = m->fab->meta->n_switches;
    uint32_t distinct = 0;

    memcpy(m->sorted, m->mark, n * sizeof(*m->sorted));
    qsort(m->sorted, n, sizeof(*m->sorted), net_mark_cmp);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || m->sorted[i] != m->sorted[distinct - 1])
            m->sorted[distinct++] = m->sorted[i];
    return distinct;
}

/* Give switches different marks until those with one mark have equally many cables to each mark. */
static uint32_t net_refine(struct net_maker *m)
{
    const struct pmixfab *fab = m->fab;
    uint32_t n = 0, before;

    for (uint32_t s = 0; s < fab->meta->n_switches; s++)
        m->mark[s] = m->net->single ? s : fab->switches[s].missing ? net_mix(s + 1) : 0;
    if (m->net->single)
        return net_distinct(m);
    for (uint32_t d = 0; d < fab->meta->n_devices; d++)
        if (fab->devices[d].sw != FAB_NONE)
            m->mark[fab->devices[d].sw] = net_mix(fab->devices[d].sw + 1);
    do {
        before = n;
        for (uint32_t s = 0; s < fab->meta->n_switches; s++) {
            uint64_t sum = net_mix(m->mark[s] + 1);
            for (uint32_t h = m->start[s]; h < m->start[s + 1]; h++)
                sum += net_mix(m->mark[m->hops[h].to] ^ net_mix(m->hops[h].mbps));
            m->next[s] = net_mix(sum);
        }
        uint64_t *done = m->mark;
        m->mark = m->next;
        m->next = done;
        n = net_distinct(m);
    } while (n != before);
    return n;
}

static int net_arc_cmp(const void *a, const void *b)
{
    const struct fab_arc *x = a, *y = b;
    return FAB_ORDER(x->to, y->to) ?: FAB_ORDER(x->mbps, y->mbps) ?: FAB_ORDER(x->link, y->link);
}

/* List the arcs of a cell, those of one of its switches. */
static void net_arcs_of(struct net_maker *m, uint32_t cell, uint32_t sw)
{
    struct fab_net *net = m->net;
    struct fab_arc *own = net->arcs + net->n_arcs;
    uint32_t n = 0, merged = 0;

    net->first[cell] = net->n_arcs;
    for (uint32_t h = m->start[sw]; h < m->start[sw + 1]; h++) {
        const struct net_hop *hop = &m->hops[h];
        own[n++] = (struct fab_arc){.from = cell,
                                    .to = net->cell[hop->to],
                                    .cables = 1,
                                    .link = hop->link,
                                    .mbps = hop->mbps,
                                    .b_to_a = hop->b_to_a};
    }
    if (!net->single)
        qsort(own, n, sizeof(*own), net_arc_cmp);
    for (uint32_t i = 0; i < n; i++)
        if (!net->single && merged > 0 && own[merged - 1].to == own[i].to &&
            own[merged - 1].mbps == own[i].mbps)
            own[merged - 1].cables++;
        else
            own[merged++] = own[i];
    net->n_arcs += merged;
    net->first[cell + 1] = net->n_arcs;
}

uint32_t fab_net_arc(const struct fab_net *net, uint32_t from, uint32_t to, uint32_t mbps)
{
    uint32_t low = net->first[from], high = net->first[from + 1];

    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const struct fab_arc *arc = &net->arcs[middle];
        if (arc->to < to || (arc->to == to && arc->mbps < mbps))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int net_cells(struct net_maker *m)
{
    const uint32_t n = m->fab->meta->n_switches;
    struct fab_net *net = m->net;
    uint32_t *representative;

    net->n = net_refine(m);
    FAB_SCRATCH(&net->scratch, &net->cell, n);
    FAB_SCRATCH(&net->scratch, &net->first, net->n + (size_t)1);
    FAB_SCRATCH(&net->scratch, &net->arcs, m->start[n]);
    FAB_SCRATCH(&m->scratch, &representative, net->n);
    if (net->scratch.failed || m->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t s = n; s-- > 0;) {
        const uint64_t *at = bsearch(&m->mark[s], m->sorted, net->n, sizeof(*m->sorted), net_mark_cmp);
        net->cell[s] = (uint32_t)(at - m->sorted);
        representative[net->cell[s]] = s;
    }
    for (uint32_t c = 0; c < net->n; c++)
        net_arcs_of(m, c, representative[c]);
    for (uint32_t a = 0; a < net->n_arcs && !net->single; a++)
        net->arcs[a].back = fab_net_arc(net, net->arcs[a].to, net->arcs[a].from, net->arcs[a].mbps);
    return PMIXFAB_OK;
}

/* ---- spots ----------------------------------------------------------------------------------------------
 */

static uint32_t net_cell_of(const struct net_maker *m, uint32_t device)
{
    const uint32_t sw = m->fab->devices[device].sw;
    return sw == FAB_NONE ? FAB_NONE : m->net->cell[sw];
}

/* List the cells of a host's devices behind the known spots. Devices that are down count only if all are. */
static struct fab_spot net_spot_of(struct net_maker *m, uint32_t host)
{
    const struct pmixfab *fab = m->fab;
    const uint32_t end = fab_reader_host_end(fab, host);
    struct fab_spot spot = {.first_at = m->n_at, .mbps = UINT32_MAX};

    for (uint32_t d = fab_reader_first_used(fab, host); d < end; d = fab_reader_next_used(fab, host, d))
        m->net->is_up[host] |= fab->devices[d].state != PMIXFAB_STATE_DOWN;
    for (uint32_t d = fab_reader_first_used(fab, host); d < end; d = fab_reader_next_used(fab, host, d)) {
        if (m->net->is_up[host] && fab->devices[d].state == PMIXFAB_STATE_DOWN)
            continue;
        const uint32_t mbps = net_rate(fab, fab->devices[d].mbps);
        m->net->at[m->n_at + spot.n_at++] = net_cell_of(m, d);
        spot.mbps = mbps < spot.mbps ? mbps : spot.mbps;
    }
    return spot;
}

static void net_spots(struct net_maker *m)
{
    struct fab_net *net = m->net;

    memset(m->of_first, 0xff, (m->fab->meta->n_switches + (size_t)1) * sizeof(*m->of_first));
    for (uint32_t h = 0; h < m->fab->meta->n_hosts; h++) {
        const struct fab_spot spot = net_spot_of(m, h);
        const uint32_t *own = net->at + spot.first_at;
        uint32_t *head = &m->of_first[own[0] == FAB_NONE ? m->fab->meta->n_switches : own[0]], i = *head;
        while (i != FAB_NONE &&
               (net->spots[i].n_at != spot.n_at || net->spots[i].mbps != spot.mbps ||
                memcmp(net->at + net->spots[i].first_at, own, spot.n_at * sizeof(*own)) != 0))
            i = m->other[i];
        if (i == FAB_NONE) {
            i = net->n_spots++;
            net->spots[i] = spot;
            m->n_at += spot.n_at;
            m->other[i] = *head;
            *head = i;
        }
        net->spot_of[h] = i;
    }
}

/* ---- paths ----------------------------------------------------------------------------------------------
 */

void fab_net_from(struct fab_net *net, uint32_t cell)
{
    for (uint32_t i = 0; i < net->n_queue; i++)
        net->dist[net->queue[i]] = FAB_NONE;
    net->n_queue = 0;
    net->dist[cell] = 0;
    net->paths[cell] = 1;
    net->queue[net->n_queue++] = cell;
    for (uint32_t i = 0; i < net->n_queue; i++) {
        const uint32_t c = net->queue[i];
        for (const struct fab_arc *arc = net->arcs + net->first[c], *end = net->arcs + net->first[c + 1];
             arc < end; arc++) {
            if (net->dist[arc->to] == FAB_NONE) {
                net->dist[arc->to] = net->dist[c] + 1;
                net->paths[arc->to] = 0;
                net->queue[net->n_queue++] = arc->to;
            }
            if (net->dist[arc->to] == net->dist[c] + 1)
                net->paths[arc->to] += net->paths[c] * net->arcs[arc->back].cables;
        }
    }
}

bool fab_net_send(struct fab_net *net, const struct fab_spot *to, double bytes)
{
    const uint32_t *at = net->at + to->first_at;
    uint32_t least = FAB_NONE, equal = 0;

    for (uint32_t i = 0; i < to->n_at; i++) {
        const uint32_t dist = at[i] == FAB_NONE ? FAB_NONE : net->dist[at[i]];
        equal = dist < least ? 1 : equal + (dist == least);
        least = dist < least ? dist : least;
    }
    for (uint32_t i = 0; i < to->n_at && least != FAB_NONE; i++)
        if (at[i] != FAB_NONE && net->dist[at[i]] == least)
            net->flow[at[i]] += bytes / equal;
    return least != FAB_NONE;
}

void fab_net_carry(struct fab_net *net, double *loads)
{
    for (uint32_t i = net->n_queue; i-- > 0;) {
        const uint32_t c = net->queue[i];
        const double flow = net->flow[c];
        net->flow[c] = 0;
        for (uint32_t a = net->first[c]; a < net->first[c + 1] && flow > 0 && net->dist[c] > 0; a++) {
            const struct fab_arc *arc = &net->arcs[a];
            if (net->dist[arc->to] + 1 != net->dist[c])
                continue;
            const double part = flow * net->paths[arc->to] / net->paths[c];
            loads[arc->back] += part;
            net->flow[arc->to] += part * net->arcs[arc->back].cables;
        }
    }
}

/* ---- routes ---------------------------------------------------------------------------------------------
 */

/* Return the number of links from each cell to this one; NULL without memory. */
static const uint16_t *net_away(struct fab_net *net, uint32_t cell)
{
    if (net->away[cell] != NULL)
        return net->away[cell];
    uint16_t *away = malloc(net->n * sizeof(*away));
    net->failed |= away == NULL;
    if (away == NULL)
        return NULL;
    memset(away, 0xff, net->n * sizeof(*away));
    away[cell] = 0;
    net->queue[0] = cell;
    for (uint32_t i = 0, n = 1; i < n; i++) {
        const uint32_t c = net->queue[i];
        for (uint32_t a = net->first[c]; a < net->first[c + 1]; a++)
            if (away[net->arcs[a].to] == UINT16_MAX) {
                away[net->arcs[a].to] = (uint16_t)(away[c] + 1);
                net->queue[n++] = net->arcs[a].to;
            }
    }
    net->away[cell] = away;
    net->work += net->n_arcs;
    return away;
}

/* Return the number of the way to a host at this cell among the shortest ways, of which there are so many. */
static uint32_t net_turn(const struct fab_net *net, uint32_t cell, uint32_t row, uint32_t host, uint32_t ways)
{
    return net->table != NULL ? net->table[(size_t)row * net->n + cell] : ways > 0 ? host % ways : 0;
}

/* Follow the route from one cell to device i of a host. */
static void net_follow(struct fab_net *net, uint32_t cell, uint32_t host, uint32_t i, double bytes,
                       fab_net_fn *visit, void *cbdata)
{
    const uint16_t *away = net->away[net->at[net->spots[net->spot_of[host]].first_at + i]];

    while (away[cell] > 0) {
        uint32_t ways = 0, a = net->first[cell];
        for (uint32_t k = a; k < net->first[cell + 1]; k++)
            ways += away[net->arcs[k].to] < away[cell];
        for (uint32_t skip = net_turn(net, cell, net->row_of[host] + i, host, ways);
             away[net->arcs[a].to] >= away[cell] || skip-- > 0;)
            a++;
        visit(cbdata, a, bytes);
        net->work += net->first[cell + 1] - net->first[cell];
        cell = net->arcs[a].to;
    }
}

bool fab_net_route(struct fab_net *net, uint32_t from, uint32_t host, double bytes, fab_net_fn *visit,
                   void *cbdata)
{
    const struct fab_spot *to = &net->spots[net->spot_of[host]];
    const uint32_t *at = net->at + to->first_at;
    uint32_t least = UINT16_MAX, equal = 0;

    for (uint32_t i = 0; i < to->n_at; i++) {
        const uint16_t *away = at[i] == FAB_NONE ? NULL : net_away(net, at[i]);
        const uint32_t dist = away == NULL ? UINT16_MAX : away[from];
        equal = dist < least ? 1 : equal + (dist == least);
        least = dist < least ? dist : least;
    }
    for (uint32_t i = 0; i < to->n_at && least != UINT16_MAX; i++)
        if (at[i] != FAB_NONE && net->away[at[i]] != NULL && net->away[at[i]][from] == least)
            net_follow(net, from, host, i, bytes / equal, visit, cbdata);
    return least != UINT16_MAX;
}

/* Give one device its way at each cell: of the shortest ways the one that fewest devices have, then the
 * first. */
static void net_row(struct fab_net *net, const uint16_t *away, uint8_t *row, uint32_t *used)
{
    for (uint32_t c = 0; c < net->n; c++) {
        uint32_t best = FAB_NONE, ways = 0;
        for (uint32_t a = net->first[c]; a < net->first[c + 1] && away[c] > 0 && away[c] != UINT16_MAX; a++)
            if (away[net->arcs[a].to] < away[c]) {
                if (best == FAB_NONE || used[a] < used[best]) {
                    best = a;
                    row[c] = (uint8_t)ways;
                }
                ways++;
            }
        if (best != FAB_NONE)
            used[best]++;
    }
}

/* Write the table of all devices, in the order of hosts, if the plane is small. */
static int net_table(struct fab_net *net)
{
    const uint32_t n_hosts = net->fab->meta->n_hosts;
    uint32_t rows = 0, *used;

    for (uint32_t h = 0; h < n_hosts; h++) {
        net->row_of[h] = rows;
        rows += net->spots[net->spot_of[h]].n_at;
    }
    if ((uint64_t)rows * net->n_arcs > NET_TABLE_WORK)
        return PMIXFAB_OK;
    used = calloc(net->n_arcs + (size_t)1, sizeof(*used));
    net->table = calloc((size_t)rows * net->n + 1, 1);
    for (uint32_t h = 0; h < n_hosts && used != NULL && net->table != NULL; h++) {
        const struct fab_spot *spot = &net->spots[net->spot_of[h]];
        for (uint32_t i = 0; i < spot->n_at; i++) {
            const uint32_t cell = net->at[spot->first_at + i];
            const uint16_t *away = cell == FAB_NONE ? NULL : net_away(net, cell);
            if (away != NULL)
                net_row(net, away, net->table + (size_t)(net->row_of[h] + i) * net->n, used);
        }
    }
    const bool made = used != NULL && net->table != NULL && !net->failed;
    free(used);
    return made ? PMIXFAB_OK : PMIXFAB_ERR_NOMEM;
}

/* ---- open and close -------------------------------------------------------------------------------------
 */

int fab_net_open(const struct pmixfab *fab, bool single, struct fab_net *net)
{
    const struct snap_meta *meta = fab->meta;
    struct net_maker m = {.fab = fab, .net = net};
    int rc = PMIXFAB_ERR_NOMEM;

    *net = (struct fab_net){.fab = fab, .single = single};
    FAB_SCRATCH(&m.scratch, &m.start, meta->n_switches + (size_t)1);
    FAB_SCRATCH(&m.scratch, &m.hops, 2 * (size_t)meta->n_links);
    FAB_SCRATCH(&m.scratch, &m.mark, meta->n_switches);
    FAB_SCRATCH(&m.scratch, &m.next, meta->n_switches);
    FAB_SCRATCH(&m.scratch, &m.sorted, meta->n_switches);
    FAB_SCRATCH(&m.scratch, &m.of_first, meta->n_switches);
    FAB_SCRATCH(&m.scratch, &m.other, meta->n_hosts);
    FAB_SCRATCH(&net->scratch, &net->spot_of, meta->n_hosts);
    FAB_SCRATCH(&net->scratch, &net->spots, meta->n_hosts);
    FAB_SCRATCH(&net->scratch, &net->at, meta->n_devices);
    FAB_SCRATCH(&net->scratch, &net->is_up, meta->n_hosts);
    FAB_SCRATCH(&net->scratch, &net->row_of, meta->n_hosts);
    if (m.scratch.failed || net->scratch.failed)
        goto cleanup;
    net_hops(&m);
    rc = net_cells(&m);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    net_spots(&m);
    FAB_SCRATCH(&net->walk, &net->dist, net->n);
    FAB_SCRATCH(&net->walk, &net->queue, net->n);
    FAB_SCRATCH(&net->walk, &net->paths, net->n);
    FAB_SCRATCH(&net->walk, &net->flow, net->n);
    FAB_SCRATCH(&net->walk, &net->away, single ? net->n : 0);
    if (net->walk.failed)
        rc = PMIXFAB_ERR_NOMEM;
    else {
        memset(net->dist, 0xff, net->n * sizeof(*net->dist));
        rc = single ? net_table(net) : PMIXFAB_OK;
    }
cleanup:
    fab_scratch_free(&m.scratch);
    if (rc != PMIXFAB_OK)
        fab_net_close(net);
    return rc;
}

void fab_net_close(struct fab_net *net)
{
    for (uint32_t c = 0; net->single && net->away != NULL && c < net->n; c++)
        free(net->away[c]);
    free(net->table);
    fab_scratch_free(&net->scratch);
    fab_scratch_free(&net->walk);
}
