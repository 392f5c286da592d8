/*
 * The blob of a job: what its nodes tell from it is what they tell from the starter's snapshots; what was
 * cut, changed, is another job's or lies is not believed.
 */
#include "pmix/launch/blob.h"

#include "test/fabrics/details.h"
#include "test/unit/put_text.h"
#include "test/unit/snapshot_world.h"

#define MAX_HOSTS 24
#define MAX_RANKS 96

static uint64_t blob_dice = 11;
static unsigned dice(unsigned below)
{
    return (unsigned)(fabric_random_next(&blob_dice) % below);
}

/* ---- random jobs ------------------------------------------------------------------------------------ */

struct random_job {
    char names[MAX_HOSTS][32];
    const char *hosts[MAX_HOSTS];
    uint32_t n_hosts, host_of[MAX_RANKS], n_ranks;
};

/* Hosts of the plane, some of them with a domain, and some of nobody's. */
static void job_random(struct random_job *job, const struct pmixfab *fab)
{
    const uint32_t n = plane_at(fab).n_hosts;
    *job = (struct random_job){.n_ranks = 1 + dice(MAX_RANKS)};
    bool taken[256] = {false};
    for (uint32_t tries = 0; tries < 1 + dice(MAX_HOSTS); tries++) {
        const char *name = "stranger";
        uint32_t first, devices, host = dice(n + 1);
        if (taken[host] || (host < n && pmixfab_host(fab, host, &name, &first, &devices) != 0))
            continue;
        taken[host] = true;
        snprintf(job->names[job->n_hosts], 32, "%.20s%s", name, dice(5) == 0 ? ".site" : "");
        job->hosts[job->n_hosts] = job->names[job->n_hosts];
        job->n_hosts++;
    }
    for (uint32_t r = 0; r < job->n_ranks; r++)
        job->host_of[r] = job->n_hosts > 0 && dice(20) != 0 ? dice(job->n_hosts) : FAB_NONE;
}

static struct fab_bytes written(const struct fab_blob *blob, const char *const *hosts, uint32_t n)
{
    const struct fab_blob_hosts one = {hosts, n};
    struct fab_bytes bytes;
    assert_int_equal(fab_blob_write(blob, &one, 1, &bytes), PMIXFAB_OK);
    return bytes;
}

/* From each node, and from elsewhere. */
static void compare_nodes(const struct random_job *random, const struct pmixfab *const *planes, uint32_t n,
                          const struct fab_blob *read)
{
    for (uint32_t here = 0; here <= random->n_hosts; here++) {
        struct fab_launch_told told, from_blob;
        struct fab_launch_job job = {.planes = planes,
                                     .n_planes = n,
                                     .hosts = random->hosts,
                                     .n_hosts = random->n_hosts,
                                     .host_of = random->host_of,
                                     .n_ranks = random->n_ranks,
                                     .here = here < random->n_hosts ? here : FAB_NONE,
                                     .standard = dice(2) != 0};
        OWNED(free) char *text = put_text_job(&job, &told);
        job.planes = read->planes;
        job.n_planes = read->n_planes;
        OWNED(free) char *other = put_text_job(&job, &from_blob);
        assert_string_equal(other, text);
        assert_int_equal(from_blob.hosts, told.hosts);
        assert_int_equal(from_blob.unknown, told.unknown);
        assert_int_equal(from_blob.planes, told.planes);
    }
}

