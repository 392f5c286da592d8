/*
 * Endpoints of a job: on a host no two processes have one number of a device, every node says the same of
 * each, and nobody has a number that is not the job's.
 */
#include "pmix/launch/job_endpoints.h"

#include "test/fabrics/details.h"
#include "test/unit/snapshot_world.h"

#define N_RANKS 9
#define MOST    64

static const char *const hosts[] = {"node0001", "stranger", "node0004", "node0002.site"};
static const uint32_t host_of[N_RANKS] = {0, 2, 2, 0, 1, 3, FAB_NONE, 0, 2};

/* What was told: of each rank, and of each node, "device number" in their order. */
struct told {
    char ranks[N_RANKS][4096], nodes[4][4096];
};

static void write_endpoints(const pmix_value_t *value, char *text)
{
    assert_int_equal(value->type, PMIX_DATA_ARRAY);
    assert_int_equal(value->data.darray->type, PMIX_ENDPOINT);
    const pmix_endpoint_t *list = value->data.darray->array;
    text[0] = '\0';
    for (size_t i = 0; i < value->data.darray->size; i++) {
        const size_t len = strlen(text);
        assert_int_equal(list[i].endpt.size, strlen(list[i].endpt.bytes) + 1);
        assert_true(strlen(list[i].osname) > 0);
        snprintf(text + len, 4096 - len, "%s %s;", list[i].uuid, list[i].endpt.bytes);
    }
}

static pmix_status_t endpoints_keep(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    struct told *told = to;
    if (rank != PMIX_RANK_WILDCARD) {
        assert_string_equal(key, PMIX_FABRIC_ENDPT);
        assert_true(rank < N_RANKS);
        write_endpoints(value, told->ranks[rank]);
        return PMIX_SUCCESS;
    }
    assert_string_equal(key, PMIX_NODE_INFO_ARRAY);
    const pmix_info_t *infos = value->data.darray->array;
    assert_string_equal(infos[0].key, PMIX_HOSTNAME);
    for (size_t h = 0; h < 4; h++)
        if (strcmp(infos[0].value.data.string, hosts[h]) == 0)
            write_endpoints(&infos[1].value, told->nodes[h]);
    return PMIX_SUCCESS;
}

static struct fab_launch_job job_on(const struct pmixfab *const *planes, uint32_t n, uint32_t here)
{
    return (struct fab_launch_job){.planes = planes,
                                   .n_planes = n,
                                   .hosts = hosts,
                                   .n_hosts = 4,
                                   .host_of = host_of,
                                   .n_ranks = N_RANKS,
                                   .here = here};
}

/* Each "device number" of the host once. */
static void assert_once(const struct told *told, uint32_t host)
{
    char seen[16384] = ";", one[256];
    for (uint32_t r = 0; r <= N_RANKS; r++) {
        const char *at = r == N_RANKS ? told->nodes[host] : host_of[r] == host ? told->ranks[r] : "";
        for (; *at != '\0'; at = strchr(at, ';') + 1) {
            snprintf(one, sizeof(one), ";%.*s;", (int)strcspn(at, ";"), at);
            assert_null(strstr(seen, one));
            strcat(seen, one + 1);
        }
    }
}

TEST(test_whose_they_are)
{
    WORLD(world, "fattree3:4");
    const struct pmixfab *planes[] = {layer_open(&world.layers[0])};
    const struct fab_blob_endpoints list[] = {{"ib0", 10, 12}, {"ib0", 20, 25}, {"other", 1, 1}};
    const struct fab_blob blob = {.endpoints = list, .n_endpoints = 3, .per_process = 2, .per_node = 3};
    static struct told told, other;
    for (uint32_t here = 0; here < 4; here++) {
        const struct fab_launch_job job = job_on(planes, 1, here);
        memset(&told, 0, sizeof(told));
        assert_int_equal(fab_endpoints_tell(&job, &blob, endpoints_keep, &told), PMIX_SUCCESS);
        for (uint32_t h = 0; h < 4; h++)
            assert_once(&told, h);
        assert_true(here == 0 || memcmp(&told, &other, sizeof(told)) == 0);
        other = told;
    }
    /* the node's own first, then each rank's, in the order of the ranks */
    assert_non_null(strstr(told.nodes[0], " 10;"));
    assert_non_null(strstr(told.nodes[0], " 12;"));
    assert_non_null(strstr(told.ranks[0], " 20;"));
    assert_non_null(strstr(told.ranks[3], " 23;"));
    assert_non_null(strstr(told.ranks[7], " 24;"));
    assert_non_null(strstr(told.ranks[8], " 25;"));
    assert_string_equal(told.ranks[4], ""); /* on a host that the fabric does not know */
    assert_string_equal(told.ranks[6], "");
    OWNED(free) char *text = fab_endpoints_text(&blob, "ib0");
    assert_string_equal(text, "10-12,20-25");
    OWNED(free) char *single = fab_endpoints_text(&blob, "other");
    assert_string_equal(single, "1");
    assert_null(fab_endpoints_text(&blob, "none"));
    pmixfab_close((struct pmixfab *)planes[0]);
}

