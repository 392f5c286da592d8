/* The guard is reached, and questions that the stock library would crash on are refused before it sees them.
 */

#include <pmix.h>
#include <unistd.h>

#include "guard/guard_enter.h"
#include "guard/guard_priv.h"
#include "test/unit/test.h"

#if !GUARD_KNOWS_LIBRARY || PMIX_VERSION_MAJOR < 5
/* The library is not started: what is let through to it gets PMIX_ERR_INIT. */
static pmix_status_t ask(char **keys, pmix_info_t *qualifiers, size_t n)
{
    pmix_query_t query = {.keys = keys, .qualifiers = qualifiers, .nqual = n};
    return PMIx_Query_info_nb(&query, 1, NULL, NULL);
}
#else
#include <src/include/pmix_config.h>

#include <src/client/pmix_client_ops.h>
#include <src/server/pmix_server_ops.h>

static pmix_status_t told;

/* What is let through gets as far as the server program. */
static pmix_status_t program(pmix_proc_t *requestor, pmix_query_t *queries, size_t n,
                             pmix_info_cbfunc_t cbfunc, void *cbdata)
{
    (void)requestor, (void)queries, (void)n, (void)cbfunc, (void)cbdata;
    return PMIX_ERR_INIT;
}

static void on_told(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                    pmix_release_cbfunc_t release, void *release_data)
{
    (void)info, (void)n, (void)cbdata, (void)release, (void)release_data;
    told = status;
}

/* As a server makes it of a message. */
static pmix_status_t ask(char **keys, pmix_info_t *qualifiers, size_t n)
{
    pmix_query_caddy_t *asked = PMIX_NEW(pmix_query_caddy_t);
    PMIX_QUERY_CREATE(asked->queries, 1);
    asked->nqueries = 1;
    asked->cbfunc = on_told;
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++)
        PMIx_Argv_append_nosize(&asked->queries[0].keys, keys[i]);
    asked->queries[0].nqual = n;
    if (qualifiers != NULL)
        PMIX_INFO_CREATE(asked->queries[0].qualifiers, n);
    for (size_t i = 0; qualifiers != NULL && i < n; i++) {
        PMIX_INFO_XFER(&asked->queries[0].qualifiers[i], &qualifiers[i]);
        asked->queries[0].qualifiers[i].value.type = qualifiers[i].value.type;
    }
    pmix_host_server.query = program;
    pmix_parse_localquery(-1, 0, asked);
    return told;
}
#endif

__attribute__((constructor)) static void begin(int argc, char **argv)
{
    (void)argc;
    guard_enter(argv);
}

static const struct pmix_guard *guard(void)
{
    const struct pmix_guard *found = guard_find();
    assert_non_null(found);
    return found;
}

static void wanted(void)
{
    char why[GUARD_WHY];
    if (guard()->why_not(GUARD_REQUESTS, why))
        skip(); /* another version: its own function answers */
    guard()->serve(GUARD_SERVER_FABRIC);
}

/* With the machine's library: where the guard is for a version, none of it may be off without a word. */
TEST(each_is_reached)
{
    char why[GUARD_WHY];
    for (enum guard_part part = GUARD_FABRIC; part <= GUARD_JOBS; part++)
        if (part == GUARD_JOBS ? GUARD_KNOWS_JOBS : GUARD_KNOWS_LIBRARY)
            if (guard()->why_not(part, why))
                fail_msg("%d: %s", (int)part, why);
}

/* For a server that has said nothing of itself only what is any server's is done. */
TEST(other_servers)
{
#if PMIX_VERSION_MAJOR < 5
    assert_int_equal(ask(NULL, NULL, 0), PMIX_ERR_INIT);
#endif
    assert_false(guard()->listen_on(STDIN_FILENO));
}

TEST(no_keys)
{
    char plane[] = PMIX_FABRIC_PLANE;
    char *none[] = {NULL}, *one[] = {plane, NULL};
    wanted();
    assert_int_equal(ask(NULL, NULL, 0), PMIX_ERR_BAD_PARAM);
    assert_int_equal(ask(none, NULL, 0), PMIX_ERR_BAD_PARAM);
    assert_int_equal(ask(one, NULL, 3), PMIX_ERR_BAD_PARAM);
    assert_int_equal(ask(one, NULL, 0), PMIX_ERR_INIT);
}

TEST(qualifiers_of_a_wrong_type)
{
    static const char *const read_by_the_library[] = {
        PMIX_PROCID,
        PMIX_NSPACE,
        PMIX_RANK,
        PMIX_HOSTNAME,
#if PMIX_VERSION_MAJOR < 5
        PMIX_HOST_ATTRIBUTES
#endif
    };
    char plane[] = PMIX_FABRIC_PLANE;
    char *keys[] = {plane, NULL};
    pmix_rank_t rank = 3;
    pmix_info_t info[2];
    size_t number = 7;
    wanted();
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

#if PMIX_VERSION_MAJOR < 5
TEST(more_qualifiers_than_keys_about_attributes)
{
    char support[] = PMIX_QUERY_ATTRIBUTE_SUPPORT;
    char *keys[] = {support, NULL};
    pmix_info_t info[2];
    wanted();
    for (size_t i = 0; i < 2; i++)
        PMIX_INFO_LOAD(&info[i], PMIX_HOST_FUNCTIONS, NULL, PMIX_BOOL);
    assert_int_equal(ask(keys, info, 1), PMIX_ERR_INIT);
    assert_int_equal(ask(keys, info, 2), PMIX_ERR_BAD_PARAM); /* it would read beyond the keys */
}
#endif

TEST(switched_off)
{
    setenv("FABRICD_NO_REPAIR", "1", 1);
    assert_true(guard()->is_off());
#if PMIX_VERSION_MAJOR < 5
    assert_int_equal(ask(NULL, NULL, 0), PMIX_ERR_INIT); /* from 5 on that would be the end */
#endif
    unsetenv("FABRICD_NO_REPAIR");
    assert_false(guard()->is_off());
}
