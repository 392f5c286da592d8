/* Ranks on hosts: never worse than the plain order, near the best where all mappings can be tried, and the
 * sizes of all hosts kept. */

#include "fabricctl/run/run.h"
#include "test/unit/test.h"

#define MOST_RANKS 64
#define MOST_HOSTS 16

/* Hosts of a tree: in the order of the fabric, with the cost of the height at which two of them meet. */
struct job {
    uint32_t n_hosts, n_ranks;
    uint32_t slots[MOST_HOSTS];
    uint16_t costs[MOST_HOSTS * MOST_HOSTS];
    uint32_t plain[MOST_RANKS], mapped[MOST_RANKS];
    struct run_traffic traffic;
};

static uint32_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* As ranks fill the hosts one after the other. */
static void fill(struct job *job)
{
    job->n_ranks = 0;
    for (uint32_t h = 0; h < job->n_hosts; h++)
        for (uint32_t k = 0; k < job->slots[h]; k++)
            job->plain[job->n_ranks++] = h;
    memcpy(job->mapped, job->plain, sizeof job->mapped);
}

/* leaf: hosts below a leaf; pod: leaves below a pod. */
static void make_tree(struct job *job, uint32_t n_hosts, uint32_t leaf, uint32_t pod)
{
    job->n_hosts = n_hosts;
    for (uint32_t a = 0; a < n_hosts; a++)
        for (uint32_t b = 0; b < n_hosts; b++)
            job->costs[a * n_hosts + b] = a == b                                 ? 0
                                          : a / leaf == b / leaf                 ? 20
                                          : a / (leaf * pod) == b / (leaf * pod) ? 40
                                                                                 : 60;
    fill(job);
}

static double cost_of(const struct job *job, const uint32_t *host_of)
{
    double cost = 0;
    for (uint32_t r = 0; r < job->n_ranks; r++)
        for (uint32_t e = job->traffic.first[r]; e < job->traffic.first[r + 1]; e++)
            if (job->traffic.to[e] > r)
                cost += job->traffic.bytes[e] *
                        job->costs[host_of[r] * job->n_hosts + host_of[job->traffic.to[e]]];
    return cost;
}

/* The least cost of all mappings: rank by rank, with the slots that are left. */
static double least(const struct job *job, uint32_t *host_of, uint32_t *left, uint32_t rank)
{
    double best = -1;
    if (rank == job->n_ranks)
        return cost_of(job, host_of);
    for (uint32_t h = 0; h < job->n_hosts; h++) {
        if (left[h] == 0)
            continue;
        left[h]--;
        host_of[rank] = h;
        const double cost = least(job, host_of, left, rank + 1);
        best = best < 0 || cost < best ? cost : best;
        left[h]++;
    }
    return best;
}

static double least_of(const struct job *job)
{
    uint32_t host_of[MOST_RANKS], left[MOST_HOSTS];
    memcpy(left, job->slots, sizeof left);
    return least(job, host_of, left, 0);
}

/* Map, and check the sizes and the cost. Return the cost. */
static double map(struct job *job, run_divide_fn *divide)
{
    uint32_t used[MOST_HOSTS] = {0};
    fill(job);
    assert_int_equal(run_map(&job->traffic, job->costs, job->slots, job->n_hosts, divide, job->mapped), 0);
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        assert_in_range(job->mapped[r], 0, job->n_hosts - 1);
        used[job->mapped[r]]++;
    }
    for (uint32_t h = 0; h < job->n_hosts; h++)
        assert_int_equal(used[h], job->slots[h]);
    const double cost = cost_of(job, job->mapped);
    assert_true(cost <= cost_of(job, job->plain));
    assert_true(cost == run_cost(&job->traffic, job->costs, job->n_hosts, job->mapped));
    return cost;
}

static void grid(struct job *job, const char *text)
{
    char why[RUN_WHY] = "";
    if (run_traffic_grid(text, job->n_ranks, &job->traffic, why) != 0)
        fail_msg("%s", why);
}

