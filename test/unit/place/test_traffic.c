/* Expected times of communication patterns, against routes that are followed one by one; and choices by them,
 * against all choices there are. */
#include <math.h>

#include "test/unit/place/place_world.h"

#define MOST_LINKS 4096

static const char *const traffic_fabrics[] = {
    "fattree2:5,2,4",    "fattree3:4",       "dragonfly:2,3,1",  "torus:4,4:2",     "torus:3,3,3:1",
    "mesh:4,4:2",        "rails:4,4,6,2:0",  "rails:4,4,6,2:5",  "rails:3,3,4,2:0", "random:12,40,20:7",
    "random:30,60,40:3", "random:6,20,20:9", "random:8,30,4:11", "uneven:10,30",    "uneven:20,16",
};

/* Bytes on each direction of each cable, and in and out of each host. */
struct plain {
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    struct pmixfab_link links[MOST_LINKS];
    double loads[MOST_LINKS][2], in[1024], out[1024];
    uint32_t hops[1024]; /* to the switch that routes lead to */
    uint32_t *next;      /* per host, 16 devices of it, switch: the way */
};

static void plain_open(struct plain *p, const struct pmixfab *fab)
{
    *p = (struct plain){.fab = fab, .plane = plane_at(fab)};
    assert_true(p->plane.n_links <= MOST_LINKS && p->plane.n_switches <= 1024 && p->plane.n_hosts <= 1024);
    for (uint32_t l = 0; l < p->plane.n_links; l++)
        assert_int_equal(pmixfab_link(fab, l, &p->links[l]), 0);
}

static bool plain_between_switches(const struct plain *p, uint32_t l)
{
    return p->links[l].a.is_switch && p->links[l].b.is_switch;
}

/* By how many hops, and on how many paths, each switch reaches this one: until nothing changes. */
static void plain_route(struct plain *p, uint32_t to)
{
    for (uint32_t s = 0; s < p->plane.n_switches; s++)
        p->hops[s] = s == to ? 0 : UINT32_MAX - 1;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t l = 0; l < 2 * p->plane.n_links; l++) {
            if (!plain_between_switches(p, l / 2))
                continue;
            const uint32_t a = l % 2 ? p->links[l / 2].b.index : p->links[l / 2].a.index,
                           b = l % 2 ? p->links[l / 2].a.index : p->links[l / 2].b.index;
            if (p->hops[b] + 1 < p->hops[a]) {
                p->hops[a] = p->hops[b] + 1;
                changed = true;
            }
        }
    }
}

static double plain_count(const struct plain *p, uint32_t from)
{
    double n = p->hops[from] == 0 ? 1 : 0;
    for (uint32_t l = 0; l < 2 * p->plane.n_links; l++)
        if (plain_between_switches(p, l / 2)) {
            const struct pmixfab_link *link = &p->links[l / 2];
            const uint32_t a = l % 2 ? link->b.index : link->a.index,
                           b = l % 2 ? link->a.index : link->b.index;
            if (a == from && p->hops[b] + 1 == p->hops[a])
                n += plain_count(p, b);
        }
    return n;
}

/* Follow every path from here; `bytes` on each. Returns how many there are. */
static double plain_follow(struct plain *p, uint32_t from, double bytes)
{
    double n = p->hops[from] == 0 ? 1 : 0;
    for (uint32_t l = 0; l < 2 * p->plane.n_links; l++)
        if (plain_between_switches(p, l / 2)) {
            const struct pmixfab_link *link = &p->links[l / 2];
            const uint32_t a = l % 2 ? link->b.index : link->a.index,
                           b = l % 2 ? link->a.index : link->b.index;
            if (a != from || p->hops[b] + 1 != p->hops[a])
                continue;
            const double further = plain_follow(p, b, bytes);
            p->loads[l / 2][l % 2] += bytes * further;
            n += further;
        }
    return n;
}

