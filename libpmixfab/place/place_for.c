/* place_for.c - choose the hosts on which a communication pattern takes the shortest time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "place/place_private.h"
#include "topo/base/give.h"
#include "topo/base/order.h"

/* Steps of some nanoseconds each, as fab_traffic counts them; the first part is for the even choices. */
#define FOR_EVEN_WORK     UINT64_C(8000000)
#define FOR_EXCHANGE_WORK UINT64_C(5000000)
#define FOR_ROUTE_WORK    100u   /* of the route from a leaf to a host, about */
#define FOR_FEW           4096.0 /* so few choices of so few hosts are all assessed */
#define FOR_FEW_HOSTS     64u
#define FOR_EQUAL         1e-9 /* times that differ by less than this part are equal */

struct place_for {
    struct fab_scratch scratch;
    const struct pmixfab *fab;
    struct fab_traffic traffic;
    struct fab_classes classes;
    struct pmixfab_job job;
    enum pmixfab_sharing sharing;
    uint32_t n;
    uint32_t *class_of;          /* per host */
    uint32_t *hosts, *best;      /* of the choice in hand, and of the best one */
    uint32_t *counts;            /* per class, of the choice in hand */
    bool *taken;                 /* per host: it is in the best choice */
    bool *marked;                /* per host: it is already in the choice in hand */
    uint32_t *near;              /* classes, from the nearest to the choice of the lowest sum */
    uint32_t *units, n_units;    /* per class: its unit, numbered in that order */
    uint32_t *stack;             /* all choices: numbers of the candidates in hand */
    uint32_t *turn;              /* per unit: already picked in this turn */
    bool *picked;                /* per class */
    struct pmixfab_traffic made; /* of the best one; the share is 0 before the first */
    uint64_t cost, step;         /* of the best one; steps of the last assessment */
    bool mixed;                  /* the candidates have ports of different rates */
};

/* ---- choices --------------------------------------------------------------------------------------------
 */

static void for_count(struct place_for *p, const uint32_t *hosts)
{
    memset(p->counts, 0, p->classes.n * sizeof(*p->counts));
    for (uint32_t i = 0; i < p->n; i++)
        p->counts[p->class_of[hosts[i]]]++;
}

/* Return the sum of costs of the choice in hand. */
static uint64_t for_cost(struct place_for *p)
{
    const uint32_t n = p->classes.n;
    uint64_t cost = 0;

    for_count(p, p->hosts);
    for (uint32_t c = 0; c < n; c++)
        for (uint32_t d = 0; d <= c && p->counts[c] > 0; d++) {
            const uint64_t pairs = c == d ? (uint64_t)p->counts[c] * (p->counts[c] - 1) / 2
                                          : (uint64_t)p->counts[c] * p->counts[d];
            cost += pairs * p->classes.costs[(size_t)c * n + d];
        }
    return cost;
}

/* Return the value to minimise. */
static double for_value(const struct place_for *p, const struct pmixfab_traffic *made)
{
    return p->job.pattern == PMIXFAB_ANY_PATTERN ? 1 / made->share : made->seconds;
}

/* Return whether no choice can be better: the ports limit, and all hosts have equal ones. */
static bool for_done(const struct place_for *p)
{
    return p->made.share >= 1 - FOR_EQUAL && !p->mixed;
}

/* Assess the hosts in hand. They become the best choice if they are faster, or as fast at a lower cost. */
static int for_offer(struct place_for *p, bool *better)
{
    struct pmixfab_traffic made;
    const uint64_t before = p->traffic.net.work;
    const int rc = fab_traffic_assess(&p->traffic, &p->job, 1, p->sharing, &made);

    p->step = p->traffic.net.work - before;
    *better = false;
    if (rc != PMIXFAB_OK)
        return rc == PMIXFAB_ERR_NOTFOUND ? PMIXFAB_OK : rc;
    const double value = for_value(p, &made), least = p->made.share > 0 ? for_value(p, &p->made) : INFINITY;
    if (value > least * (1 + FOR_EQUAL))
        return PMIXFAB_OK;
    const uint64_t cost = for_cost(p);
    *better = value < least * (1 - FOR_EQUAL) || cost < p->cost;
    if (*better) {
        p->made = made;
        p->cost = cost;
        for (uint32_t i = 0; i < p->n && least < INFINITY; i++)
            p->taken[p->best[i]] = false;
        memcpy(p->best, p->hosts, p->n * sizeof(*p->best));
        for (uint32_t i = 0; i < p->n; i++)
            p->taken[p->best[i]] = true;
    }
    return PMIXFAB_OK;
}