/* Random messages, as a file. */
static void random_traffic(struct job *job, uint32_t messages)
{
    char path[] = "/tmp/test_ctl_run.XXXXXX", why[RUN_WHY] = "";
    const int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");
    assert_non_null(out);
    fprintf(out, "# from to bytes\n0 1 1\n");
    for (uint32_t i = 0; i < messages; i++)
        fprintf(out, "%u %u\t%u.5\n", draw(job->n_ranks), draw(job->n_ranks), draw(1000));
    fclose(out);
    const int rc = run_traffic_read(path, job->n_ranks, &job->traffic, why);
    remove(path);
    if (rc != 0)
        fail_msg("%s", why);
}

TEST(small_jobs_against_all_mappings)
{
    double found = 0, scotch = 0, best = 0, plain = 0;
    for (uint32_t turn = 0; turn < 40; turn++) {
        struct job job = {0};
        seed = turn;
        for (uint32_t h = 0; h < 4; h++)
            job.slots[h] = 1 + draw(3);
        make_tree(&job, 4, 2, 1);
        random_traffic(&job, 12);
        const double bound = least_of(&job), mine = map(&job, NULL), both = map(&job, run_scotch());
        assert_true(bound <= mine && bound <= both);
        found += mine;
        scotch += both;
        best += bound;
        plain += cost_of(&job, job.plain);
        run_traffic_free(&job.traffic);
    }
    print_message("cost of the plain order %.2f, of the mapping %.3f, with Scotch %.3f (1: the best)\n",
                  plain / best, found / best, scotch / best);
    assert_true(found < 1.05 * best && scotch < 1.05 * best && plain > 1.2 * best);
}

TEST(a_grid_in_blocks)
{
    struct job job = {0};
    for (uint32_t h = 0; h < 4; h++)
        job.slots[h] = 4;
    make_tree(&job, 4, 2, 1);
    grid(&job, "4x4"); /* rows of 4 on each host: 12 pairs leave their host; blocks of 2 x 2: 8 */
    const double cost = map(&job, NULL);
    assert_true(cost < cost_of(&job, job.plain));
    for (uint32_t r = 0; r < 16; r += r % 4 == 2 ? 6 : 2) {
        assert_int_equal(job.mapped[r], job.mapped[r + 1]);
        assert_int_equal(job.mapped[r], job.mapped[r + 4]);
        assert_int_equal(job.mapped[r], job.mapped[r + 5]);
    }
    run_traffic_free(&job.traffic);
}

TEST(grids_and_trees_of_many_sizes)
{
    static const char *const grids[] = {"64", "8x8", "4x4x4", "2x4x8", "2x2x2x2x2x2", "1x64", "32x2"};
    for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
        for (uint32_t leaf = 1; leaf <= 8; leaf++) {
            struct job job = {0};
            uint32_t left = MOST_RANKS;
            seed = leaf;
            for (uint32_t h = 0; h < MOST_HOSTS - 1; h++)
                left -= job.slots[h] = 1 + draw(4);
            job.slots[MOST_HOSTS - 1] = left;
            make_tree(&job, MOST_HOSTS, leaf, 2);
            grid(&job, grids[g]);
            const double mine = map(&job, NULL);
            assert_true(map(&job, run_scotch()) <= 1.3 * mine);
            assert_true(run_map(&job.traffic, job.costs, job.slots, job.n_hosts, run_scotch(), job.mapped) ==
                        0);
            run_traffic_free(&job.traffic);
        }
}

/* A division that is wrong in its sizes is corrected, and one that fails is left out. */
static bool divide_badly(uint32_t n, const uint32_t *first, const uint32_t *to, const double *bytes,
                         uint32_t left, uint8_t *side)
{
    (void)first, (void)to, (void)bytes, (void)left;
    memset(side, n % 2, n);
    return n % 3 != 0;
}

TEST(a_bad_division)
{
    struct job job = {.slots = {3, 1, 5, 7}};
    seed = 5;
    make_tree(&job, 4, 2, 1);
    random_traffic(&job, 40);
    map(&job, divide_badly);
    run_traffic_free(&job.traffic);
}

TEST(no_ranks_meet)
{
    struct job job = {.slots = {1, 1}};
    make_tree(&job, 2, 1, 1);
    grid(&job, "2");
    assert_int_equal(map(&job, run_scotch()), 60);
    run_traffic_free(&job.traffic);
}

TEST(scotch_is_there_if_it_was_found)
{
#ifdef HAVE_SCOTCH
    assert_non_null(run_scotch());
#else
    assert_null(run_scotch());
#endif
}