/* The switches of a host's devices that are up, its slowest rate. */
static uint32_t plain_devices(const struct plain *p, uint32_t host, uint32_t *switches, uint64_t *mbps)
{
    const char *name;
    uint32_t first, devices, n = 0;
    *mbps = UINT64_MAX;
    assert_int_equal(pmixfab_host(p->fab, host, &name, &first, &devices), 0);
    for (uint32_t d = first; d < first + devices; d++) {
        const struct pmixfab_device device = device_at(p->fab, d);
        if (device.state == PMIXFAB_STATE_DOWN)
            continue;
        switches[n++] = device.switch_index;
        *mbps = device.mbps < *mbps ? device.mbps : *mbps;
    }
    return n;
}

/* Ways out of a switch by its ports. */
static uint32_t plain_ways(const struct plain *p, uint32_t from, uint32_t *ways)
{
    uint32_t n = 0, ports[256];
    for (uint32_t l = 0; l < 2 * p->plane.n_links; l++)
        if (plain_between_switches(p, l / 2)) {
            const struct pmixfab_link *link = &p->links[l / 2];
            const struct pmixfab_end *a = l % 2 ? &link->b : &link->a, *b = l % 2 ? &link->a : &link->b;
            if (a->index != from || p->hops[b->index] + 1 != p->hops[from])
                continue;
            uint32_t at = n++;
            for (; at > 0 && ports[at - 1] > a->port; at--) {
                ports[at] = ports[at - 1];
                ways[at] = ways[at - 1];
            }
            ports[at] = a->port;
            ways[at] = l;
        }
    return n;
}

static uint32_t plain_to(const struct plain *p, uint32_t l)
{
    return l % 2 ? p->links[l / 2].a.index : p->links[l / 2].b.index;
}

/* For each device in turn, the least used way at each switch. */
static void plain_assign(struct plain *p)
{
    OWNED(free) uint32_t *used = must_have(2 * (size_t)p->plane.n_links * sizeof(*used));
    uint32_t switches[16], ways[256];
    uint64_t mbps;
    p->next = must_have((size_t)p->plane.n_hosts * 16 * p->plane.n_switches * sizeof(*p->next));
    for (uint32_t h = 0; h < p->plane.n_hosts; h++) {
        const uint32_t n = plain_devices(p, h, switches, &mbps);
        for (uint32_t d = 0; d < n; d++) {
            plain_route(p, switches[d]);
            for (uint32_t s = 0; s < p->plane.n_switches; s++) {
                const uint32_t n_ways = p->hops[s] == 0 ? 0 : plain_ways(p, s, ways);
                uint32_t best = 0;
                for (uint32_t w = 1; w < n_ways; w++)
                    best = used[ways[w]] < used[ways[best]] ? w : best;
                if (n_ways > 0) {
                    used[ways[best]]++;
                    p->next[((size_t)h * 16 + d) * p->plane.n_switches + s] = ways[best];
                }
            }
        }
    }
}

/* Follow the route to a device of a host. Returns the slowest of its cables, if so much is on them. */
static double plain_walk(struct plain *p, uint32_t from, uint32_t host, uint32_t device, double bytes,
                         const struct plain *others)
{
    double slowest = 0;
    while (p->hops[from] > 0) {
        const uint32_t l = p->next[((size_t)host * 16 + device) * p->plane.n_switches + from];
        p->loads[l / 2][l % 2] += bytes;
        if (others != NULL)
            slowest = fmax(slowest, (p->loads[l / 2][l % 2] + others->loads[l / 2][l % 2]) * 8e-6 /
                                        (double)p->links[l / 2].mbps);
        from = plain_to(p, l);
    }
    return slowest;
}

