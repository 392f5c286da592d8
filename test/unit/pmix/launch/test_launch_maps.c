/* What a starter says of its job: the maps of nodes and processes, and patterns of variables. */
#include <pmix.h>
#include <pmix_server.h>

#include "pmix/launch/blob.h"
#include "pmix/launch/job_map.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

/* ---- maps ------------------------------------------------------------------------------------------- */

static int parse(char *const *nodes, char *const *ranks, struct fab_job_map *map)
{
    struct fab_err err = {""};
    int rc = fab_job_map_parse(nodes, ranks, map, &err);
    assert_int_equal(err.text[0] == '\0', rc == PMIXFAB_OK);
    return rc;
}

TEST(test_maps)
{
    static const uint32_t wanted[] = {0, 0, 2, 0, 0, 1, 2};
    struct fab_job_map map;
    assert_int_equal(
        parse((char *const[]){"a", "b", "c", NULL}, (char *const[]){"0-1,3-4", "5", "2,6", NULL}, &map),
        PMIXFAB_OK);
    assert_int_equal(map.n_hosts, 3);
    assert_string_equal(map.hosts[2], "c");
    assert_int_equal(map.n_ranks, 7);
    assert_memory_equal(map.host_of, wanted, sizeof(wanted));
    fab_job_map_free(&map);
}

TEST(test_maps_that_disagree)
{
    static char *const nodes[] = {"a", "b", NULL};
    static char *const bad[][4] = {{"0", NULL},
                                   {"0", "1", "2", NULL},
                                   {"0", "", NULL},
                                   {"0", "0", NULL},
                                   {"0", "2", NULL},
                                   {"0", "1-0", NULL},
                                   {"0", "1,", NULL},
                                   {"0", ",1", NULL},
                                   {"0", "x", NULL},
                                   {"0", "1-", NULL},
                                   {"0", "-1", NULL},
                                   {"0", "1 ", NULL},
                                   {"0", "1-4294967295", NULL},
                                   {"0-1", "1", NULL},
                                   {"0", "99999999999999999999", NULL}};
    struct fab_job_map map;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse(nodes, bad[i], &map), PMIXFAB_ERR_INVAL);
        fab_job_map_free(&map);
    }
    assert_int_equal(parse((char *const[]){"a", "a", NULL}, (char *const[]){"0", "1", NULL}, &map),
                     PMIXFAB_ERR_INVAL);
    fab_job_map_free(&map);
}

/* ---- their texts ------------------------------------------------------------------------------------ */

static void has(char **list, const char *wanted)
{
    char text[512] = "";
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s|", list[i]);
    assert_string_equal(text, wanted);
    fab_map_free(list);
}