TEST(test_too_few)
{
    WORLD(world, "fattree3:4");
    const struct pmixfab *planes[] = {layer_open(&world.layers[0])};
    const struct fab_blob_endpoints list[] = {{"ib0", 10, 17}};
    struct fab_blob blob = {.endpoints = list, .n_endpoints = 1, .per_process = 2, .per_node = 2};
    const struct fab_launch_job job = job_on(planes, 1, 0);
    static struct told told;
    assert_int_equal(fab_endpoints_tell(&job, &blob, endpoints_keep, &told), PMIX_SUCCESS);
    memset(&told, 0, sizeof(told));
    blob.per_node = 3;
    assert_int_equal(fab_endpoints_tell(&job, &blob, endpoints_keep, &told), PMIX_ERR_BAD_PARAM);
    for (uint32_t r = 0; r < N_RANKS; r++)
        assert_string_equal(told.ranks[r], "");
    pmixfab_close((struct pmixfab *)planes[0]);
}

/* How many were told, of ranks and of nodes. */
struct told_sum {
    size_t ranks, nodes;
};

static pmix_status_t endpoints_count(void *to, pmix_rank_t rank, const char *key, pmix_value_t *value)
{
    struct told_sum *sum = to;
    (void)key;
    if (rank != PMIX_RANK_WILDCARD)
        sum->ranks += value->data.darray->size;
    else
        sum->nodes += ((pmix_info_t *)value->data.darray->array)[1].value.data.darray->size;
    return PMIX_SUCCESS;
}

/* Of a job with very many only those here, and never more than that. */
TEST(test_too_many)
{
    WORLD(world, "fattree3:4");
    const struct pmixfab *planes[] = {layer_open(&world.layers[0])};
    const struct fab_blob_endpoints list[] = {{"ib0", 1, UINT32_MAX}};
    const uint32_t per_node = 60000, most = (FAB_ENDPOINTS_HERE - per_node) / 3;
    struct fab_blob blob = {.endpoints = list, .n_endpoints = 1, .per_process = most, .per_node = per_node};
    struct fab_launch_job job = job_on(planes, 1, 2);
    struct told_sum sum = {0};
    assert_int_equal(fab_endpoints_tell(&job, &blob, endpoints_count, &sum), PMIX_SUCCESS);
    assert_int_equal(sum.ranks, 3 * most);
    assert_int_equal(sum.nodes, per_node);
    sum = (struct told_sum){0};
    blob.per_process = most + 1;
    assert_int_equal(fab_endpoints_tell(&job, &blob, endpoints_count, &sum), PMIX_ERR_OUT_OF_RESOURCE);
    job.here = FAB_NONE;
    assert_int_equal(fab_endpoints_tell(&job, &blob, endpoints_count, &sum), PMIX_SUCCESS);
    assert_int_equal(sum.ranks + sum.nodes, 0);
    pmixfab_close((struct pmixfab *)planes[0]);
}

/* Each device of a host is told, here four. */
TEST(test_devices)
{
    WORLD(world, "rails:2,4,3,2:5");
    const struct pmixfab *planes[8];
    struct pmixfab_plane plane;
    uint32_t n = 0, found;
    for (; n < world.planes.n && n < 8; n++)
        planes[n] = layer_open(&world.layers[n]);
    const struct fab_launch_job job = job_on(planes, n, 0);
    OWNED(free) const char **names = fab_endpoints_planes(&job, &found);
    assert_non_null(names);
    assert_in_range(found, 1, n);
    assert_int_equal(pmixfab_plane(planes[0], &plane), PMIXFAB_OK);
    assert_string_equal(names[0], plane.name);
    const struct fab_blob_endpoints list[] = {{names[0], 1, MOST}};
    const struct fab_blob blob = {.endpoints = list, .n_endpoints = 1, .per_process = 2};
    static struct told told;
    memset(&told, 0, sizeof(told));
    assert_int_equal(fab_endpoints_tell(&job, &blob, endpoints_keep, &told), PMIX_SUCCESS);
    for (uint32_t h = 0; h < 4; h++)
        assert_once(&told, h);
    assert_string_not_equal(told.ranks[1], "");
    assert_string_equal(told.nodes[2], "");
    const struct fab_job_map map = {.n_hosts = 4, .host_of = (uint32_t *)host_of, .n_ranks = N_RANKS};
    assert_int_equal(fab_endpoints_needed(&map, 5, 2), 17);
    for (uint32_t p = 0; p < n; p++)
        pmixfab_close((struct pmixfab *)planes[p]);
}