/* others: only look for the slowest cable that a message uses, which is returned. */
static double plain_message(struct plain *p, uint32_t g, uint32_t h, double bytes, bool even,
                            const struct plain *others)
{
    uint32_t from[16], to[16];
    uint64_t mbps;
    double slowest = 0;
    const uint32_t n_from = plain_devices(p, g, from, &mbps), n_to = plain_devices(p, h, to, &mbps);
    p->out[g] += bytes;
    p->in[h] += bytes;
    for (uint32_t i = 0; i < n_from; i++) {
        uint32_t least = UINT32_MAX, equal = 0;
        for (uint32_t j = 0; j < n_to; j++) {
            plain_route(p, to[j]);
            equal = p->hops[from[i]] < least ? 1 : equal + (p->hops[from[i]] == least);
            least = p->hops[from[i]] < least ? p->hops[from[i]] : least;
        }
        for (uint32_t j = 0; j < n_to; j++) {
            plain_route(p, to[j]);
            if (p->hops[from[i]] == least && even)
                plain_follow(p, from[i], bytes / n_from / equal / plain_count(p, from[i]));
            else if (p->hops[from[i]] == least)
                slowest = fmax(slowest, plain_walk(p, from[i], h, j, bytes / n_from / equal, others));
        }
    }
    return slowest;
}

/* The sides of the box that is nearest to a cube, the longest first. */
static void plain_box(uint32_t n, uint32_t *box)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t a = 1; a <= n; a++)
        for (uint32_t b = 1; b <= a; b++)
            for (uint32_t c = 1; c <= b; c++)
                if (a * b * c == n && a * b + a * c + b * c < least) {
                    least = a * b + a * c + b * c;
                    box[0] = a;
                    box[1] = b;
                    box[2] = c;
                }
}

static bool plain_sends(uint32_t pattern, uint32_t round, uint32_t n, uint32_t r, uint32_t q)
{
    uint32_t box[3] = {1, 1, 1}, apart = 0;
    if (r == q)
        return false;
    if (pattern == PMIXFAB_RING)
        return q == (r + 1) % n;
    if (pattern == PMIXFAB_DOUBLING)
        return (r ^ q) == 1u << round;
    if (pattern == PMIXFAB_ALL_TO_ALL)
        return true;
    plain_box(n, box);
    const uint32_t x[] = {r / box[2] / box[1], r / box[2] % box[1], r % box[2]},
                   y[] = {q / box[2] / box[1], q / box[2] % box[1], q % box[2]};
    for (int d = 0; d < 3; d++)
        apart += x[d] > y[d] ? x[d] - y[d] : y[d] - x[d];
    return apart == 1;
}

static uint32_t plain_rounds(uint32_t pattern, uint32_t n)
{
    return n == 1 ? 0 : pattern == PMIXFAB_DOUBLING ? (uint32_t)ceil(log2(n)) : 1;
}

static void plain_round(struct plain *p, const struct pmixfab_job *job, uint32_t round, double bytes,
                        bool even)
{
    for (uint32_t r = 0; r < job->n; r++)
        for (uint32_t q = 0; q < job->n; q++)
            if (plain_sends(job->pattern, round, (uint32_t)job->n, r, q))
                plain_message(p, job->hosts[r], job->hosts[q], bytes, even, NULL);
}

/* Seconds of a round, `own` without what the others do; *n_links: the cables with the highest load. */
static double plain_seconds(const struct plain *own, const struct plain *others, uint32_t *n_links)
{
    double ports = 0, seconds;
    uint32_t switches[16];
    *n_links = 0;
    for (uint32_t h = 0; h < own->plane.n_hosts; h++) {
        uint64_t mbps;
        const uint32_t n = plain_devices(own, h, switches, &mbps);
        if (own->in[h] > 0)
            ports = fmax(ports, (own->in[h] + others->in[h]) / n * 8e-6 / (double)mbps);
        if (own->out[h] > 0)
            ports = fmax(ports, (own->out[h] + others->out[h]) / n * 8e-6 / (double)mbps);
    }
    seconds = ports;
    for (int count = 0; count < 2; count++)
        for (uint32_t l = 0; l < 2 * own->plane.n_links; l++) {
            const double own_load = own->loads[l / 2][l % 2], load = own_load + others->loads[l / 2][l % 2],
                         took = own_load > 0 ? load * 8e-6 / (double)own->links[l / 2].mbps : 0;
            if (count == 0)
                seconds = fmax(seconds, took);
            else
                *n_links += seconds > ports * (1 + 1e-9) && took > seconds * (1 - 1e-9);
        }
    return seconds;
}

