/* Questions that the stock library would crash on are refused before it sees them. */

#include <pmix.h>

#include "mca/repairs/repair.h"
#include "test/unit/test.h"

/* The library is not started: what is let through to it gets PMIX_ERR_INIT. */
static pmix_status_t ask(char **keys, pmix_info_t *qualifiers, size_t n)
{
    pmix_query_t query = {.keys = keys, .qualifiers = qualifiers, .nqual = n};
    return PMIx_Query_info_nb(&query, 1, NULL, NULL);
}

static void wanted(void **state)
{
    (void)state;
    if (!fab_repair_wanted(FAB_REPAIR_REQUESTS))
        skip(); /* another version: its own function answers */
}

TEST(no_keys)
{
    char plane[] = PMIX_FABRIC_PLANE;
    char *none[] = {NULL}, *one[] = {plane, NULL};
    wanted(state);
    assert_int_equal(ask(NULL, NULL, 0), PMIX_ERR_BAD_PARAM);
    assert_int_equal(ask(none, NULL, 0), PMIX_ERR_BAD_PARAM);
    assert_int_equal(ask(one, NULL, 3), PMIX_ERR_BAD_PARAM);
    assert_int_equal(ask(one, NULL, 0), PMIX_ERR_INIT);
}

TEST(qualifiers_of_a_wrong_type)
{
    static const char *const read_by_the_library[] = {PMIX_PROCID, PMIX_NSPACE, PMIX_RANK, PMIX_HOSTNAME,
                                                      PMIX_HOST_ATTRIBUTES};
    char plane[] = PMIX_FABRIC_PLANE;
    char *keys[] = {plane, NULL};
    pmix_rank_t rank = 3;
    pmix_info_t info[2];
    size_t number = 7;
    wanted(state);
    for (size_t i = 0; i < sizeof(read_by_the_library) / sizeof(read_by_the_library[0]); i++) {
        PMIX_INFO_LOAD(&info[0], read_by_the_library[i], &number, PMIX_SIZE);
        assert_int_equal(ask(keys, info, 1), PMIX_ERR_BAD_PARAM);
    }
    PMIX_INFO_LOAD(&info[0], PMIX_RANK, &rank, PMIX_PROC_RANK); /* of no namespace */
    assert_int_equal(ask(keys, info, 1), PMIX_ERR_BAD_PARAM);
    PMIX_INFO_LOAD(&info[1], PMIX_NSPACE, "job", PMIX_STRING);
    assert_int_equal(ask(keys, info, 2), PMIX_ERR_INIT);
    PMIX_INFO_DESTRUCT(&info[1]);
    PMIX_INFO_CONSTRUCT(&info[0]);
    info[0].value.type = PMIX_STRING; /* a string that is not there */
    assert_int_equal(ask(keys, info, 1), PMIX_ERR_BAD_PARAM);
}

TEST(more_qualifiers_than_keys_about_attributes)
{
    char support[] = PMIX_QUERY_ATTRIBUTE_SUPPORT;
    char *keys[] = {support, NULL};
    pmix_info_t info[2];
    wanted(state);
    for (size_t i = 0; i < 2; i++)
        PMIX_INFO_LOAD(&info[i], PMIX_HOST_FUNCTIONS, NULL, PMIX_BOOL);
    assert_int_equal(ask(keys, info, 1), PMIX_ERR_INIT);
    assert_int_equal(ask(keys, info, 2), PMIX_ERR_BAD_PARAM); /* it would read beyond the keys */
}

TEST(switched_off)
{
    setenv("FABRICD_NO_REPAIR", "1", 1);
    assert_false(fab_repair_wanted(FAB_REPAIR_REQUESTS));
    assert_int_equal(ask(NULL, NULL, 0), PMIX_ERR_INIT);
    unsetenv("FABRICD_NO_REPAIR");
}