/* Offer the hosts in hand in the order of pmixfab_order(). */
static int for_offer_ordered(struct place_for *p, bool *better)
{
    int rc = PMIXFAB_OK;

    if (p->job.pattern != PMIXFAB_ALL_TO_ALL) {
        rc = pmixfab_order(p->fab, p->hosts, p->n);
        p->traffic.net.work += (uint64_t)p->n * 8 + p->fab->meta->n_hosts + p->classes.n_edges;
    }
    return rc != PMIXFAB_OK ? rc : for_offer(p, better);
}

/*
 * Offer as many hosts of each class as counted. Hosts whose numbers differ by a multiple of the uplinks of a
 * leaf have the same uplink of other leaves, so take each remainder equally often.
 */
static int for_offer_counts(struct place_for *p)
{
    const struct fab_net *net = &p->traffic.net;
    const uint32_t cell = net->at[net->spots[net->spot_of[p->classes.hosts[0]]].first_at];
    const uint32_t ways = cell == FAB_NONE ? 0 : net->first[cell + 1] - net->first[cell];
    uint32_t n = 0, taken[UINT8_MAX + 1] = {0};
    bool better;

    for (uint32_t c = 0; c < p->classes.n; c++) {
        const struct fab_class *class = &p->classes.classes[c];
        uint32_t *hosts = p->hosts + n;
        for (uint32_t i = 0; i < p->counts[c]; i++) {
            uint32_t best = FAB_NONE, least = UINT32_MAX;
            for (uint32_t k = 0; k < class->n_hosts; k++) {
                const uint32_t host = p->classes.hosts[class->first_host + k];
                const uint32_t times = ways > 0 ? taken[host % ways % (UINT8_MAX + 1)] : 0;
                if (times < least && !p->marked[host]) {
                    best = host;
                    least = times;
                }
            }
            hosts[i] = best;
            p->marked[best] = true;
            taken[ways > 0 ? best % ways % (UINT8_MAX + 1) : 0]++;
        }
        n += p->counts[c];
        p->traffic.net.work += (uint64_t)p->counts[c] * class->n_hosts;
    }
    for (uint32_t i = 0; i < n; i++)
        p->marked[p->hosts[i]] = false;
    return for_offer_ordered(p, &better);
}

/* Offer a choice of the search for low costs. */
static int for_offer_nearest(struct place_for *p, const uint32_t *from, size_t n_from,
                             enum pmixfab_objective objective)
{
    struct pmixfab_placement placement;
    uint32_t known = 0;
    bool better;
    const int rc = pmixfab_place(p->fab, from, n_from, p->n, objective, p->hosts, &placement);

    if (rc != PMIXFAB_OK)
        return rc;
    for (uint32_t i = 0; i < p->n; i++)
        known += p->taken[p->hosts[i]];
    return known == p->n ? PMIXFAB_OK : for_offer(p, &better);
}

/* ---- even choices ---------------------------------------------------------------------------------------
 */

static int for_near_cmp(const void *a, const void *b, void *arg)
{
    const struct place_for *p = arg;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const uint16_t *row = p->classes.costs + (size_t)p->near[p->classes.n] * p->classes.n;
    return FAB_ORDER(x != p->near[p->classes.n], y != p->near[p->classes.n]) ?: FAB_ORDER(row[x], row[y])
               ?: FAB_ORDER(x, y);
}