static double plain_port(const struct plain *own, const struct plain *others, uint32_t h)
{
    uint32_t switches[16];
    uint64_t mbps;
    const uint32_t n = plain_devices(own, h, switches, &mbps);
    return fmax(own->in[h] > 0 ? own->in[h] + others->in[h] : 0,
                own->out[h] > 0 ? own->out[h] + others->out[h] : 0) /
           n * 8e-6 / (double)mbps;
}

/* Pairs exchange when both are ready. */
static double plain_advance(struct plain *own, const struct plain *others, const struct pmixfab_job *job,
                            uint32_t round, double *ready)
{
    double end = 0;
    for (uint32_t r = 0; r < job->n; r++)
        for (uint32_t q = r + 1; q < job->n; q++)
            if (plain_sends(job->pattern, round, (uint32_t)job->n, r, q)) {
                const uint32_t g = job->hosts[r], h = job->hosts[q];
                double took = fmax(plain_port(own, others, g), plain_port(own, others, h));
                took = fmax(took, plain_message(own, g, h, 0, false, others));
                took = fmax(took, plain_message(own, h, g, 0, false, others));
                ready[r] = ready[q] = fmax(ready[r], ready[q]) + took;
            }
    for (uint32_t r = 0; r < job->n; r++)
        end = fmax(end, ready[r]);
    return end;
}

static void check_traffic(const char *text, const struct pmixfab *fab, const struct pmixfab_job *jobs,
                          uint32_t n, const struct plain *others)
{
    struct pmixfab_traffic traffic;
    OWNED(free) struct plain *own = must_have(sizeof(*own));
    double seconds = 0, slowest = 0, ready[16] = {0};
    uint32_t n_links = 0, round_links;
    assert_int_equal(pmixfab_traffic(fab, jobs, n, PMIXFAB_ALONE, &traffic), 0);
    for (uint32_t round = 0; round < plain_rounds(jobs[0].pattern, (uint32_t)jobs[0].n); round++) {
        plain_open(own, fab);
        own->next = others->next;
        plain_round(own, &jobs[0], round, (double)jobs[0].bytes, false);
        const double took = plain_seconds(own, others, &round_links);
        seconds =
            jobs[0].pattern == PMIXFAB_DOUBLING ? plain_advance(own, others, &jobs[0], round, ready) : took;
        n_links = took > slowest * (1 + 1e-9) ? round_links : n_links;
        slowest = fmax(slowest, took);
    }
    if (fabs(traffic.seconds - seconds) > 1e-9 * seconds || traffic.n_links != n_links ||
        (traffic.link == UINT32_MAX) != (n_links == 0))
        fail_msg("%s, pattern %u, %u hosts: %g s on %u cables, counted %g s on %u", text, jobs[0].pattern,
                 (unsigned)jobs[0].n, traffic.seconds, traffic.n_links, seconds, n_links);
    assert_true(traffic.share <= 1 && traffic.share > 0);
}

static const uint32_t every_pattern[] = {PMIXFAB_ALL_TO_ALL, PMIXFAB_RING, PMIXFAB_DOUBLING,
                                         PMIXFAB_NEIGHBOURS};

static void shuffle(uint32_t *hosts, uint32_t n, uint64_t *dice)
{
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t j = place_roll(dice, i), host = hosts[j];
        hosts[j] = hosts[i - 1];
        hosts[i - 1] = host;
    }
}