static void compare_jobs(const char *fabric, uint64_t seed)
{
    WORLD(world, fabric);
    const struct pmixfab *planes[8];
    uint32_t n = 0;
    SCOPED_BY(fabric_details_destroy) struct fab_details details;
    assert_int_equal(fabric_details(&world.inv, seed, &details), 0);
    for (; n < world.planes.n && n < 8; n++) {
        if (world.planes.n == 1)
            layer_tell(&world.layers[n], &details);
        planes[n] = layer_open(&world.layers[n]);
    }
    for (int round = 0; round < 12; round++) {
        struct random_job job;
        struct fab_blob blob = {.nspace = "job", .id = "", .plane = "", .planes = planes, .n_planes = n},
                        read;
        struct fab_err err = {""};
        job_random(&job, planes[0]);
        struct fab_bytes bytes = written(&blob, job.hosts, job.n_hosts);
        must(fab_blob_read(bytes.at, bytes.n, "job", &read, &err), &err);
        compare_nodes(&job, planes, n, &read);
        fab_blob_free(&read);
        free(bytes.at);
    }
    for (uint32_t p = 0; p < n; p++)
        pmixfab_close((struct pmixfab *)planes[p]);
}

TEST(test_says_what_the_snapshots_say)
{
    for (int i = 0; i < WORLD_FABRICS; i++)
        for (uint64_t seed = 0; seed < 3; seed++)
            compare_jobs(world_fabrics[i], seed);
    compare_jobs("rails:2,4,3,2:5", 1);
}

/* ---- what else is in it ----------------------------------------------------------------------------- */

static const char *const two_hosts[] = {"node0001", "node0016"};

static struct fab_blob a_blob(const struct pmixfab *const *planes)
{
    static const char *const envs[] = {"A=1", "LONG_NAME=with=more", "EMPTY="}, *const parents[] = {"parent"};
    static const struct fab_blob_endpoints endpoints[] = {{"ib0", 7, 9}, {"ib0", 20, 20}, {"ib1", 1, 4}};
    return (struct fab_blob){.nspace = "job@1",
                             .id = "net.1",
                             .plane = "ib0",
                             .endpoints = endpoints,
                             .n_endpoints = 3,
                             .per_process = 2,
                             .per_node = 1,
                             .envs = envs,
                             .n_envs = 3,
                             .parents = parents,
                             .n_parents = 1,
                             .planes = planes,
                             .n_planes = 1,
                             .has_secret = true,
                             .secret = "0123456789012345678901234567890"};
}

