/* What a job is told: which key stands where, what is left out, and what odd jobs and odd snapshots get. */
#include "pmix/launch/launch.h"

#include "pmix/answers/device.h"
#include "pmix/answers/value.h"
#include "test/unit/put_text.h"
#include "test/unit/snapshot_world.h"

#define MAX_PUTS 200000

/* Everything that was put, as copies where it is looked at again. */
struct sink {
    struct {
        pmix_rank_t rank;
        char key[64];
        char first[64]; /* of a string, an array of strings, a node: its name; of peers: the ranks */
        size_t n;       /* of an array; of a number it */
        pmix_data_type_t type;
    } * puts;
    uint32_t n, fail_at;
};

static const char *text_of(const pmix_value_t *value)
{
    if (value->type == PMIX_STRING)
        return value->data.string;
    if (value->type != PMIX_DATA_ARRAY || value->data.darray->size == 0)
        return "";
    const pmix_data_array_t *array = value->data.darray;
    if (array->type == PMIX_STRING)
        return ((char **)array->array)[0];
    return "";
}

static pmix_status_t keep(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    struct sink *sink = to;
    if (sink->n == sink->fail_at)
        return PMIX_ERR_OUT_OF_RESOURCE;
    assert_true(sink->n < MAX_PUTS);
    const char *text = text_of(value);
    if (strcmp(key, PMIX_NODE_INFO_ARRAY) == 0)
        text = ((pmix_info_t *)value->data.darray->array)[0].value.data.string;
    if (strcmp(key, PMIX_SWITCH_PEERS) == 0) {
        const pmix_info_t *one = value->data.darray->array;
        text = ((pmix_info_t *)one->value.data.darray->array)[2].value.data.string;
    }
    sink->puts[sink->n].rank = rank;
    snprintf(sink->puts[sink->n].key, 64, "%s", key);
    snprintf(sink->puts[sink->n].first, 64, "%s", text);
    sink->puts[sink->n].type = value->type;
    sink->puts[sink->n].n = value->type == PMIX_DATA_ARRAY ? value->data.darray->size : value->data.size;
    sink->n++;
    return PMIX_SUCCESS;
}

static struct sink fresh_sink(void)
{
    return (struct sink){.puts = calloc(MAX_PUTS, sizeof(*((struct sink *)NULL)->puts)), .fail_at = FAB_NONE};
}

/* The number of puts of a key at a rank; *last is the last of them. */
static uint32_t count(const struct sink *sink, pmix_rank_t rank, const char *key, uint32_t *last)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sink->n; i++)
        if (sink->puts[i].rank == rank && strcmp(sink->puts[i].key, key) == 0) {
            *last = i;
            n++;
        }
    return n;
}

static const char *first_of(const struct sink *sink, pmix_rank_t rank, const char *key)
{
    uint32_t at = 0;
    return count(sink, rank, key, &at) == 1 ? sink->puts[at].first : NULL;
}

static struct fab_launch_told tell(const struct fab_launch_job *job, struct sink *sink, pmix_status_t wanted)
{
    struct fab_launch_told told;
    assert_int_equal(fab_launch_fill(job, keep, sink, &told), wanted);
    return told;
}

/* fattree3:4 has hosts node0001 to node0016, two a leaf. */
static const char *const hosts[] = {"node0002", "node0001", "node0016", "stranger"};
static const uint32_t host_of[] = {0, 1, 1, 2, FAB_NONE, 3, 0};

static struct fab_launch_job job_of(const struct pmixfab *const *planes, uint32_t n)
{
    return (struct fab_launch_job){.planes = planes,
                                   .n_planes = n,
                                   .hosts = hosts,
                                   .n_hosts = 4,
                                   .host_of = host_of,
                                   .n_ranks = 7,
                                   .here = 1};
}

TEST(test_a_job)
{
    struct world world;
    world_open(&world, "fattree3:4");
    struct pmixfab *fab = layer_open(&world.layers[0]);
    struct sink sink = fresh_sink();
    uint32_t at = 0;
    const struct fab_launch_job job = job_of((const struct pmixfab *const[]){fab}, 1);
    struct fab_launch_told told = tell(&job, &sink, PMIX_SUCCESS);
    assert_int_equal(told.hosts, 3);
    assert_int_equal(told.unknown, 1);
    assert_int_equal(told.planes, 1);
    assert_true(told.peers);
    assert_string_equal(first_of(&sink, PMIX_RANK_WILDCARD, PMIX_FABRIC_GROUPS),
                        "0:node0001,node0002;7:node0016");
    assert_int_equal(count(&sink, PMIX_RANK_WILDCARD, PMIX_NODE_INFO_ARRAY, &at), 3);
    assert_int_equal(count(&sink, PMIX_RANK_WILDCARD, PMIX_QUALIFIED_VALUE, &at), 3);
    /* the ranks of node0001 and node0002 share a leaf; what is asked of a rank here stands at it */
    for (pmix_rank_t rank = 0; rank < 7; rank++) {
        const char *peers = first_of(&sink, rank, PMIX_SWITCH_PEERS);
        if (rank == 4 || rank == 5)
            assert_null(peers);
        else
            assert_string_equal(peers, rank == 3 ? "3" : "0,1,2,6");
        assert_int_equal(count(&sink, rank, PMIX_FABRIC_COORDINATES, &at), rank == 1 || rank == 2);
        assert_int_equal(count(&sink, rank, PMIX_FABRIC_DEVICES, &at), rank == 1 || rank == 2);
    }
    free(sink.puts);
    pmixfab_close(fab);
    world_destroy(&world);
}