/* List the classes by their cost to the most used class of the best choice, and number their units. */
static int for_nearness(struct place_for *p)
{
    const uint32_t n = p->classes.n;
    uint32_t most = 0, *known;

    for_count(p, p->best);
    for (uint32_t c = 0; c < n; c++) {
        p->near[c] = c;
        most = p->counts[c] > p->counts[most] ? c : most;
    }
    p->near[n] = most;
    qsort_r(p->near, n, sizeof(*p->near), for_near_cmp, p);
    if (FAB_SCRATCH(&p->scratch, &known, n) == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t c = p->near[i], unit = p->classes.has_units ? p->classes.units[c] : 0;
        uint32_t u = 0;
        while (u < p->n_units && known[u] != unit)
            u++;
        if (u == p->n_units)
            known[p->n_units++] = unit;
        p->units[c] = u;
    }
    return PMIXFAB_OK;
}

/* Pick up to k classes of the first units, from each unit in turn, that have at least `least` hosts. */
static uint32_t for_pick(struct place_for *p, uint32_t n_units, uint32_t k, uint32_t least)
{
    uint32_t n = 0, *turn = p->turn;

    memset(p->picked, 0, p->classes.n * sizeof(*p->picked));

    for (bool more = true; more && n < k;) {
        more = false;
        memset(turn, 0, n_units * sizeof(*turn));
        for (uint32_t i = 0; i < p->classes.n && n < k; i++) {
            const uint32_t c = p->near[i], u = p->units[c];
            if (u >= n_units || turn[u] > 0 || p->picked[c] || p->classes.classes[c].n_hosts < least)
                continue;
            p->picked[c] = more = true;
            turn[u]++;
            n++;
        }
        p->traffic.net.work += 4 * (uint64_t)p->classes.n;
    }
    return n;
}

/* Count n hosts of the picked classes, as evenly as their numbers of hosts allow. Return whether they do. */
static bool for_fill(struct place_for *p)
{
    uint32_t low = 0, high = p->n;
    uint64_t sum = 0;

    for (uint32_t level = high; low < high; level = (low + high) / 2) {
        sum = 0;
        for (uint32_t c = 0; c < p->classes.n; c++) {
            const uint32_t n = p->picked[c] ? p->classes.classes[c].n_hosts : 0;
            p->counts[c] = n < level ? n : level;
            sum += p->counts[c];
        }
        if (level == p->n && sum < p->n)
            return false;
        if (sum < p->n)
            low = level + 1;
        else
            high = level;
    }
    sum = 0;
    for (uint32_t c = 0; c < p->classes.n; c++) {
        const uint32_t n = p->picked[c] ? p->classes.classes[c].n_hosts : 0;
        p->counts[c] = n < high ? n : high;
        sum += p->counts[c];
    }
    for (uint32_t i = p->classes.n; i-- > 0 && sum > p->n;)
        if (p->picked[p->near[i]] && p->counts[p->near[i]] == high) {
            p->counts[p->near[i]]--;
            sum--;
        }
    return true;
}

/* Offer choices with equal shares: fewer and fewer hosts of a class, and more and more units. */
static int for_even(struct place_for *p)
{
    const uint64_t end = p->traffic.net.work + FOR_EVEN_WORK;
    uint32_t most = 1;

    for (uint32_t c = 0; c < p->classes.n; c++)
        most = p->classes.classes[c].n_hosts > most ? p->classes.classes[c].n_hosts : most;
    most = most > p->n ? p->n : most;
    for (uint32_t share = most; share > 0; share = share > 8 ? share * 3 / 4 : share - 1)
        for (uint32_t units = 1; units <= p->n_units;
             units = units < p->n_units && 2 * units > p->n_units ? p->n_units : 2 * units) {
            const uint32_t k = (p->n + share - 1) / share;
            if (for_done(p) || p->traffic.net.work > end)
                return PMIXFAB_OK;
            if (p->traffic.net.work +
                    (uint64_t)k * ((uint64_t)p->n * FOR_ROUTE_WORK + p->traffic.net.n_arcs) >
                end)
                continue;
            if (for_pick(p, units, k, share) < k || !for_fill(p))
                continue;
            const int rc = for_offer_counts(p);
            if (rc != PMIXFAB_OK)
                return rc;
        }
    return PMIXFAB_OK;
}

