/* traffic.c - the expected time of a job's communication pattern, from the loads on links. */
#include <stdlib.h>
#include <string.h>

#include "place/place_private.h"
#include "topo/base/give.h"
#include "topo/base/order.h"

#define TRAFFIC_BYTES (1024.0 * 1024)
#define TRAFFIC_PEERS 6u
#define TRAFFIC_EQUAL 1e-9 /* loads that differ by less than this part are equal */

/* ---- patterns -------------------------------------------------------------------------------------------
 */

/* One round of a pattern among n ranks. */
struct traffic_round {
    uint32_t n, pattern, number;
    uint32_t box[3]; /* of neighbours: box[0] >= box[1] >= box[2] */
};

/* Find the box with the smallest surface. */
static void traffic_box(struct traffic_round *round)
{
    const uint64_t n = round->n;
    uint64_t least = UINT64_MAX;

    for (uint64_t c = 1; c * c * c <= n; c++)
        for (uint64_t b = c; n % c == 0 && b * b <= n / c; b++) {
            const uint64_t a = n / c / b, surface = a * b + b * c + a * c;
            if (n / c % b == 0 && surface < least) {
                least = surface;
                round->box[0] = (uint32_t)a;
                round->box[1] = (uint32_t)b;
                round->box[2] = (uint32_t)c;
            }
        }
}

static uint32_t traffic_rounds(uint32_t pattern, uint32_t n)
{
    uint32_t rounds = 0;

    if (pattern != PMIXFAB_DOUBLING)
        return n > 1 ? 1 : 0;
    while (rounds < 31 && 1u << rounds < n)
        rounds++;
    return rounds;
}

static uint32_t traffic_neighbours(const struct traffic_round *round, uint32_t r, uint32_t *peers)
{
    uint32_t n = 0, step = 1;

    for (int d = 2; d >= 0; step *= round->box[d--]) {
        const uint32_t at = r / step % round->box[d];
        if (at > 0)
            peers[n++] = r - step;
        if (at + 1 < round->box[d])
            peers[n++] = r + step;
    }
    return n;
}

/* List the ranks that a rank sends to, for all patterns but all to all. Return their number. */
static uint32_t traffic_peers(const struct traffic_round *round, uint32_t r, uint32_t peers[TRAFFIC_PEERS])
{
    if (round->pattern == PMIXFAB_NEIGHBOURS)
        return traffic_neighbours(round, r, peers);
    peers[0] = round->pattern == PMIXFAB_RING ? (r + 1) % round->n : r ^ 1u << round->number;
    return peers[0] < round->n ? 1 : 0;
}

/* ---- loads of a round -----------------------------------------------------------------------------------
 */

/* The loads to add to, and the net that they belong to. */
struct traffic_loads {
    struct fab_net *net;
    double *links, *out, *in;
};

/* Sort the ranks by their spots, and list the spots that are used. */
static void traffic_sort(struct fab_traffic *t, const struct pmixfab_job *job)
{
    const struct fab_net *net = &t->net;

    memset(t->spot_start, 0, (net->n_spots + (size_t)2) * sizeof(*t->spot_start));
    t->n_used = 0;
    for (size_t r = 0; r < job->n; r++) {
        const uint32_t spot = net->spot_of[job->hosts[r]];
        if (t->spot_start[spot + 2]++ == 0)
            t->used[t->n_used++] = spot;
    }
    for (uint32_t s = 0; s < net->n_spots; s++)
        t->spot_start[s + 2] += t->spot_start[s + 1];
    for (size_t r = 0; r < job->n; r++)
        t->by_spot[t->spot_start[net->spot_of[job->hosts[r]] + 1]++] = (uint32_t)r;
}

static uint32_t traffic_in_spot(const struct fab_traffic *t, uint32_t spot)
{
    return t->spot_start[spot + 1] - t->spot_start[spot];
}

static void traffic_load(void *links, uint32_t arc, double bytes)
{
    ((double *)links)[arc] += bytes;
}