TEST(times_are_those_of_all_routes)
{
    uint64_t dice = 5;
    OWNED(free) struct plain *others = must_have(sizeof(*others));
    for (size_t f = 0; f < sizeof(traffic_fabrics) / sizeof(traffic_fabrics[0]); f++) {
        OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(traffic_fabrics[f], &dice);
        for (int i = 0; i < 12; i++) {
            uint32_t hosts[2][16];
            struct pmixfab_job jobs[2];
            for (int j = 0; j < 2; j++) {
                const uint32_t n = place_free_hosts(fab, 80, 1 + place_roll(&dice, 12), &dice, hosts[j]);
                shuffle(hosts[j], n, &dice);
                jobs[j] = (struct pmixfab_job){.hosts = hosts[j],
                                               .n = n,
                                               .bytes = 1000 + place_roll(&dice, 1000),
                                               .pattern = every_pattern[(i + 2 * j) % 4]};
            }
            plain_open(others, fab);
            plain_assign(others);
            OWNED(free) uint32_t *next = others->next;
            check_traffic(traffic_fabrics[f], fab, jobs, 1, others);
            const uint32_t rounds = plain_rounds(jobs[1].pattern, (uint32_t)jobs[1].n);
            for (uint32_t round = 0; round < rounds; round++)
                plain_round(others, &jobs[1], round, (double)jobs[1].bytes / rounds, true);
            check_traffic(traffic_fabrics[f], fab, jobs, 2, others);
        }
    }
}

TEST(shared_means_that_all_other_hosts_are_a_job)
{
    static const char *const fabrics[] = {"fattree2:5,2,4", "rails:4,4,6,2:0", "dragonfly:2,3,1",
                                          "random:12,40,20:7"};
    uint64_t dice = 9;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++)
        for (size_t i = 0; i < 4; i++) {
            OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(fabrics[f], &dice);
            const uint32_t n_hosts = plane_at(fab).n_hosts;
            uint32_t hosts[16], outside[64], n_outside = 0;
            struct pmixfab_traffic shared, among;
            const uint32_t n = place_free_hosts(fab, 60, 2 + place_roll(&dice, 10), &dice, hosts);
            for (uint32_t h = 0; h < n_hosts; h++) {
                bool own = false;
                for (uint32_t k = 0; k < n; k++)
                    own |= hosts[k] == h;
                if (!own)
                    outside[n_outside++] = h;
            }
            const bool all = every_pattern[i] == PMIXFAB_ALL_TO_ALL;
            const uint64_t bytes = n_outside - 1, theirs = all ? n - 1 : n_outside - 1;
            const struct pmixfab_job jobs[] = {
                {.hosts = hosts, .n = n, .bytes = bytes * 1000, .pattern = every_pattern[i]},
                {.hosts = outside, .n = n_outside, .bytes = theirs * 1000, .pattern = every_pattern[i]}};
            assert_int_equal(pmixfab_traffic(fab, jobs, 1, PMIXFAB_SHARED, &shared), 0);
            assert_int_equal(pmixfab_traffic(fab, jobs, 2, PMIXFAB_ALONE, &among), 0);
            assert_float_equal(shared.seconds, among.seconds, 1e-9 * among.seconds);
            assert_int_equal(shared.link, among.link);
        }
}

/* 64 hosts on leaves of eight with four uplinks: on two leaves half of the rate, on four two thirds. */
TEST(more_leaves_have_more_uplinks)
{
    uint64_t dice = 1;
    OWNED(pmixfab_close) struct pmixfab *fab = place_fabric("fattree2:8,4,8", &dice);
    uint32_t hosts[16];
    struct pmixfab_job job = {.hosts = hosts, .n = 16, .pattern = PMIXFAB_ALL_TO_ALL};
    struct pmixfab_traffic traffic;
    struct pmixfab_placement placement;
    assert_int_equal(pmixfab_place(fab, NULL, 0, 16, PMIXFAB_PLACE_SUM, hosts, &placement), 0);
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), 0);
    assert_float_equal(traffic.share, 15.0 / 16, 1e-12); /* 8 x 8 messages on four uplinks */
    assert_int_equal(traffic.n_leaves, 2);
    assert_int_equal(traffic.n_links, 16); /* up and down */
    assert_int_equal(pmixfab_place_for(fab, NULL, 0, 16, PMIXFAB_ALL_TO_ALL, PMIXFAB_ALONE, hosts, &traffic),
                     0);
    assert_float_equal(traffic.share, 1, 1e-12);
    assert_int_equal(traffic.link, UINT32_MAX);
    assert_int_equal(traffic.n_links, 0);
}