/* ---- exchanges ------------------------------------------------------------------------------------------
 */

/* Return whether the most loaded link ends at a leaf of this host. */
static bool for_at_limit(const struct place_for *p, uint32_t host)
{
    const struct fab_net *net = &p->traffic.net;
    const struct fab_spot *spot = &net->spots[net->spot_of[host]];

    if (p->made.link == UINT32_MAX)
        return false;
    const struct snap_link *link = &p->fab->links[p->made.link];
    for (uint32_t i = 0; i < spot->n_at; i++) {
        const uint32_t cell = net->at[spot->first_at + i];
        if (cell == net->cell[link->a & ~SNAP_END_KIND] || cell == net->cell[link->b & ~SNAP_END_KIND])
            return true;
    }
    return false;
}

/* Exchange a chosen host for one that is not, if a better choice results. */
static int for_exchange(struct place_for *p, uint32_t host, uint64_t end, bool *exchanged)
{
    int rc = PMIXFAB_OK;

    for (uint32_t i = 0; i < p->classes.n; i++) {
        const struct fab_class *class = &p->classes.classes[p->near[i]];
        for (uint32_t k = 0; k < class->n_hosts && rc == PMIXFAB_OK; k++) {
            const uint32_t other = p->classes.hosts[class->first_host + k];
            bool better = false;
            if (p->taken[other])
                continue;
            if (!p->taken[host] || for_done(p) || p->traffic.net.work + p->step > end)
                return PMIXFAB_OK;
            for (uint32_t j = 0; j < p->n; j++)
                p->hosts[j] = p->best[j] == host ? other : p->best[j];
            rc = for_offer_ordered(p, &better);
            *exchanged |= better;
        }
    }
    return rc;
}

static int for_exchanges(struct place_for *p)
{
    const uint64_t end = p->traffic.net.work + FOR_EXCHANGE_WORK;
    int rc = PMIXFAB_OK;

    for (bool exchanged = true; exchanged && !for_done(p) && p->traffic.net.work + p->step < end;) {
        exchanged = false;
        for (int limit = 1; limit >= 0 && !exchanged; limit--)
            for (uint32_t i = 0; i < p->classes.n_hosts && rc == PMIXFAB_OK; i++)
                if (p->taken[p->classes.hosts[i]] && for_at_limit(p, p->classes.hosts[i]) == limit)
                    rc = for_exchange(p, p->classes.hosts[i], end, &exchanged);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    return PMIXFAB_OK;
}

/* ---- all choices ----------------------------------------------------------------------------------------
 */

/* Return whether there are few choices of n hosts. */
static bool for_few(const struct place_for *p)
{
    double choices = p->classes.n_hosts <= FOR_FEW_HOSTS ? 1 : INFINITY;
    for (uint32_t k = 1; k <= p->n && choices <= FOR_FEW; k++)
        choices *= (double)(p->classes.n_hosts - p->n + k) / k;
    return choices <= FOR_FEW;
}

/* Offer all choices that have the first n hosts in hand, and others from the i-th candidate on. */
/* NOLINTNEXTLINE(misc-no-recursion): the depth is the number of hosts, less than FOR_FEW_HOSTS */
static int for_all(struct place_for *p, uint32_t n, uint32_t i)
{
    bool better;
    int rc = PMIXFAB_OK;

    if (n == p->n)
        return for_done(p) ? PMIXFAB_OK : for_offer_ordered(p, &better);
    for (; i + p->n - n <= p->classes.n_hosts && rc == PMIXFAB_OK; i++) {
        for (uint32_t k = 0; k < n; k++)
            p->hosts[k] = p->classes.hosts[p->stack[k]];
        p->stack[n] = i;
        p->hosts[n] = p->classes.hosts[i];
        rc = for_all(p, n + 1, i + 1);
    }
    return rc;
}

/* ---- the request ----------------------------------------------------------------------------------------
 */

static bool for_same_ports(const struct fab_net *net, uint32_t g, uint32_t h)
{
    const struct fab_spot *x = &net->spots[net->spot_of[g]], *y = &net->spots[net->spot_of[h]];
    return x->mbps == y->mbps && x->n_at == y->n_at;
}

static int for_search(struct place_for *p, const uint32_t *from, size_t n_from)
{
    const uint32_t n_hosts = p->fab->meta->n_hosts, n = p->classes.n;

    FAB_SCRATCH(&p->scratch, &p->class_of, n_hosts);
    FAB_SCRATCH(&p->scratch, &p->hosts, p->n);
    FAB_SCRATCH(&p->scratch, &p->best, p->n);
    FAB_SCRATCH(&p->scratch, &p->counts, n);
    FAB_SCRATCH(&p->scratch, &p->taken, n_hosts);
    FAB_SCRATCH(&p->scratch, &p->marked, n_hosts);
    FAB_SCRATCH(&p->scratch, &p->stack, p->n);
    FAB_SCRATCH(&p->scratch, &p->near, n);
    FAB_SCRATCH(&p->scratch, &p->units, n);
    FAB_SCRATCH(&p->scratch, &p->turn, n);
    FAB_SCRATCH(&p->scratch, &p->picked, n);
    if (p->scratch.failed)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t c = 0; c < n; c++)
        for (uint32_t i = 0; i < p->classes.classes[c].n_hosts; i++) {
            const uint32_t host = p->classes.hosts[p->classes.classes[c].first_host + i];
            p->class_of[host] = c;
            p->mixed |= !for_same_ports(&p->traffic.net, host, p->classes.hosts[0]);
        }
    p->job.hosts = p->hosts;
    p->job.n = p->n;
    int rc = for_offer_nearest(p, from, n_from, PMIXFAB_PLACE_SUM);
    if (rc == PMIXFAB_OK && !for_done(p))
        rc = for_offer_nearest(p, from, n_from, PMIXFAB_PLACE_SWITCHES);
    if (rc != PMIXFAB_OK || for_done(p) || p->made.share == 0)
        return rc;
    if (for_few(p))
        return for_all(p, 0, 0);
    for_count(p, p->best);
    rc = for_offer_counts(p);
    if (rc != PMIXFAB_OK)
        return rc;
    return for_nearness(p) ?: for_even(p) ?: for_exchanges(p);
}

