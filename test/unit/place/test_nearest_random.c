/* The nearest device on random machines, against a chooser that counts processor by processor. */
#include "test/unit/place_host.h"
#include "topo/base/cpus.h"

#define CPUS  48
#define RANKS 9
struct machine {
    unsigned n_packages, numas, cpus, total; /* packages, NUMA nodes a package, processors a NUMA node */
    bool interleaved;
    struct place_device devices[6];
    bool near[6][CPUS], same[6][CPUS], known[6];
    unsigned n;
    bool bound[RANKS][CPUS], is_bound[RANKS];
};

static uint64_t machine_dice = 7;
static unsigned throw_dice(unsigned below)
{
    machine_dice = machine_dice * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(machine_dice >> 33) % below;
}

static unsigned package_of(const struct machine *m, unsigned cpu)
{
    return m->interleaved ? cpu % m->n_packages : cpu / (m->numas * m->cpus);
}

static unsigned numa_of(const struct machine *m, unsigned cpu)
{
    const unsigned inside = m->interleaved ? cpu / m->n_packages : cpu % (m->numas * m->cpus);
    return package_of(m, cpu) * m->numas + inside / m->cpus;
}

static const char *list_of(const bool cpus[CPUS])
{
    struct fab_cpus set = {{0}};
    char text[256];
    for (unsigned c = 0; c < CPUS; c++)
        if (cpus[c])
            fab_cpus_add(&set, c);
    return fab_cpus_text(&set, text, sizeof(text)) ? printed("%s", text) : NULL;
}

static void machine_device(struct machine *m, unsigned d)
{
    const unsigned numa = throw_dice(m->n_packages * m->numas), package = numa / m->numas;
    const bool whole = throw_dice(4) == 0; /* attached to a package of several NUMA nodes */
    m->known[d] = throw_dice(8) != 0;
    for (unsigned c = 0; c < m->total && m->known[d]; c++) {
        m->same[d][c] = package_of(m, c) == package;
        m->near[d][c] = whole ? m->same[d][c] : numa_of(m, c) == numa;
    }
    m->devices[d] = (struct place_device){list_of(m->near[d]), list_of(m->same[d]), "x", throw_dice(5) == 0};
}

/* Nothing, one processor, a run of some, a NUMA node, a package, everything, any. */
static void machine_rank(struct machine *m, unsigned r)
{
    const unsigned kind = throw_dice(7), cpu = throw_dice(m->total), length = 1 + throw_dice(5);
    m->is_bound[r] = kind != 0;
    for (unsigned c = 0; c < m->total && kind != 0; c++)
        m->bound[r][c] = c == cpu || (kind == 2 && c >= cpu && c < cpu + length) ||
                         (kind == 3 && numa_of(m, c) == numa_of(m, cpu)) ||
                         (kind == 4 && package_of(m, c) == package_of(m, cpu)) || kind == 5 ||
                         (kind == 6 && throw_dice(2) == 0);
}

static struct machine machine_random(void)
{
    struct machine m = {.n_packages = 1 + throw_dice(3),
                        .numas = 1 + throw_dice(2),
                        .cpus = 1 + throw_dice(8),
                        .interleaved = throw_dice(3) == 0,
                        .n = 1 + throw_dice(6)};
    m.total = m.n_packages * m.numas * m.cpus;
    for (unsigned d = 0; d < m.n; d++)
        machine_device(&m, d);
    for (unsigned r = 0; r < RANKS; r++)
        machine_rank(&m, r);
    return m;
}

static unsigned plain_distance(const struct machine *m, unsigned d, unsigned r)
{
    unsigned least = 9;
    if (!m->is_bound[r])
        return 0;
    if (!m->known[d])
        return 5;
    for (unsigned c = 0; c < CPUS; c++) {
        if (m->bound[r][c] && m->same[d][c] && least > 6)
            least = 6;
        if (m->bound[r][c] && m->near[d][c])
            least = 4;
    }
    return least;
}

/* Of each rank which devices are nearest. Returns how many. */
static unsigned plain_nearest(const struct machine *m, unsigned r, bool nearest[6])
{
    unsigned least = 10, n = 0;
    for (unsigned d = 0; d < m->n; d++)
        if (!m->devices[d].down && plain_distance(m, d, r) < least)
            least = plain_distance(m, d, r);
    for (unsigned d = 0; d < m->n; d++)
        n += nearest[d] = !m->devices[d].down && plain_distance(m, d, r) == least;
    return n;
}

/* Of the sets of processors that devices are attached to, how many there are for each one that is near. */
static unsigned plain_rounds(const struct machine *m, const bool nearest[6])
{
    unsigned all = 0, near = 0;
    for (unsigned d = 0; d < m->n; d++) {
        bool first = m->known[d], first_near = nearest[d] && m->known[d];
        for (unsigned e = 0; e < d; e++) {
            const bool same = m->known[e] && memcmp(m->near[d], m->near[e], sizeof(m->near[d])) == 0;
            first &= !same;
            first_near &= !(same && nearest[e]);
        }
        all += first;
        near += first_near;
    }
    return near > 0 ? all / near : 1;
}