TEST(test_texts)
{
    has(fab_map_nodes("pmix[node[4:1-3,10],login,n[1:8-10]-ib.x,[2:7]]"),
        "node0001|node0002|node0003|node0010|login|n8-ib.x|n9-ib.x|n10-ib.x|07|");
    has(fab_map_nodes("a,b-1.site"), "a|b-1.site|");
    has(fab_map_ranks("pmix[0-3;4,5]"), "0-3|4,5|");
    has(fab_map_ranks("0;1"), "0|1|");
    has(fab_map_ranks("raw:0;1"), "0|1|");
    has(fab_map_nodes("raw:a,b"), "a|b|");
    static const char *const bad[] = {"",
                                      "pmix[",
                                      "pmix[]",
                                      "pmix[a",
                                      "pmix[a,]",
                                      "pmix[,a]",
                                      "pmix[n[]]",
                                      "pmix[n[2]]",
                                      "pmix[n[2:]]",
                                      "pmix[n[2:1-]]",
                                      "pmix[n[2:3-1]]",
                                      "pmix[n[2:1,]]",
                                      "pmix[n[2:1][2:1]]",
                                      "pmix[n]2[]",
                                      "pmix[n[10:1]]",
                                      "pmix[n[2:1x]]",
                                      "pmix[n[1:0-99999999]]",
                                      "a[",
                                      "a]",
                                      "pmix[n[x:1]]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        has(fab_map_nodes(bad[i]), "");
    has(fab_map_ranks(""), "");
    has(fab_map_ranks("pmix[]"), "");
    has(fab_map_ranks("pmix[0;;1]"), "");
}

/* What the library writes, and we read. Names of several forms it brings into another order, so here is one
 * at a time. */
TEST(test_the_librarys_own)
{
    static pmix_server_module_t functions;
    uint64_t dice = 5;
    assert_int_equal(PMIx_server_init(&functions, NULL, 0), PMIX_SUCCESS);
    for (int round = 0; round < 300; round++) {
        char names[4096] = "", wanted[4096] = "", *regex = NULL;
        for (unsigned i = 0, n = 1 + fabric_random_next(&dice) % 30; i < n; i++) {
            static const char *const forms[] = {"n%u", "node%03u", "r%u-ib", "x-%u", "%u", "gpu%02ua"};
            char name[32];
            snprintf(name, sizeof(name), forms[round % 6],
                     i + (unsigned)(fabric_random_next(&dice) % 3) * 40);
            sprintf(names + strlen(names), i == 0 ? "%s" : ",%s", name);
            sprintf(wanted + strlen(wanted), "%s|", name);
        }
        assert_int_equal(PMIx_generate_regex(names, &regex), PMIX_SUCCESS);
        has(fab_map_nodes(regex), wanted);
        free(regex);
    }
    assert_int_equal(PMIx_server_finalize(), PMIX_SUCCESS);
}

/* ---- variables -------------------------------------------------------------------------------------- */

static bool fits(const char *patterns, const char *name)
{
    return fab_forward_fits(patterns, name, strlen(name));
}

TEST(test_patterns)
{
    static const struct {
        const char *patterns, *name;
        bool fits;
    } cases[] = {{"UCX_*", "UCX_TLS", true},
                 {"UCX_*", "UCX_", true},
                 {"UCX_*", "MY_UCX_TLS", false},
                 {"UCX", "UCX_TLS", false},
                 {"UCX_TL?", "UCX_TLS", true},
                 {"UCX_TL?", "UCX_TL", false},
                 {"A;B,C*", "B", true},
                 {"A;B,C*", "CX", true},
                 {"A;B,C*", "AB", false},
                 {"*", "ANY", true},
                 {"?", "", false},
                 {"", "", false},
                 {"A??E*", "ABBEYS", true},
                 {";;A", "A", true},
                 {NULL, "A", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(fits(cases[i].patterns, cases[i].name), cases[i].fits);
    assert_false(fab_forward_wrong("UCX_*;A?B,C*"));
    assert_true(fab_forward_wrong("UCX_*_TLS"));
    assert_true(fab_forward_wrong("A=B"));
    assert_false(fab_forward_wrong(NULL));
}

TEST(test_harvest)
{
    static char *const env[] = {"UCX_TLS=rc",
                                "UCX_LOG=no",
                                "HOME=/root",
                                "PMIX_RANK=3",
                                "PMIX_MCA_x=1",
                                "odd",
                                "FABRICD_SECURITY_KEY=1",
                                "UCX_X=a=b",
                                NULL};
    const char *const patterns[] = {"UCX_*;UCX_TLS", "*"};
    uint32_t n;
    OWNED(free) const char **found = fab_forward_harvest(env, patterns, 1, "UCX_L?G", &n);
    assert_int_equal(n, 2);
    assert_string_equal(found[0], "UCX_TLS=rc");
    assert_string_equal(found[1], "UCX_X=a=b");
    OWNED(free) const char **all = fab_forward_harvest(env, patterns, 2, NULL, &n);
    assert_int_equal(n, 5);
    assert_string_equal(all[3], "PMIX_MCA_x=1");
}