int pmixfab_place_for_sized(const struct pmixfab *fab, const uint32_t *from, size_t n_from, uint32_t n,
                            enum pmixfab_pattern pattern, enum pmixfab_sharing sharing, uint32_t *hosts,
                            struct pmixfab_traffic *out, size_t size)
{
    struct place_for p = {.fab = fab, .n = n, .sharing = sharing, .job = {.pattern = pattern}};

    if (fab == NULL || n == 0 || hosts == NULL || out == NULL || size == 0 || (from == NULL && n_from > 0) ||
        (unsigned)pattern > PMIXFAB_ANY_PATTERN || pattern == PMIXFAB_PATTERNS ||
        (unsigned)sharing > PMIXFAB_SHARED)
        return PMIXFAB_ERR_INVAL;
    int rc = fab_classes_find(fab, from, n_from, FAB_CLASSES_UP | FAB_CLASSES_COSTS | FAB_CLASSES_UNITS,
                              &p.classes);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = p.classes.n_hosts < n ? PMIXFAB_ERR_NOTFOUND : fab_traffic_open(fab, &p.traffic);
    if (rc == PMIXFAB_OK)
        rc = for_search(&p, from, n_from);
    if (rc == PMIXFAB_OK && p.made.share == 0)
        rc = PMIXFAB_ERR_NOTFOUND;
    if (rc == PMIXFAB_OK && pattern == PMIXFAB_ALL_TO_ALL)
        rc = pmixfab_order(fab, p.best, n);
    if (rc == PMIXFAB_OK) {
        memcpy(hosts, p.best, n * sizeof(*hosts));
        fab_give(out, size, &p.made, sizeof(p.made));
    }
    fab_traffic_close(&p.traffic);
    fab_scratch_free(&p.scratch);
    fab_classes_destroy(&p.classes);
    return rc;
}
