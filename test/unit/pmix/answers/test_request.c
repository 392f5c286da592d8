/* Directives and qualifiers: what a request may say, and pmix_info_t made from a snapshot. */

#include <pmix.h>

#include "pmix/answers/request.h"
#include "test/unit/test.h"

static const struct pmixfab_plane plane = {
    .index = 3, .name = "ib3", .vendor = "Mellanox", .identifier = "InfiniBand-fe80000000000000"};

static pmix_info_t text(const char *key, const char *value)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, key, value, PMIX_STRING);
    return info;
}

static pmix_info_t number(const char *key, size_t value)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, key, &value, PMIX_SIZE);
    return info;
}

static pmix_status_t parse(pmix_info_t *info, size_t n, struct fab_request *request)
{
    static struct fab_request unused;
    pmix_status_t rc = fab_request_parse(info, n, request == NULL ? &unused : request);
    return rc;
}

static void destroy(pmix_info_t *info, size_t n)
{
    for (size_t i = 0; i < n; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
}

TEST(each_directive_selects)
{
    pmix_info_t right[] = {text(PMIX_FABRIC_PLANE, "ib3"), text(PMIX_FABRIC_VENDOR, "Mellanox"),
                           text(PMIX_FABRIC_IDENTIFIER, "InfiniBand-fe80000000000000"),
                           number(PMIX_FABRIC_INDEX, 3)};
    pmix_info_t wrong[] = {text(PMIX_FABRIC_PLANE, "ib0"), text(PMIX_FABRIC_VENDOR, "HPE"),
                           text(PMIX_FABRIC_IDENTIFIER, "Slingshot"), number(PMIX_FABRIC_INDEX, 0)};
    struct fab_request request;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(parse(&right[i], 1, &request), PMIX_SUCCESS);
        assert_false(fab_request_empty(&request));
        assert_true(fab_request_matches(&request, &plane));
        assert_int_equal(parse(&wrong[i], 1, &request), PMIX_SUCCESS);
        assert_false(fab_request_matches(&request, &plane));
    }
    assert_int_equal(parse(right, 4, &request), PMIX_SUCCESS);
    assert_true(fab_request_matches(&request, &plane));
    pmix_info_t mixed[] = {right[0], wrong[3]};
    assert_int_equal(parse(mixed, 2, &request), PMIX_SUCCESS);
    assert_false(fab_request_matches(&request, &plane));
    destroy(right, 4);
    destroy(wrong, 4);
}

TEST(bad_directives_are_refused)
{
    bool yes = true;
    pmix_info_t info[6] = {text(PMIX_FABRIC_INDEX, "3"), number(PMIX_FABRIC_PLANE, 3),
                           text(PMIX_FABRIC_VENDOR, ""), text("some.key", "x"),
                           text("some.key", "x"),        text(PMIX_FABRIC_PLANE, "a")};
    assert_int_equal(parse(&info[0], 1, NULL), PMIX_ERR_BAD_PARAM);
    assert_int_equal(parse(&info[1], 1, NULL), PMIX_ERR_BAD_PARAM);
    assert_int_equal(parse(&info[2], 1, NULL), PMIX_ERR_BAD_PARAM);
    assert_int_equal(parse(&info[3], 1, NULL), PMIX_SUCCESS); /* unknown and not required */
    PMIX_INFO_REQUIRED(&info[4]);
    assert_int_equal(parse(&info[4], 1, NULL), PMIX_ERR_NOT_SUPPORTED);
    assert_int_equal(parse(NULL, 2, NULL), PMIX_ERR_BAD_PARAM);
    pmix_info_t empty;
    PMIX_INFO_CONSTRUCT(&empty);
    PMIX_LOAD_KEY(empty.key, PMIX_FABRIC_PLANE);
    empty.value.type = PMIX_STRING; /* a string that is not there, as a broken sender packs it */
    assert_int_equal(parse(&empty, 1, NULL), PMIX_ERR_BAD_PARAM);
    PMIX_INFO_LOAD(&empty, PMIX_FABRIC_INDEX, &yes, PMIX_BOOL);
    assert_int_equal(parse(&empty, 1, NULL), PMIX_ERR_BAD_PARAM);
    destroy(info, 6);
}

TEST(a_key_twice)
{
    pmix_info_t same[] = {text(PMIX_FABRIC_PLANE, "ib3"), text(PMIX_FABRIC_PLANE, "ib3")};
    pmix_info_t other[] = {text(PMIX_FABRIC_PLANE, "ib3"), text(PMIX_FABRIC_PLANE, "ib0")};
    pmix_info_t index[] = {number(PMIX_FABRIC_INDEX, 1), number(PMIX_FABRIC_INDEX, 2)};
    assert_int_equal(parse(same, 2, NULL), PMIX_SUCCESS);
    assert_int_equal(parse(other, 2, NULL), PMIX_ERR_BAD_PARAM);
    assert_int_equal(parse(index, 2, NULL), PMIX_ERR_BAD_PARAM);
    destroy(same, 2);
    destroy(other, 2);
    destroy(index, 2);
}

TEST(other_integers_are_indices_too)
{
    uint32_t u32 = 3;
    uint64_t u64 = 3;
    int good = 3, bad = -3;
    pmix_info_t info[4];
    struct fab_request request;
    PMIX_INFO_LOAD(&info[0], PMIX_FABRIC_INDEX, &u32, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[1], PMIX_FABRIC_INDEX, &u64, PMIX_UINT64);
    PMIX_INFO_LOAD(&info[2], PMIX_FABRIC_INDEX, &good, PMIX_INT);
    PMIX_INFO_LOAD(&info[3], PMIX_FABRIC_INDEX, &bad, PMIX_INT);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(parse(&info[i], 1, &request), PMIX_SUCCESS);
        assert_true(fab_request_matches(&request, &plane));
    }
    assert_int_equal(parse(&info[3], 1, &request), PMIX_ERR_BAD_PARAM);
}