/* 2,400 hosts: no tables, and host h has spine h mod 16. */
TEST(in_large_planes_hosts_take_turns)
{
    uint64_t dice = 1;
    OWNED(pmixfab_close) struct pmixfab *fab = place_fabric("fattree2:60,16,40", &dice);
    const uint32_t apart[] = {0, 1, 2, 3, 40, 41, 42, 43}, together[] = {0, 1, 2, 3, 48, 64, 50, 66};
    struct pmixfab_job job = {.hosts = apart, .n = 8, .pattern = PMIXFAB_ALL_TO_ALL};
    struct pmixfab_traffic traffic;
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), 0);
    assert_float_equal(traffic.share, 1, 1e-12);
    job.hosts = together; /* from four hosts to two on one spine, twice */
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), 0);
    assert_float_equal(traffic.share, 7.0 / 8, 1e-12);
    assert_int_equal(traffic.n_links, 4); /* up to two spines, and down */
}

/* ---- choices ---- */

#define MOST 16

static double value_of(const struct pmixfab_traffic *traffic, uint32_t pattern)
{
    return pattern == PMIXFAB_ANY_PATTERN ? 1 / traffic->share : traffic->seconds;
}

/* Over all sets of n hosts, in the order of pmixfab_order(). */
static double least_of_all(const struct pmixfab *fab, const uint32_t *from, uint32_t n_from, uint32_t n,
                           uint32_t pattern, enum pmixfab_sharing sharing)
{
    double least = INFINITY;
    for (uint32_t set = 0; set < 1u << n_from; set++) {
        uint32_t hosts[MOST], k = 0;
        if ((uint32_t)__builtin_popcount(set) != n)
            continue;
        for (uint32_t i = 0; i < n_from; i++)
            if ((set >> i & 1) != 0)
                hosts[k++] = from[i];
        const struct pmixfab_job job = {.hosts = hosts, .n = n, .pattern = pattern};
        struct pmixfab_traffic traffic;
        assert_int_equal(pmixfab_order(fab, hosts, n), 0);
        assert_int_equal(pmixfab_traffic(fab, &job, 1, sharing, &traffic), 0);
        const double value = value_of(&traffic, pattern);
        least = value < least ? value : least;
    }
    return least;
}

static void compare_with_all(const char *text, const struct pmixfab *fab, const uint32_t *from,
                             uint32_t n_from, uint32_t n, uint32_t pattern, enum pmixfab_sharing sharing,
                             double most)
{
    uint32_t hosts[MOST], again[MOST];
    struct pmixfab_traffic traffic, counted;
    struct pmixfab_placement placement;
    const struct pmixfab_job job = {.hosts = hosts, .n = n, .pattern = pattern};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pmixfab_place_for(fab, from, n_from, n, (enum pmixfab_pattern)pattern, sharing,
                                           i == 0 ? again : hosts, &traffic),
                         0);
    assert_memory_equal(hosts, again, n * sizeof(*hosts));
    assert_int_equal(pmixfab_traffic(fab, &job, 1, sharing, &counted), 0);
    assert_float_equal(counted.seconds, traffic.seconds, 1e-9 * traffic.seconds);
    const double value = value_of(&traffic, pattern),
                 least = least_of_all(fab, from, n_from, n, pattern, sharing);
    if (value > most * least + 1e-12)
        fail_msg("%s: %u of %u, pattern %u, sharing %u: %g, best %g", text, n, n_from, pattern, sharing,
                 value, least);
    for (unsigned o = PMIXFAB_PLACE_SUM; o <= PMIXFAB_PLACE_SWITCHES; o += 2) {
        assert_int_equal(pmixfab_place(fab, from, n_from, n, (enum pmixfab_objective)o, hosts, &placement),
                         0);
        assert_int_equal(pmixfab_traffic(fab, &job, 1, sharing, &counted), 0);
        assert_true(value <= value_of(&counted, pattern) * (1 + 1e-9));
    }
}