/* A host that the library would take for another has a number in its array, and nothing else changes. */
TEST(test_a_host_with_a_number)
{
    struct world world;
    world_open(&world, "fattree3:4");
    struct pmixfab *fab = layer_open(&world.layers[0]);
    struct fab_launch_job job = job_of((const struct pmixfab *const[]){fab}, 1);
    struct fab_launch_told told;
    const char *without = put_text_job(&job, &told),
               *number = printed(" %s/0=%u %u", PMIX_NODEID, PMIX_UINT32, FAB_LAUNCH_NODE);
    for (uint32_t h = 0; h < 4; h++) {
        const char *name = printed("%s: %u %u[ %s/0=%u %s", PMIX_NODE_INFO_ARRAY, PMIX_DATA_ARRAY, PMIX_INFO,
                                   PMIX_HOSTNAME, PMIX_STRING, hosts[h]);
        const char *at = strstr(without, name);
        job.clash = hosts[h];
        char *with = put_text_job(&job, &told);
        assert_true(at != NULL || h == 3);
        if (h == 1 || h == 3) { /* it is this one; it is not in the fabric, and has no array */
            assert_string_equal(with, without);
        } else {
            const size_t n = strlen(without) - strlen(at) + strlen(name);
            assert_memory_equal(with, without, n);
            assert_memory_equal(with + n, number, strlen(number));
            assert_string_equal(with + n + strlen(number), without + n);
        }
        free(with);
    }
    free((void *)without);
    pmixfab_close(fab);
    world_destroy(&world);
}

/* One pmix_coord_t of three numbers, or none; the array on request. */
TEST(test_coordinates)
{
    static const struct {
        const char *fabric;
        bool standard;
        pmix_data_type_t type;
    } cases[] = {{"fattree3:4", false, PMIX_COORD},
                 {"fattree3:4", true, PMIX_DATA_ARRAY},
                 {"mesh:4,4:2", false, PMIX_UNDEF},
                 {"mesh:4,4:2", true, PMIX_DATA_ARRAY}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world world;
        world_open(&world, cases[i].fabric);
        struct pmixfab *fab = layer_open(&world.layers[0]);
        struct sink sink = fresh_sink();
        uint32_t at = 0;
        struct fab_launch_job job = job_of((const struct pmixfab *const[]){fab}, 1);
        job.standard = cases[i].standard;
        tell(&job, &sink, PMIX_SUCCESS);
        uint32_t n = count(&sink, 1, PMIX_FABRIC_COORDINATES, &at);
        bool three = plane_at(fab).dims == 3;
        assert_int_equal(n, cases[i].standard || three);
        if (n > 0)
            assert_int_equal(sink.puts[at].type, cases[i].standard ? PMIX_DATA_ARRAY : PMIX_COORD);
        free(sink.puts);
        pmixfab_close(fab);
        world_destroy(&world);
    }
}

/* A host is found with and without its domain, where no other could be meant. */
TEST(test_domains)
{
    static const char *const names[] = {"node0001.site.example", "node0002", "node0003.other", "node"};
    static const uint32_t ranks[] = {0, 1, 2, 3};
    struct world world;
    world_open(&world, "fattree3:4");
    struct pmixfab *fab = layer_open(&world.layers[0]);
    struct sink sink = fresh_sink();
    const struct fab_launch_job job = {.planes = (const struct pmixfab *const[]){fab},
                                       .n_planes = 1,
                                       .hosts = names,
                                       .n_hosts = 4,
                                       .host_of = ranks,
                                       .n_ranks = 4,
                                       .here = FAB_NONE};
    assert_int_equal(tell(&job, &sink, PMIX_SUCCESS).hosts, 3);
    /* by the name that the launcher gave it: by that it is asked for */
    uint32_t named = 0;
    for (uint32_t i = 0; i < sink.n; i++)
        named += strcmp(sink.puts[i].first, "node0001.site.example") == 0;
    assert_int_equal(named, 1);
    free(sink.puts);
    pmixfab_close(fab);
    world_destroy(&world);
}