TEST(test_everything_arrives)
{
    WORLD(world, "fattree3:4");
    const struct pmixfab *planes[] = {layer_open(&world.layers[0])};
    const struct fab_blob blob = a_blob(planes);
    struct fab_err err = {""};
    struct fab_blob read;
    struct fab_bytes bytes = written(&blob, two_hosts, 2);
    must(fab_blob_read(bytes.at, bytes.n, "job@1", &read, &err), &err);
    assert_string_equal(read.id, "net.1");
    assert_string_equal(read.plane, "ib0");
    assert_int_equal(read.n_endpoints, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(read.endpoints[i].plane, blob.endpoints[i].plane);
        assert_int_equal(read.endpoints[i].first, blob.endpoints[i].first);
        assert_int_equal(read.endpoints[i].last, blob.endpoints[i].last);
    }
    assert_int_equal(read.per_process, 2);
    assert_int_equal(read.per_node, 1);
    assert_int_equal(read.n_envs, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(read.envs[i], blob.envs[i]);
    assert_int_equal(read.n_parents, 1);
    assert_string_equal(read.parents[0], "parent");
    assert_true(read.has_secret);
    assert_memory_equal(read.secret, blob.secret, FAB_BLOB_SECRET);
    fab_blob_free(&read);
    assert_int_equal(fab_blob_read(bytes.at, bytes.n, "job@2", &read, &err), PMIXFAB_ERR_CONFLICT);
    assert_string_equal(err.text, "the launch information is for job job@1");
    free(bytes.at);
    pmixfab_close((struct pmixfab *)planes[0]);
}

/* ---- lies ------------------------------------------------------------------------------------------- */

TEST(test_damaged)
{
    WORLD(world, "fattree3:4");
    const struct pmixfab *planes[] = {layer_open(&world.layers[0])};
    const struct fab_blob blob = a_blob(planes);
    struct fab_blob read;
    struct fab_bytes bytes = written(&blob, two_hosts, 2);
    for (uint32_t n = 0; n < bytes.n; n++) {
        assert_int_not_equal(fab_blob_read(bytes.at, n, "job@1", &read, NULL), PMIXFAB_OK);
        bytes.at[n] ^= 0x10;
        assert_int_not_equal(fab_blob_read(bytes.at, bytes.n, "job@1", &read, NULL), PMIXFAB_OK);
        bytes.at[n] ^= 0x10;
    }
    bytes.at[8]++; /* the version */
    assert_int_equal(fab_blob_read(bytes.at, bytes.n, "job@1", &read, NULL), PMIXFAB_ERR_NEWER);
    bytes.at[8]--;
    assert_int_equal(fab_blob_read(bytes.at, bytes.n, "job@1", &read, NULL), PMIXFAB_OK);
    fab_blob_free(&read);
    free(bytes.at);
    pmixfab_close((struct pmixfab *)planes[0]);
}

/* With a checksum that is right each changed byte is refused, or changes nothing but what is told. */
TEST(test_lying)
{
    static const uint8_t put[] = {0, 1, 0x7f, 0x80, 0xff};
    WORLD(world, "fattree3:4");
    const struct pmixfab *planes[] = {layer_open(&world.layers[0])};
    const struct fab_blob blob = a_blob(planes);
    static const uint32_t host_of[] = {0, 1, 0};
    struct fab_blob read;
    struct fab_bytes bytes = written(&blob, two_hosts, 2);
    uint32_t refused = 0;
    for (uint32_t at = FRAME_HEAD; at < bytes.n; at++)
        for (size_t i = 0; i < sizeof(put); i++) {
            const uint8_t before = bytes.at[at];
            bytes.at[at] = put[i];
            frame_seal(&blob_frame, bytes.at, bytes.n);
            if (fab_blob_read(bytes.at, bytes.n, "job@1", &read, NULL) == PMIXFAB_OK) {
                const struct fab_launch_job job = {.planes = read.planes,
                                                   .n_planes = read.n_planes,
                                                   .hosts = two_hosts,
                                                   .n_hosts = 2,
                                                   .host_of = host_of,
                                                   .n_ranks = 3,
                                                   .here = 0};
                struct fab_launch_told told;
                free(put_text_job(&job, &told));
                fab_blob_free(&read);
            } else {
                refused++;
            }
            bytes.at[at] = before;
        }
    assert_true(refused > 100);
    free(bytes.at);
    pmixfab_close((struct pmixfab *)planes[0]);
}

/* What is allocated is told under no name of the library's. */
TEST(test_bad_ids)
{
    char longer[PMIX_MAX_KEYLEN + 2];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    const char *const ids[] = {"pmix.job.size", "pmix", longer, "net", longer + 1};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const struct fab_blob blob = {.nspace = "job", .id = ids[i], .plane = ""};
        struct fab_blob read;
        struct fab_bytes bytes = written(&blob, NULL, 0);
        assert_int_equal(fab_blob_read(bytes.at, bytes.n, "job", &read, NULL),
                         i < 3 ? PMIXFAB_ERR_CORRUPT : PMIXFAB_OK);
        if (i >= 3)
            fab_blob_free(&read);
        free(bytes.at);
    }
}

/* What no starter may set. */
TEST(test_bad_variables)
{
    static const char *const bad[] = {"=x", "NAME", "PMIX_RANK=1", "FABRICD_SECURITY_KEY=0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct fab_blob blob = {.nspace = "job", .id = "", .plane = "", .envs = &bad[i], .n_envs = 1};
        struct fab_blob read;
        struct fab_bytes bytes = written(&blob, NULL, 0);
        assert_int_equal(fab_blob_read(bytes.at, bytes.n, "job", &read, NULL), PMIXFAB_ERR_CORRUPT);
        free(bytes.at);
    }
}