/* Send the messages of all ranks of a spot from one of its devices. Return false if a path is missing. */
static bool traffic_all_from(const struct fab_traffic *t, const struct pmixfab_job *job, uint32_t spot,
                             uint32_t cell, double bytes, const struct traffic_loads *loads)
{
    bool reached = true;

    bytes *= traffic_in_spot(t, spot);
    for (uint32_t i = 0; i < t->n_used; i++) {
        const uint32_t to = t->used[i];
        if (to == spot)
            continue;
        if (!loads->net->single)
            reached &= fab_net_send(loads->net, &loads->net->spots[to], bytes * traffic_in_spot(t, to));
        for (uint32_t r = t->spot_start[to]; r < t->spot_start[to + 1] && loads->net->single; r++)
            reached &=
                fab_net_route(loads->net, cell, job->hosts[t->by_spot[r]], bytes, traffic_load, loads->links);
    }
    return reached;
}

static bool traffic_some_from(const struct fab_traffic *t, const struct pmixfab_job *job,
                              const struct traffic_round *round, uint32_t spot, uint32_t cell, double bytes,
                              const struct traffic_loads *loads)
{
    struct fab_net *net = loads->net;
    uint32_t peers[TRAFFIC_PEERS];
    bool reached = true;

    for (uint32_t i = t->spot_start[spot]; i < t->spot_start[spot + 1]; i++) {
        const uint32_t n = traffic_peers(round, t->by_spot[i], peers);
        for (uint32_t p = 0; p < n; p++) {
            const uint32_t host = job->hosts[peers[p]], to = net->spot_of[host];
            if (to != spot)
                reached &= net->single ? fab_net_route(net, cell, host, bytes, traffic_load, loads->links)
                                       : fab_net_send(net, &net->spots[to], bytes);
        }
    }
    return reached;
}

/* Return whether a rank of the spot sends to another spot. */
static bool traffic_leaves(const struct fab_traffic *t, const struct pmixfab_job *job,
                           const struct traffic_round *round, uint32_t spot)
{
    uint32_t peers[TRAFFIC_PEERS];

    if (round->pattern == PMIXFAB_ALL_TO_ALL)
        return t->n_used > 1;
    for (uint32_t i = t->spot_start[spot]; i < t->spot_start[spot + 1]; i++) {
        const uint32_t n = traffic_peers(round, t->by_spot[i], peers);
        for (uint32_t p = 0; p < n; p++)
            if (t->net.spot_of[job->hosts[peers[p]]] != spot)
                return true;
    }
    return false;
}

static void traffic_ports(const struct pmixfab_job *job, const struct traffic_round *round, double bytes,
                          const struct traffic_loads *loads)
{
    uint32_t peers[TRAFFIC_PEERS];

    for (uint32_t r = 0; r < round->n; r++) {
        if (round->pattern == PMIXFAB_ALL_TO_ALL) {
            loads->out[job->hosts[r]] += bytes * (round->n - 1);
            loads->in[job->hosts[r]] += bytes * (round->n - 1);
            continue;
        }
        const uint32_t n = traffic_peers(round, r, peers);
        loads->out[job->hosts[r]] += bytes * n;
        for (uint32_t p = 0; p < n; p++)
            loads->in[job->hosts[peers[p]]] += bytes;
    }
}

/* Add the loads of one round of a job, of which the ranks are sorted. Return false if a path is missing. */
static bool traffic_add(struct fab_traffic *t, const struct pmixfab_job *job,
                        const struct traffic_round *round, double bytes, const struct traffic_loads *loads)
{
    bool reached = true;

    traffic_ports(job, round, bytes, loads);
    t->net.work += 8 * job->n;
    for (uint32_t i = 0; i < t->n_used; i++) {
        const struct fab_spot *spot = &loads->net->spots[t->used[i]];
        if (!traffic_leaves(t, job, round, t->used[i]))
            continue;
        for (uint32_t a = 0; a < spot->n_at; a++) {
            const uint32_t cell = loads->net->at[spot->first_at + a];
            if (cell == FAB_NONE)
                continue; /* on a cable to another device: only the ports count */
            if (!loads->net->single)
                fab_net_from(loads->net, cell);
            reached &= round->pattern == PMIXFAB_ALL_TO_ALL
                           ? traffic_all_from(t, job, t->used[i], cell, bytes / spot->n_at, loads)
                           : traffic_some_from(t, job, round, t->used[i], cell, bytes / spot->n_at, loads);
            if (loads->net->single)
                continue;
            fab_net_carry(loads->net, loads->links);
            t->net.work += 2 * (uint64_t)loads->net->n_arcs + t->n_used;
        }
    }
    return reached;
}

