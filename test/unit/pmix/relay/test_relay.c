/* Answers of a scheduler as a relay reads them: moved where they are good, refused whole where they are not.
 */

#include <pmix.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmix/answers/info.h"
#include "pmix/relay/relay_state.h"
#include "test/unit/test.h"

#define N_GOOD 6

static void load(pmix_pdata_t *data, const char *key, const void *value, pmix_data_type_t type)
{
    PMIX_PDATA_CONSTRUCT(data);
    PMIX_LOAD_KEY(data->key, key);
    PMIX_VALUE_LOAD(&data->value, value, type);
}

static void load_good(pmix_pdata_t *data)
{
    size_t index = 3, devices = 64;
    uint64_t generation = 7;
    load(&data[0], PMIX_FABRIC_INDEX, &index, PMIX_SIZE);
    load(&data[1], PMIX_FABRIC_VENDOR, "vendor", PMIX_STRING);
    load(&data[2], PMIX_FABRIC_IDENTIFIER, "identifier", PMIX_STRING);
    load(&data[3], PMIX_FABRIC_NUM_DEVICES, &devices, PMIX_SIZE);
    load(&data[4], PMIXFAB_KEY_GENERATION, &generation, PMIX_UINT64);
    load(&data[5], "somebody.elses", "key", PMIX_STRING);
}

static void free_all(pmix_pdata_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        PMIX_PDATA_DESTRUCT(&data[i]);
}

static void refused(pmix_pdata_t *data, size_t n, bool whole)
{
    pmix_info_t *info = (void *)data;
    size_t ninfo = 99;
    assert_int_equal(relay_decode(data, n, whole, &info, &ninfo), PMIX_ERR_UNPACK_FAILURE);
    assert_null(info);
    assert_int_equal(ninfo, 0);
}

TEST(test_good)
{
    pmix_pdata_t data[N_GOOD];
    pmix_info_t *info;
    size_t n;
    load_good(data);
    assert_int_equal(relay_decode(data, N_GOOD, true, &info, &n), PMIX_SUCCESS);
    assert_int_equal(n, N_GOOD);
    assert_string_equal(info[1].key, PMIX_FABRIC_VENDOR);
    assert_string_equal(info[1].value.data.string, "vendor");
    assert_int_equal(info[3].value.data.size, 64);
    assert_int_equal(data[1].value.type, PMIX_UNDEF); /* moved, not shared */
    free_all(data, N_GOOD);
    assert_string_equal(info[5].value.data.string, "key");
    PMIX_INFO_FREE(info, n);
}

TEST(test_each_is_needed)
{
    pmix_pdata_t data[N_GOOD + 1];
    pmix_info_t *info;
    size_t n;
    for (size_t i = 0; i < N_GOOD - 1; i++) {
        load_good(data);
        pmix_pdata_t kept = data[i];
        data[i] = data[N_GOOD - 1]; /* missing */
        refused(data, N_GOOD - 1, true);
        data[N_GOOD - 1] = kept;
        data[N_GOOD] = kept; /* twice */
        refused(data, N_GOOD + 1, true);
        data[N_GOOD].value.type = PMIX_BOOL; /* of another type */
        data[N_GOOD - 1] = data[N_GOOD];
        refused(data, N_GOOD, true);
        data[N_GOOD - 1] = kept;
        assert_int_equal(relay_decode(data, N_GOOD, true, &info, &n), PMIX_SUCCESS);
        PMIX_INFO_FREE(info, n);
        free_all(data, N_GOOD);
    }
}

TEST(test_values_that_nobody_could_read)
{
    static char *strings[] = {"a", NULL};
    static pmix_data_array_t array = {.type = PMIX_STRING, .size = 2, .array = strings};
    const pmix_value_t bad[] = {
        {.type = PMIX_UNDEF},
        {.type = PMIX_POINTER, .data.ptr = strings},
        {.type = PMIX_STRING, .data.string = NULL},
        {.type = PMIX_BYTE_OBJECT, .data.bo = {NULL, 5}},
        {.type = PMIX_DATA_ARRAY, .data.darray = NULL},
        {.type = PMIX_DATA_ARRAY, .data.darray = &(pmix_data_array_t){.type = PMIX_SIZE, .size = 3}},
        {.type = PMIX_DATA_ARRAY, .data.darray = &array},
        {.type = PMIX_COORD, .data.coord = NULL},
        {.type = PMIX_GEOMETRY, .data.geometry = NULL},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        pmix_pdata_t data;
        PMIX_PDATA_CONSTRUCT(&data);
        PMIX_LOAD_KEY(data.key, "any");
        data.value = bad[i];
        refused(&data, 1, false);
    }
}

TEST(test_keys_and_nothing)
{
    pmix_pdata_t data;
    uint64_t value = 1;
    refused(NULL, 0, false);
    refused(NULL, 3, false);
    load(&data, "", &value, PMIX_UINT64);
    refused(&data, 1, false);
    memset(data.key, 'x', sizeof(data.key)); /* no end */
    refused(&data, 1, false);
    refused(&data, 0, false);
}

/* ---- news --------------------------------------------------------------------------------------- */

struct arrays {
    pmix_data_array_t indices, generations, names;
};