/* The number of the rank's place among the processors that its nearest devices are near to. */
static unsigned plain_turn(const struct machine *m, unsigned r, const bool nearest[6])
{
    unsigned before = 0, own = 0, size = 0;
    bool field[FAB_CPUS_MAX] = {false}, outside = false;
    if (!m->is_bound[r])
        return r;
    for (unsigned c = 0; c < FAB_CPUS_MAX; c++)
        for (unsigned d = 0; d < m->n; d++) {
            const unsigned distance = nearest[d] ? plain_distance(m, d, r) : 0;
            field[c] |= distance == 5 || distance == 9 || (distance == 4 && c < CPUS && m->near[d][c]) ||
                        (distance == 6 && c < CPUS && m->same[d][c]);
        }
    for (unsigned c = 0; c < FAB_CPUS_MAX; c++) {
        const bool mine = c < CPUS && m->bound[r][c];
        size += field[c];
        if (field[c] && mine && !outside)
            own++;
        if (field[c] && !mine) {
            outside |= own > 0;
            before += own == 0;
        }
    }
    return before / own + r / (plain_rounds(m, nearest) * (size / own));
}

static void plain_choose(const struct machine *m, unsigned choice[RANKS])
{
    unsigned users[6] = {0};
    for (unsigned r = 0; r < RANKS; r++)
        choice[r] = UINT32_MAX;
    for (unsigned wide = 1; wide <= m->n; wide++)
        for (unsigned r = 0; r < RANKS; r++) {
            bool nearest[6] = {false};
            unsigned order[6], n = 0, best;
            if (plain_nearest(m, r, nearest) != wide)
                continue;
            for (unsigned d = 0; d < m->n; d++)
                if (nearest[d])
                    order[n++] = d;
            const unsigned turn = plain_turn(m, r, nearest);
            best = order[turn % n];
            for (unsigned i = 1; i < n; i++) {
                const unsigned other = order[(turn + i) % n];
                best = users[other] < users[best] ? other : best;
            }
            choice[r] = best;
            users[best]++;
        }
}

/* By trying every way: can any give the busiest device fewer ranks than `most`? */
static bool can_be_evener(const bool nearest[RANKS][6], unsigned r, unsigned users[6], unsigned most)
{
    if (r == RANKS)
        return true;
    for (unsigned d = 0; d < 6; d++)
        if (nearest[r][d] && users[d] + 1 < most) {
            users[d]++;
            const bool can = can_be_evener(nearest, r + 1, users, most);
            users[d]--;
            if (can)
                return true;
        }
    return false;
}

/* Of any two ranks, have they the same nearest devices, none in common, or one some of the other's? */
static bool is_nested(const struct machine *m)
{
    for (unsigned a = 0; a < RANKS; a++)
        for (unsigned b = 0; b < a; b++) {
            bool of_a[6] = {false}, of_b[6] = {false};
            unsigned common = 0, n_a = plain_nearest(m, a, of_a), n_b = plain_nearest(m, b, of_b);
            for (unsigned d = 0; d < m->n; d++)
                common += of_a[d] && of_b[d];
            if (common != 0 && common != n_a && common != n_b)
                return false;
        }
    return true;
}

TEST(random_machines)
{
    unsigned nested = 0, chosen = 0;
    for (unsigned round = 0; round < 250; round++) {
        const struct machine m = machine_random();
        OWNED(pmixfab_close) struct pmixfab *fab = place_open(m.devices, m.n);
        const char *cpus[RANKS];
        unsigned want[RANKS], users[6] = {0}, most = 0;
        struct pmixfab_nearest got[RANKS];
        bool nearest[RANKS][6] = {{false}};
        for (unsigned r = 0; r < RANKS; r++)
            cpus[r] = m.is_bound[r] ? list_of(m.bound[r]) : NULL;
        plain_choose(&m, want);
        assert_int_equal(pmixfab_nearest(fab, 0, 0, cpus, RANKS, got), 0);
        for (unsigned r = 0; r < RANKS; r++) {
            if (got[r].device != want[r])
                fail_msg("round %u, rank %u (%s): device %u, not %u", round, r, cpus[r], got[r].device,
                         want[r]);
            assert_int_equal(got[r].equal, plain_nearest(&m, r, nearest[r]));
            if (got[r].device == UINT32_MAX)
                continue;
            assert_int_equal(got[r].distance, plain_distance(&m, got[r].device, r));
            assert_false(m.devices[got[r].device].down);
            most = ++users[got[r].device] > most ? users[got[r].device] : most;
            chosen++;
        }
        if (!is_nested(&m))
            continue;
        memset(users, 0, sizeof(users));
        nested++;
        if (most > 0 && can_be_evener(nearest, 0, users, most))
            fail_msg("round %u: the busiest device has %u ranks, and could have fewer", round, most);
    }
    assert_true(nested > 60 && chosen > 1200);
}