/* ---- the time -------------------------------------------------------------------------------------------
 */

static double traffic_larger(double a, double b)
{
    return a > b ? a : b;
}

static double traffic_seconds(double bytes, uint32_t mbps)
{
    return bytes * 8 / (1e6 * mbps);
}

static double traffic_on_link(const struct fab_traffic *t, uint32_t arc)
{
    return traffic_seconds(t->links[arc] + t->base_links[t->even_of[arc]], t->net.arcs[arc].mbps);
}

static double traffic_on_port(const struct fab_traffic *t, uint32_t host, bool alone)
{
    const struct fab_spot *spot = &t->net.spots[t->net.spot_of[host]];
    const double out = t->out[host] > 0 && !alone ? t->out[host] + t->base_out[host] : t->out[host],
                 in = t->in[host] > 0 && !alone ? t->in[host] + t->base_in[host] : t->in[host];
    return traffic_seconds(traffic_larger(out, in) / spot->n_at, spot->mbps);
}

/* Find the most loaded links of a round, and its time. *least: the time without other loads and links. */
static double traffic_time(const struct fab_traffic *t, const struct pmixfab_job *job, double *least,
                           struct pmixfab_traffic *out)
{
    const struct fab_net *net = &t->net;
    double ports = 0, seconds;

    *least = 0;
    for (size_t r = 0; r < job->n; r++) {
        *least = traffic_larger(*least, traffic_on_port(t, job->hosts[r], true));
        ports = traffic_larger(ports, traffic_on_port(t, job->hosts[r], false));
    }
    seconds = ports;
    out->link = UINT32_MAX;
    out->n_links = out->b_to_a = 0;
    for (uint32_t a = 0; a < net->n_arcs; a++) {
        const struct fab_arc *arc = &net->arcs[a];
        const double took = t->links[a] > 0 ? traffic_on_link(t, a) : 0;
        if (took <= ports * (1 + TRAFFIC_EQUAL) || took < seconds * (1 - TRAFFIC_EQUAL))
            continue;
        if (took > seconds * (1 + TRAFFIC_EQUAL))
            out->n_links = 0;
        if (out->n_links == 0 || arc->link < out->link) {
            out->link = arc->link;
            out->b_to_a = arc->b_to_a;
        }
        out->n_links++;
        seconds = traffic_larger(seconds, took);
    }
    return seconds;
}

/* The slowest link of a route, in progress. */
struct traffic_slowest {
    const struct fab_traffic *t;
    double seconds;
};

static void traffic_slow(void *cbdata, uint32_t arc, double bytes)
{
    struct traffic_slowest *slowest = cbdata;
    (void)bytes;
    slowest->seconds = traffic_larger(slowest->seconds, traffic_on_link(slowest->t, arc));
}

/* Return the time of a message in this round. */
static double traffic_message(struct fab_traffic *t, uint32_t from, uint32_t to)
{
    const struct fab_spot *spot = &t->net.spots[t->net.spot_of[from]];
    struct traffic_slowest slowest = {
        t, traffic_larger(traffic_on_port(t, from, false), traffic_on_port(t, to, false))};

    for (uint32_t a = 0; a < spot->n_at && t->net.spot_of[from] != t->net.spot_of[to]; a++)
        if (t->net.at[spot->first_at + a] != FAB_NONE)
            fab_net_route(&t->net, t->net.at[spot->first_at + a], to, 0, traffic_slow, &slowest);
    return slowest.seconds;
}

/*
 * Let each pair of ranks exchange their messages of this round, once both have ended the rounds before.
 * Return the end of the last rank.
 */