TEST(of_few_choices_the_fastest_is_found)
{
    static const uint32_t patterns[] = {PMIXFAB_ALL_TO_ALL, PMIXFAB_RING, PMIXFAB_DOUBLING,
                                        PMIXFAB_NEIGHBOURS, PMIXFAB_ANY_PATTERN};
    uint64_t dice = 3;
    for (size_t f = 0; f < sizeof(traffic_fabrics) / sizeof(traffic_fabrics[0]); f++) {
        OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(traffic_fabrics[f], &dice);
        for (size_t i = 0; i < 10; i++) {
            uint32_t from[MOST];
            const uint32_t n_from = place_free_hosts(fab, 60, 10, &dice, from);
            const enum pmixfab_sharing sharing = place_roll(&dice, 2) ? PMIXFAB_SHARED : PMIXFAB_ALONE;
            compare_with_all(traffic_fabrics[f], fab, from, n_from, 1 + place_roll(&dice, n_from),
                             patterns[i % 5], sharing, 1 + 1e-9);
        }
    }
}

/* Of 16 hosts there are too many choices to assess all. */
TEST(of_more_choices_a_fast_one_is_found)
{
    static const char *const fabrics[] = {"torus:4,4:2", "dragonfly:2,3,1", "random:16,40,16:1",
                                          "uneven:14,30"};
    uint64_t dice = 3;
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        OWNED(pmixfab_close) struct pmixfab *fab = place_fabric(fabrics[f], &dice);
        uint32_t from[MOST];
        const uint32_t n_from = place_free_hosts(fab, 80, MOST, &dice, from);
        compare_with_all(fabrics[f], fab, from, n_from, n_from / 2, PMIXFAB_ALL_TO_ALL, PMIXFAB_ALONE, 1.05);
        compare_with_all(fabrics[f], fab, from, n_from, n_from / 2, PMIXFAB_NEIGHBOURS, PMIXFAB_ALONE, 1.25);
    }
}

/* On a plane without cables nobody reaches anybody. */
TEST(hosts_without_a_path_have_no_time)
{
    SCOPED(world) world = {0};
    uint32_t hosts[] = {0, 2};
    struct pmixfab_traffic traffic;
    fab_inventory_init(&world.inv);
    for (uint64_t i = 1; i <= 3; i++)
        world_port(&world, world_node(&world, FAB_HCA, i << 8, printed("lone%u", (unsigned)i), "eth0"), 1,
                   FAB_PORT_ACTIVE);
    world.inv.n_subnets = 1;
    world.inv.subnets[0].prefix = FAB_UNATTACHED;
    assert_int_equal(fab_inventory_finish(&world.inv, NULL), 0);
    world_compute(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    struct pmixfab_job job = {.hosts = hosts, .n = 2, .pattern = PMIXFAB_RING};
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_place_for(fab, NULL, 0, 2, PMIXFAB_RING, PMIXFAB_ALONE, hosts, &traffic),
                     PMIXFAB_ERR_NOTFOUND);
    job.n = 1;
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_SHARED, &traffic), 0);
}