/* Two planes with the same hosts, one of them twice; a plane without them. */
TEST(test_several_planes)
{
    struct world world;
    world_open(&world, "fattree3:4");
    struct pmixfab *a = layer_open(&world.layers[0]), *b = layer_open(&world.layers[0]);
    struct sink sink = fresh_sink();
    const struct fab_launch_job job = job_of((const struct pmixfab *const[]){a, b}, 2);
    uint32_t at = 0;
    assert_int_equal(tell(&job, &sink, PMIX_SUCCESS).planes, 2);
    assert_int_equal(count(&sink, 1, PMIX_FABRIC_NUM_DEVICES, &at), 1);
    assert_int_equal(sink.puts[at].n, 2);
    assert_int_equal(count(&sink, 1, PMIX_SWITCH_PEERS, &at), 1);
    assert_int_equal(sink.puts[at].n, 2); /* one a device */
    assert_int_equal(count(&sink, PMIX_RANK_WILDCARD, PMIX_FABRIC_PLANE, &at), 1);
    assert_int_equal(sink.puts[at].n, 2);
    free(sink.puts);
    pmixfab_close(a);
    pmixfab_close(b);
    world_destroy(&world);
}

/* 10,000 ranks on one host: their peers would take half a gigabyte, and are not told. */
TEST(test_many_on_one)
{
    struct world world;
    world_open(&world, "fattree3:4");
    struct pmixfab *fab = layer_open(&world.layers[0]);
    struct sink sink = fresh_sink();
    OWNED(free) uint32_t *ranks = calloc(10000, sizeof(*ranks));
    uint32_t at = 0;
    struct fab_launch_job job = job_of((const struct pmixfab *const[]){fab}, 1);
    job.host_of = ranks;
    job.n_ranks = 10000;
    job.n_hosts = 1;
    job.here = 0;
    tell(&job, &sink, PMIX_SUCCESS);
    assert_int_equal(count(&sink, 9999, PMIX_FABRIC_COORDINATES, &at), 1);
    assert_int_equal(count(&sink, 9999, PMIX_FABRIC_DEVICES, &at), 0);
    assert_int_equal(count(&sink, 9999, PMIX_SWITCH_PEERS, &at), 0);
    assert_int_equal(count(&sink, PMIX_RANK_WILDCARD, PMIX_NODE_INFO_ARRAY, &at), 1);
    free(sink.puts);
    pmixfab_close(fab);
    world_destroy(&world);
}

/* Nothing is known: nothing is put. What is put may fail at any place. */
TEST(test_nothing_and_failures)
{
    struct world world;
    world_open(&world, "fattree3:4");
    struct pmixfab *fab = layer_open(&world.layers[0]);
    struct sink sink = fresh_sink();
    struct fab_launch_job job = job_of(NULL, 0);
    tell(&job, &sink, PMIX_SUCCESS);
    assert_int_equal(sink.n, 0);
    job = job_of((const struct pmixfab *const[]){fab}, 1);
    job.n_hosts = 0;
    job.here = FAB_NONE;
    tell(&job, &sink, PMIX_SUCCESS);
    assert_int_equal(sink.n, 0);
    job = job_of((const struct pmixfab *const[]){fab}, 1);
    tell(&job, &sink, PMIX_SUCCESS);
    for (uint32_t i = 0, all = sink.n; i < all; i++) {
        sink.n = 0;
        sink.fail_at = i;
        tell(&job, &sink, PMIX_ERR_OUT_OF_RESOURCE);
    }
    free(sink.puts);
    pmixfab_close(fab);
    world_destroy(&world);
}

/* Every byte flipped, and cut before every byte, with hashes that fit: something is told of it, or nothing.
 */
TEST(test_lies_everywhere)
{
    struct world world;
    world_open(&world, "fattree2:2,1,2");
    const struct layer *layer = &world.layers[0];
    struct sink sink = fresh_sink();
    uint32_t opened = 0;
    for (size_t i = sizeof(struct snap_head); i < 2 * layer->size; i++) {
        size_t at = i % layer->size, size = i < layer->size ? layer->size : at;
        struct pmixfab *fab = NULL;
        if (size < sizeof(struct snap_head))
            continue;
        OWNED(free) struct snap_head *bytes = malloc(layer->size);
        memcpy(bytes, layer->bytes, layer->size);
        if (i < layer->size)
            ((unsigned char *)bytes)[at] ^= (unsigned char)(1u << at % 8);
        bytes->size = size;
        fab_snapshot_seal(bytes);
        if (pmixfab_open_memory(bytes, size, &fab) != PMIXFAB_OK)
            continue;
        const struct fab_launch_job job = job_of((const struct pmixfab *const[]){fab}, 1);
        sink.n = 0;
        tell(&job, &sink, PMIX_SUCCESS);
        pmixfab_close(fab);
        opened++;
    }
    assert_true(opened > 0);
    free(sink.puts);
    world_destroy(&world);
}