static double traffic_advance(struct fab_traffic *t, const struct pmixfab_job *job,
                              const struct traffic_round *round)
{
    uint32_t peers[TRAFFIC_PEERS];
    double end = 0;

    for (uint32_t r = 0; r < round->n; r++) {
        if (traffic_peers(round, r, peers) > 0 && peers[0] > r) {
            const uint32_t q = peers[0], g = job->hosts[r], h = job->hosts[q];
            t->ready[r] = t->ready[q] = traffic_larger(t->ready[r], t->ready[q]) +
                                        traffic_larger(traffic_message(t, g, h), traffic_message(t, h, g));
        }
        end = traffic_larger(end, t->ready[r]);
    }
    return end;
}

static void traffic_clear(const struct fab_traffic *t, const struct traffic_loads *loads)
{
    memset(loads->links, 0, loads->net->n_arcs * sizeof(double));
    memset(loads->out, 0, t->net.fab->meta->n_hosts * sizeof(double));
    memset(loads->in, 0, t->net.fab->meta->n_hosts * sizeof(double));
}

static struct traffic_round traffic_round_of(const struct pmixfab_job *job, uint32_t pattern)
{
    struct traffic_round round = {.n = (uint32_t)job->n, .pattern = pattern};
    if (pattern == PMIXFAB_NEIGHBOURS)
        traffic_box(&round);
    return round;
}

static double traffic_bytes(const struct pmixfab_job *job)
{
    return job->bytes > 0 ? (double)job->bytes : TRAFFIC_BYTES;
}

/* Add the mean load of a job's rounds to those of the other jobs. */
static bool traffic_add_base(struct fab_traffic *t, const struct pmixfab_job *job, double bytes)
{
    const struct traffic_loads base = {&t->even, t->base_links, t->base_out, t->base_in};
    const uint32_t rounds = traffic_rounds(job->pattern, (uint32_t)job->n);
    struct traffic_round round = traffic_round_of(job, job->pattern);
    bool reached = true;

    traffic_sort(t, job);
    for (; round.number < rounds; round.number++)
        reached &= traffic_add(t, job, &round, bytes / rounds, &base);
    return reached;
}

/* Add the load of all other hosts that are up. A pair without a path exchanges nothing. */
static void traffic_add_outside(struct fab_traffic *t, const struct pmixfab_job *job, uint32_t pattern)
{
    struct pmixfab_job outside = {.hosts = t->outside, .pattern = pattern};
    double bytes = traffic_bytes(job);

    for (uint32_t h = 0; h < t->net.fab->meta->n_hosts; h++)
        if (!t->in_job[h] && t->net.is_up[h])
            t->outside[outside.n++] = h;
    if (outside.n < 2)
        return;
    if (pattern == PMIXFAB_ALL_TO_ALL)
        bytes *= (double)(job->n - 1) / (double)(outside.n - 1);
    traffic_add_base(t, &outside, bytes);
}

/* Mark the hosts of all jobs. A host twice in one job: PMIXFAB_ERR_INVAL. */
static int traffic_mark(struct fab_traffic *t, const struct pmixfab_job *jobs, size_t n)
{
    memset(t->in_job, 0, t->net.fab->meta->n_hosts);
    for (size_t j = 0; j < n; j++) {
        for (size_t r = 0; r < jobs[j].n; r++) {
            if (jobs[j].hosts[r] >= t->net.fab->meta->n_hosts || t->in_job[jobs[j].hosts[r]] == 2)
                return PMIXFAB_ERR_INVAL;
            t->in_job[jobs[j].hosts[r]] = 2;
        }
        for (size_t r = 0; r < jobs[j].n; r++)
            t->in_job[jobs[j].hosts[r]] = 1;
    }
    return PMIXFAB_OK;
}