/* Two hosts on one cable: their ports limit. */
TEST(a_cable_between_two_hosts)
{
    SCOPED(world) world = {0};
    struct build b;
    uint32_t hosts[2];
    struct pmixfab_traffic traffic;
    build_begin(&b, &world.inv);
    const uint32_t first = build_hca(&b, build_host(&b), 1, 1, 1),
                   second = build_hca(&b, build_host(&b), 1, 1, 1);
    build_cable(&b, first, 1, second, 1, 4, FAB_HDR);
    assert_int_equal(build_end(&b), 0);
    world_compute(&world);
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    for (unsigned p = 0; p < 4; p++) {
        assert_int_equal(pmixfab_place_for(fab, NULL, 0, 2, (enum pmixfab_pattern)every_pattern[p],
                                           PMIXFAB_SHARED, hosts, &traffic),
                         0);
        assert_float_equal(traffic.seconds, 8.0 * (1 << 20) / 200e9, 1e-12);
        assert_int_equal(traffic.n_leaves, 0);
    }
}

/* Of thousands of hosts, all or all but one. */
TEST(nearly_all_hosts)
{
    uint64_t dice = 1;
    OWNED(pmixfab_close) struct pmixfab *fab = place_fabric("fattree2:60,16,40", &dice);
    OWNED(free) uint32_t *hosts = must_have(2400 * sizeof(*hosts));
    struct pmixfab_traffic traffic;
    for (uint32_t n = 2399; n <= 2400; n++) {
        assert_int_equal(pmixfab_place_for(fab, NULL, 0, n, PMIXFAB_RING, PMIXFAB_SHARED, hosts, &traffic),
                         0);
        assert_int_equal(traffic.n_leaves, 60);
        assert_float_equal(traffic.share, 1, 1e-12);
    }
}

TEST(bad_questions_are_refused)
{
    uint64_t dice = 1;
    OWNED(pmixfab_close) struct pmixfab *fab = place_fabric("fattree2:4,2,3", &dice);
    uint32_t hosts[16] = {0, 1, 2, 1}, beyond[] = {1, 12};
    struct pmixfab_traffic traffic;
    struct pmixfab_job job = {.hosts = hosts, .n = 3, .pattern = PMIXFAB_RING}, other = job;
    struct pmixfab_job jobs[2];
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), 0);
    assert_int_equal(pmixfab_traffic(fab, &job, 0, PMIXFAB_ALONE, &traffic), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_traffic(fab, &job, 1, (enum pmixfab_sharing)2, &traffic), PMIXFAB_ERR_INVAL);
    job.n = 4; /* a host twice */
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), PMIXFAB_ERR_INVAL);
    job.n = 0;
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), PMIXFAB_ERR_INVAL);
    job = (struct pmixfab_job){.hosts = beyond, .n = 2, .pattern = PMIXFAB_RING};
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), PMIXFAB_ERR_INVAL);
    job = (struct pmixfab_job){.hosts = hosts, .n = 3, .pattern = PMIXFAB_PATTERNS};
    assert_int_equal(pmixfab_traffic(fab, &job, 1, PMIXFAB_ALONE, &traffic), PMIXFAB_ERR_INVAL);
    other.pattern = PMIXFAB_ANY_PATTERN;
    jobs[0] = other;
    jobs[1] = other;
    assert_int_equal(pmixfab_traffic(fab, jobs, 1, PMIXFAB_ALONE, &traffic), 0);
    assert_int_equal(pmixfab_traffic(fab, jobs, 2, PMIXFAB_ALONE, &traffic), PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place_for(fab, NULL, 0, 13, PMIXFAB_RING, PMIXFAB_ALONE, hosts, &traffic),
                     PMIXFAB_ERR_NOTFOUND);
    assert_int_equal(pmixfab_place_for(fab, NULL, 0, 0, PMIXFAB_RING, PMIXFAB_ALONE, hosts, &traffic),
                     PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place_for(fab, NULL, 0, 2, PMIXFAB_PATTERNS, PMIXFAB_ALONE, hosts, &traffic),
                     PMIXFAB_ERR_INVAL);
    assert_int_equal(pmixfab_place_for(fab, NULL, 0, 1, PMIXFAB_RING, PMIXFAB_SHARED, hosts, &traffic), 0);
    assert_float_equal(traffic.seconds, 0, 0);
    assert_float_equal(traffic.share, 1, 0);
}