static void load_news(pmix_pdata_t *data, struct arrays *a)
{
    static size_t indices[] = {0, 4};
    static uint64_t generations[] = {9, 3};
    static char *names[] = {"ib0", "a name that is longer than sixty-three characters, which no plane's is"};
    static const char *const keys[] = {RELAY_INDICES, RELAY_GENERATIONS, RELAY_NAMES};
    uint64_t generation = 9;
    int64_t published = -5;
    load(&data[0], PMIXFAB_KEY_GENERATION, &generation, PMIX_UINT64);
    load(&data[1], FAB_KEY_PUBLISHED, &published, PMIX_INT64);
    a->indices = (pmix_data_array_t){.type = PMIX_SIZE, .size = 2, .array = indices};
    a->generations = (pmix_data_array_t){.type = PMIX_UINT64, .size = 2, .array = generations};
    a->names = (pmix_data_array_t){.type = PMIX_STRING, .size = 2, .array = names};
    pmix_data_array_t *arrays[] = {&a->indices, &a->generations, &a->names};
    for (size_t i = 0; i < 3; i++) {
        PMIX_PDATA_CONSTRUCT(&data[2 + i]);
        PMIX_LOAD_KEY(data[2 + i].key, keys[i]);
        data[2 + i].value.type = PMIX_DATA_ARRAY;
        data[2 + i].value.data.darray = arrays[i];
    }
}

TEST(test_news)
{
    pmix_pdata_t data[5];
    struct arrays arrays;
    struct relay_news news;
    load_news(data, &arrays);
    assert_int_equal(relay_decode_news(data, 5, &news), PMIX_SUCCESS);
    assert_int_equal(news.generation, 9);
    assert_int_equal(news.published, -5);
    assert_int_equal(news.n, 2);
    assert_int_equal(news.planes[1].index, 4);
    assert_int_equal(news.planes[1].generation, 3);
    assert_string_equal(news.planes[0].name, "ib0");
    assert_int_equal(strlen(news.planes[1].name), sizeof(news.planes[1].name) - 1);
    free(news.planes);
    assert_int_equal(relay_decode_news(data, 2, &news), PMIX_SUCCESS); /* nothing published */
    assert_int_equal(news.n, 0);
    assert_null(news.planes);
    assert_false(news.stale);
    PMIX_LOAD_KEY(data[2].key, PMIXFAB_KEY_STALE);
    data[2].value.type = PMIX_BOOL;
    data[2].value.data.flag = true;
    assert_int_equal(relay_decode_news(data, 3, &news), PMIX_SUCCESS);
    assert_true(news.stale && news.n == 0);
}

TEST(test_news_that_are_none)
{
    pmix_pdata_t data[5];
    struct arrays arrays;
    struct relay_news news;
    assert_int_equal(relay_decode_news(NULL, 5, &news), PMIX_ERR_UNPACK_FAILURE);
    for (size_t i = 0; i < 5; i++) {
        load_news(data, &arrays);
        data[i].key[0] = 'X';
        assert_int_equal(relay_decode_news(data, 5, &news), PMIX_ERR_UNPACK_FAILURE);
        load_news(data, &arrays);
        data[i].value.type = PMIX_BOOL;
        assert_int_equal(relay_decode_news(data, 5, &news), PMIX_ERR_UNPACK_FAILURE);
    }
    load_news(data, &arrays);
    arrays.names.size = 1;
    assert_int_equal(relay_decode_news(data, 5, &news), PMIX_ERR_UNPACK_FAILURE);
    load_news(data, &arrays);
    arrays.indices.size = arrays.generations.size = RELAY_MAX_PLANES + 1;
    assert_int_equal(relay_decode_news(data, 5, &news), PMIX_ERR_UNPACK_FAILURE);
    load_news(data, &arrays);
    arrays.indices.type = PMIX_UINT32;
    assert_int_equal(relay_decode_news(data, 5, &news), PMIX_ERR_UNPACK_FAILURE);
}

TEST(test_changed)
{
    struct relay_plane p[] = {{0, 5, "ib0"}, {1, 3, "ib1"}}, q[] = {{0, 6, "ib0"}, {2, 6, "ib2"}}, *out;
    struct relay_news before = {5, 100, 2, p, false}, after = {6, 200, 2, q, false};
    uint32_t n;
    assert_int_equal(relay_changed(&before, &after, &out, &n), PMIXFAB_OK);
    assert_int_equal(n, 3);
    assert_int_equal(out[0].index, 0); /* changed */
    assert_int_equal(out[1].index, 2); /* came */
    assert_int_equal(out[2].index, 1); /* went, in the generation that took it */
    assert_int_equal(out[2].generation, 6);
    free(out);
    assert_int_equal(relay_changed(&before, &before, &out, &n), PMIXFAB_OK);
    assert_int_equal(n, 0);
    free(out);
    struct relay_news other = before; /* the same numbers, and another history */
    other.published = 101;
    assert_int_equal(relay_changed(&before, &other, &out, &n), PMIXFAB_OK);
    assert_int_equal(n, 2);
    free(out);
}

/* A thousand servers that try again at the same moment come evenly over the time that there is. */
TEST(test_pauses_are_spread)
{
    enum { SERVERS = 8000, PARTS = 8 };
    static const unsigned pauses[] = {50, 800, 5000};
    assert_int_equal(relay_with_jitter(0), 0);
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        unsigned parts[PARTS] = {0}, pause = pauses[i];
        for (int server = 0; server < SERVERS; server++) {
            const int64_t ms = relay_with_jitter(pause) - pause / 2;
            assert_true(ms >= 0 && ms <= pause);
            parts[ms * PARTS / (pause + 1)]++;
        }
        for (int part = 0; part < PARTS; part++) /* 1000 +- 30, and the rest of an uneven division */
            assert_true(parts[part] > 750 && parts[part] < 1250);
    }
}