/* Return whether the hosts of a job that have no switch reach all others of it. */
static bool traffic_reach(const struct fab_traffic *t, const struct pmixfab_job *job)
{
    uint16_t cost;

    for (size_t r = 0; r < job->n; r++) {
        const uint32_t g = job->hosts[r];
        if (t->net.at[t->net.spots[t->net.spot_of[g]].first_at] != FAB_NONE)
            continue;
        for (size_t q = 0; q < job->n; q++)
            if (pmixfab_host_cost(t->net.fab, g, job->hosts[q], &cost) != 0 || cost == PMIXFAB_NO_PATH)
                return false;
    }
    return true;
}

static int traffic_number_cmp(const void *a, const void *b)
{
    return FAB_ORDER(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Count the cells of the job's devices. Each spot is in t->used. */
static uint32_t traffic_leaf_count(struct fab_traffic *t)
{
    uint32_t *cells = t->leaves, n = 0, different = 0;

    for (uint32_t i = 0; i < t->n_used; i++) {
        const struct fab_spot *spot = &t->net.spots[t->used[i]];
        for (uint32_t a = 0; a < spot->n_at; a++)
            if (t->net.at[spot->first_at + a] != FAB_NONE)
                cells[n++] = t->net.at[spot->first_at + a];
    }
    qsort(cells, n, sizeof(*cells), traffic_number_cmp);
    for (uint32_t i = 0; i < n; i++)
        different += i == 0 || cells[i] != cells[i - 1];
    return different;
}

/* Assess one pattern. */
static int traffic_assess(struct fab_traffic *t, const struct pmixfab_job *jobs, size_t n,
                          enum pmixfab_sharing sharing, uint32_t pattern, struct pmixfab_traffic *out)
{
    const struct traffic_loads own = {&t->net, t->links, t->out, t->in},
                               base = {&t->even, t->base_links, t->base_out, t->base_in};
    const uint32_t rounds = traffic_rounds(pattern, (uint32_t)jobs[0].n);
    struct traffic_round round = traffic_round_of(&jobs[0], pattern);
    double slowest = -1;

    traffic_clear(t, &base);
    memset(t->ready, 0, jobs[0].n * sizeof(*t->ready));
    for (size_t j = 1; j < n; j++)
        if (!traffic_add_base(t, &jobs[j], traffic_bytes(&jobs[j])))
            return PMIXFAB_ERR_NOTFOUND;
    if (sharing == PMIXFAB_SHARED)
        traffic_add_outside(t, &jobs[0], pattern);
    traffic_sort(t, &jobs[0]);
    *out = (struct pmixfab_traffic){
        .pattern = pattern, .link = UINT32_MAX, .share = 1, .n_leaves = traffic_leaf_count(t)};
    for (; round.number < rounds; round.number++) {
        struct pmixfab_traffic made = {0};
        double least;
        traffic_clear(t, &own);
        if (!traffic_add(t, &jobs[0], &round, traffic_bytes(&jobs[0]), &own))
            return t->net.failed ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_NOTFOUND;
        const double seconds = traffic_time(t, &jobs[0], &least, &made);
        out->seconds = rounds > 1 ? traffic_advance(t, &jobs[0], &round) : seconds;
        out->least += least;
        if (seconds > slowest) {
            slowest = seconds;
            out->link = made.link;
            out->b_to_a = made.b_to_a;
            out->n_links = made.n_links;
        }
    }
    if (out->seconds > 0)
        out->share = out->least < out->seconds ? out->least / out->seconds : 1;
    return PMIXFAB_OK;
}

int fab_traffic_assess(struct fab_traffic *t, const struct pmixfab_job *jobs, size_t n,
                       enum pmixfab_sharing sharing, struct pmixfab_traffic *out)
{
    static const uint32_t all[] = {PMIXFAB_ALL_TO_ALL, PMIXFAB_RING, PMIXFAB_DOUBLING, PMIXFAB_NEIGHBOURS};
    struct pmixfab_traffic made;
    int rc = traffic_mark(t, jobs, n);

    for (size_t j = 0; j < n && rc == PMIXFAB_OK; j++)
        rc = traffic_reach(t, &jobs[j]) ? PMIXFAB_OK : PMIXFAB_ERR_NOTFOUND;
    if (rc != PMIXFAB_OK || jobs[0].pattern != PMIXFAB_ANY_PATTERN)
        return rc != PMIXFAB_OK ? rc : traffic_assess(t, jobs, n, sharing, jobs[0].pattern, out);
    for (size_t p = 0; p < sizeof(all) / sizeof(all[0]) && rc == PMIXFAB_OK; p++) {
        rc = traffic_assess(t, jobs, n, sharing, all[p], &made);
        if (rc == PMIXFAB_OK && (p == 0 || made.share < out->share))
            *out = made;
    }
    return rc;
}

int fab_traffic_open(const struct pmixfab *fab, struct fab_traffic *t)
{
    const uint32_t n_hosts = fab->meta->n_hosts;

    *t = (struct fab_traffic){0};
    const int rc = fab_net_open(fab, true, &t->net) ?: fab_net_open(fab, false, &t->even);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    FAB_SCRATCH(&t->scratch, &t->links, t->net.n_arcs);
    FAB_SCRATCH(&t->scratch, &t->out, n_hosts);
    FAB_SCRATCH(&t->scratch, &t->in, n_hosts);
    FAB_SCRATCH(&t->scratch, &t->base_links, t->even.n_arcs);
    FAB_SCRATCH(&t->scratch, &t->base_out, n_hosts);
    FAB_SCRATCH(&t->scratch, &t->base_in, n_hosts);
    FAB_SCRATCH(&t->scratch, &t->even_of, t->net.n_arcs);
    FAB_SCRATCH(&t->scratch, &t->ready, n_hosts);
    FAB_SCRATCH(&t->scratch, &t->outside, n_hosts);
    FAB_SCRATCH(&t->scratch, &t->by_spot, n_hosts);
    FAB_SCRATCH(&t->scratch, &t->spot_start, t->net.n_spots + (size_t)2);
    FAB_SCRATCH(&t->scratch, &t->used, t->net.n_spots);
    FAB_SCRATCH(&t->scratch, &t->leaves, fab->meta->n_devices);
    FAB_SCRATCH(&t->scratch, &t->in_job, n_hosts);
    for (uint32_t a = 0; a < t->net.n_arcs && !t->scratch.failed; a++) {
        const struct fab_arc *arc = &t->net.arcs[a];
        t->even_of[a] = fab_net_arc(&t->even, t->even.cell[arc->from], t->even.cell[arc->to], arc->mbps);
    }
    if (!t->scratch.failed)
        return PMIXFAB_OK;
cleanup:
    fab_traffic_close(t);
    return rc != PMIXFAB_OK ? rc : PMIXFAB_ERR_NOMEM;
}

void fab_traffic_close(struct fab_traffic *t)
{
    fab_scratch_free(&t->scratch);
    fab_net_close(&t->net);
    fab_net_close(&t->even);
}

static bool traffic_known(const struct pmixfab_job *job, bool first)
{
    return job->hosts != NULL && job->n > 0 && job->n <= UINT32_MAX &&
           (job->pattern < PMIXFAB_PATTERNS || job->pattern == PMIXFAB_NEIGHBOURS ||
            (first && job->pattern == PMIXFAB_ANY_PATTERN));
}

int pmixfab_traffic_sized(const struct pmixfab *fab, const struct pmixfab_job *jobs, size_t n,
                          enum pmixfab_sharing sharing, struct pmixfab_traffic *out, size_t size)
{
    struct pmixfab_traffic made = {0};
    struct fab_traffic traffic;

    if (fab == NULL || jobs == NULL || n == 0 || out == NULL || size == 0 ||
        (unsigned)sharing > PMIXFAB_SHARED)
        return PMIXFAB_ERR_INVAL;
    for (size_t j = 0; j < n; j++)
        if (!traffic_known(&jobs[j], j == 0))
            return PMIXFAB_ERR_INVAL;
    int rc = fab_traffic_open(fab, &traffic);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_traffic_assess(&traffic, jobs, n, sharing, &made);
    if (rc == PMIXFAB_OK)
        fab_give(out, size, &made, sizeof(made));
    fab_traffic_close(&traffic);
    return rc;
}
