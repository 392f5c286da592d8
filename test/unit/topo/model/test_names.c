/* What hosts and devices are called. */
#include "test/unit/handmade.h"

#include <regex.h>

#include "topo/base/text.h"

/* One HCA with this description, named; then host and device. */
static void name_one(const char *pattern, const char *desc, char host[300], char device[300], int *unnamed)
{
    SCOPED(fab_inventory) inv = {0};
    hand_node(&inv, FAB_HCA, 0x2c903000012ab, desc, 1, 0);
    hand_finish(&inv);
    hand_names(&inv, pattern);
    assert_string_equal(fab_str(&inv, inv.nodes[0].desc), desc);
    snprintf(host, 300, "%s", fab_str(&inv, inv.nodes[0].host));
    snprintf(device, 300, "%s", fab_str(&inv, inv.nodes[0].name));
    *unnamed = inv.nodes[0].unnamed;
}

struct naming {
    const char *desc, *host, *device; /* host NULL: by GUID */
};

static void check_namings(const char *pattern, const struct naming *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char host[300], device[300];
        int unnamed;
        name_one(pattern, list[i].desc, host, device, &unnamed);
        assert_string_equal(host, list[i].host == NULL ? "0x0002c903000012ab" : list[i].host);
        assert_string_equal(device, list[i].device);
        assert_int_equal(unnamed, list[i].host == NULL);
    }
}

TEST(test_default_pattern)
{
    static const struct naming list[] = {
        {"node001 HCA-1", "node001", "HCA-1"},
        {"node001 mlx5_0", "node001", "mlx5_0"},
        {"node001 mlx5_bond_0", "node001", "mlx5_bond_0"},
        {"n1.example.org   hfi1_1", "n1.example.org", "hfi1_1"},
        {"gpu-07 ibp65s0_1", "gpu-07", "ibp65s0_1"},
        {"node001", "node001", "HCA-1"},
        {"a_b-c.d", "a_b-c.d", "HCA-1"},
        {"", NULL, "HCA-1"},
        {" ", NULL, "HCA-1"},
        {" node001", "node001", "HCA-1"},
        {"node001 ", "node001", "HCA-1"},
        {"node001 mlx5_0 \n", "node001", "mlx5_0"},
        {"\tnode001 HCA-2", "node001", "HCA-2"},
        {"node017 rocep1s0f1v3", "node017", "rocep1s0f1v3"},
        {"node017 bnxt_re_bond0", "node017", "bnxt_re_bond0"},
        {"node017 mlx5", "node017", "mlx5"},
        {"node017 ibx98039b0300a1b2cd", "node017", "ibx98039b0300a1b2cd"},
        {"node017 rocex98039b0300fa", "node017", "rocex98039b0300fa"},
        {"node017 ibx98039bfa", NULL, "HCA-1"}, /* no GUID */
        {"node017 ibx98039b0300a1b2cdef", NULL, "HCA-1"},
        {"node017 rocex98039b0300fag", NULL, "HCA-1"},
        {"node001\tHCA-1", NULL, "HCA-1"},
        {"node001 HCA-1 more", NULL, "HCA-1"},
        {"-node", NULL, "HCA-1"},
        {"node,1", NULL, "HCA-1"},
        {"n\xc3\xb8"
         "de1 HCA-1",
         NULL, "HCA-1"},
        {"MT4123 ConnectX6   Mellanox Technologies", NULL, "HCA-1"},
        {"Intel Infiniband HCA node017", NULL, "HCA-1"},
        {"(none) mlx5_0", NULL, "HCA-1"},
        {"MT4129", NULL, "HCA-1"},
        {"MT25408 HCA-1", "MT25408", "HCA-1"}, /* somebody gave it a name */
        {"MT412", "MT412", "HCA-1"},
        {"MT4123a", "MT4123a", "HCA-1"},
    };
    check_namings(NULL, list, sizeof(list) / sizeof(list[0]));
    check_namings(FAB_NAMES_PATTERN, list, sizeof(list) / sizeof(list[0]));
}

TEST(test_own_patterns)
{
    static const struct naming rack[] = {
        {"rack7/node12: mlx5_3", "node12", "mlx5_3"},
        {"rack7/node12", "node12", "HCA-1"},
        {"node12", NULL, "HCA-1"},
        {"rack7/: mlx5_3", NULL, "HCA-1"}, /* an empty host is none */
    };
    check_namings("^rack[0-9]+/([a-z0-9]*)(: ([a-z0-9_]+))?$", rack, 4);
    static const struct naming host_only[] = {
        {"MT4123", "MT4123", "HCA-1"}, /* the operator's pattern is taken at its word */
        {"a:b;c,d e", "a?b?c?d e", "HCA-1"},
        {"x\x01y\xff", "x?y?", "HCA-1"},
    };
    check_namings("^(.*)$", host_only, 3);
    static const struct naming device[] = {{"n1 a:b,\x7f.", "n1", "a:b,?."}};
    check_namings("^([^ ]*) (.*)$", device, 1);
    static const struct naming alternative[] = {{"x1", "x1", "HCA-1"}, {"y1", NULL, "HCA-1"}};
    check_namings("^(x.)|y.$", alternative, 2);
}

TEST(test_bad_patterns)
{
    static const char *const bad[] = {"(", "^node[0-9$", "^[a-z]+$", "", "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct fab_names *names = (struct fab_names *)&bad;
        struct fab_err err = {{0}};
        assert_int_equal(fab_names_new(bad[i], &names, &err), PMIXFAB_ERR_SYNTAX);
        assert_null(names);
        assert_non_null(strstr(err.text, "host pattern"));
    }
    fab_names_free(NULL);
}

/* The matcher by hand against the regular expression that it stands for. */
TEST(test_default_by_hand_is_the_pattern)
{
    static const char *const pieces[] = {
        "node", "n",    "0", "17", "HCA-",  "HCA",    "-",  "_",    " ",    "  ",        "mlx5_",
        "mlx",  "ib_0", ".", "A",  "Z9",    "z",      "\t", "\xc3", ":",    "HCA-1",     "_0",
        "hfi1", "MT1",  "M", "é",  " HCA-", " mlx5_", "0_", "9",    " ibx", "0a1b2cdef", " rocex0a1b2cd"};
    regex_t regex;
    uint64_t seed = 1;
    unsigned matched = 0;

    assert_int_equal(regcomp(&regex, FAB_NAMES_PATTERN, REG_EXTENDED), 0);
    for (int round = 0; round < 20000; round++) {
        char desc[80] = "", host[300], device[300], want[300], want_device[300];
        int unnamed;
        regmatch_t groups[4];
        size_t n = fabric_random_next(&seed) % 7;
        for (size_t i = 0; i < n; i++)
            strcat(desc, pieces[fabric_random_next(&seed) % (sizeof(pieces) / sizeof(pieces[0]))]);
        name_one(NULL, desc, host, device, &unnamed);
        size_t len = strlen(desc);
        const char *trimmed = fab_text_trim(desc, &len);
        memmove(desc, trimmed, len + 1);
        desc[len] = '\0';
        if (regexec(&regex, desc, 4, groups, 0) == 0) {
            matched++;
            snprintf(want, sizeof(want), "%.*s", (int)(groups[1].rm_eo - groups[1].rm_so),
                     desc + groups[1].rm_so);
            snprintf(want_device, sizeof(want_device), "HCA-1");
            if (groups[3].rm_so >= 0)
                snprintf(want_device, sizeof(want_device), "%.*s", (int)(groups[3].rm_eo - groups[3].rm_so),
                         desc + groups[3].rm_so);
        } else {
            snprintf(want, sizeof(want), "0x0002c903000012ab");
            snprintf(want_device, sizeof(want_device), "HCA-1");
        }
        if (strncmp(want, "MT", 2) == 0 && strspn(want + 2, "0123456789") == strlen(want + 2) &&
            strlen(want) >= 6 && strchr(desc, ' ') == NULL)
            snprintf(want, sizeof(want), "0x0002c903000012ab");
        assert_string_equal(host, want);
        assert_string_equal(device, want_device);
        assert_int_equal(unnamed, host[0] == '0' && host[1] == 'x');
    }
    assert_true(matched > 1500);
    regfree(&regex);
}

TEST(test_long_descriptions_are_cut)
{
    char desc[5000], host[300], device[300];
    int unnamed;
    memset(desc, 'a', sizeof(desc) - 1);
    desc[sizeof(desc) - 1] = '\0';
    name_one(NULL, desc, host, device, &unnamed);
    assert_int_equal(strlen(host), 64);
    name_one("^(a*)*$", desc, host, device, &unnamed); /* must not take for ever */
}

/* Nodes with a description each, and what they are called: host and name ("" for a switch's host). */
struct called {
    unsigned kind;
    uint64_t guid;
    const char *desc, *host, *name;
};

static void make_nodes(struct fab_inventory *inv, const struct called *nodes, size_t n)
{
    fab_inventory_init(inv);
    for (size_t i = 0; i < n; i++)
        hand_node(inv, nodes[i].kind, nodes[i].guid, nodes[i].desc, nodes[i].kind == FAB_SWITCH ? 36 : 1, 0);
    hand_finish(inv);
}

static void must_be_called(const struct fab_inventory *inv, const struct called *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct fab_node *node = &inv->nodes[fab_inventory_find(inv, nodes[i].guid)];
        assert_string_equal(fab_str(inv, node->host), nodes[i].host);
        assert_string_equal(fab_str(inv, node->name), nodes[i].name);
        assert_int_equal(node->unnamed, 0);
    }
}

TEST(test_devices_without_a_name_are_numbered)
{
    static const struct called nodes[] = {
        {FAB_HCA, 0x15, "b", "b", "HCA-1"},
        {FAB_HCA, 0x14, "a", "a", "HCA-4"},
        {FAB_HCA, 0x13, "a HCA-2", "a", "HCA-2"},
        {FAB_HCA, 0x12, "a", "a", "HCA-3"},
        {FAB_HCA, 0x11, "a mlx5_0", "a", "mlx5_0"},
        {FAB_HCA, 0x10, "a", "a", "HCA-1"},
        {FAB_HCA, 0x0f, "a HCA-2", "a", "HCA-2"},       /* twice one name: both stay */
        {FAB_HCA, 0x0e, "a HCA-0003", "a", "HCA-0003"}, /* another name than HCA-3 */
        {FAB_HCA, 0x0d, "a HCA-99999999999", "a", "HCA-99999999999"},
    };
    SCOPED(fab_inventory) inv;
    make_nodes(&inv, nodes, 9);
    hand_names(&inv, NULL);
    must_be_called(&inv, nodes, 9);
}

TEST(test_others_than_hcas)
{
    static const struct called nodes[] = {
        {FAB_SWITCH, 0x21, "leaf;1:\"a\",\tMF0;x:MQM8700/U1\n", "", "leaf;1:\"a\",?MF0;x:MQM8700/U1"},
        {FAB_SWITCH, 0x31, "MF0;A09-P1-IBLEAF-04-04:MQM9701/U1", "", "A09-P1-IBLEAF-04-04"},
        {FAB_SWITCH, 0x32, "MF0;a:b:MQM9701/U1", "", "a:b"},
        {FAB_SWITCH, 0x3e, " MF0; leaf 04 :MQM9701/U1\n", "", "leaf 04"},
        {FAB_SWITCH, 0x3f, "MF0; :MQM9701/U1", "", "MF0; :MQM9701/U1"},
        {FAB_SWITCH, 0x26, " leaf5 ", "", "leaf5"},
        {FAB_SWITCH, 0x33, "MF0;core:CS7500/L04/U1", "", "core/L04/U1"},
        {FAB_SWITCH, 0x34, "MF0;core:CS7500/S01/U2", "", "core/S01/U2"},
        {FAB_SWITCH, 0x3c, "MF0;core:CS7500/L02:x/U1", "", "core/L02:x/U1"},
        {FAB_SWITCH, 0x3d, "MF0;a/b:MQM9701/U1", "", "MF0;a/b:MQM9701/U1"},
        {FAB_SWITCH, 0x35, "MF0;xdr:Q3400-RA/U4", "", "xdr/U4"},
        {FAB_SWITCH, 0x36, "MF0;:MQM9701/U1", "", "MF0;:MQM9701/U1"},
        {FAB_SWITCH, 0x37, "MF0;a/U1", "", "MF0;a/U1"},
        {FAB_SWITCH, 0x38, "MF0;a:MQM9701", "", "MF0;a:MQM9701"},
        {FAB_SWITCH, 0x39, "MF0;a\x01\xff:X/U1", "", "a??"},
        {FAB_SWITCH, 0x3a, "Quantum Mellanox Technologies", "", "Quantum Mellanox Technologies"},
        {FAB_ROUTER, 0x3b, "MF0;r:X/U1", "", "MF0;r:X/U1"},
        {FAB_SWITCH, 0x22, "", "", "0x0000000000000022"},
        {FAB_SWITCH, 0x23, "   ", "", "0x0000000000000023"},
        {FAB_ROUTER, 0x24, "router", "", "router"},
        {FAB_AGGREGATOR, 0x25, "Mellanox Technologies Aggregation Node", "",
         "Mellanox Technologies Aggregation Node"},
    };
    SCOPED(fab_inventory) inv;
    make_nodes(&inv, nodes, sizeof(nodes) / sizeof(nodes[0]));
    inv.nodes[0].host = inv.nodes[0].unnamed = 1; /* from an earlier naming */
    hand_names(&inv, NULL);
    must_be_called(&inv, nodes, sizeof(nodes) / sizeof(nodes[0]));
    for (uint32_t i = 0; i < inv.n_nodes; i++)
        assert_int_equal(inv.nodes[i].host, 0);
}

TEST(test_a_pattern_for_switches)
{
    static const struct called nodes[] = {
        {FAB_SWITCH, 0x21, "row3 leaf 07 (QM8700)", "", "row3leaf07"},
        {FAB_SWITCH, 0x22, "row3 spine  (QM8700)", "", "row3spine"},
        {FAB_SWITCH, 0x23, "MF0;a:MQM8700/U1", "", "MF0;a:MQM8700/U1"}, /* the default is none any more */
        {FAB_SWITCH, 0x24, "mapped", "", "by map"},
        {FAB_HCA, 0x25, "row3", "row3", "HCA-1"},
    };
    static const char *const bad[] = {"(", "leaf", "", "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)"};
    static const char map[] = "0x24 \"by map\"";
    OWNED(fab_names_free) struct fab_names *names = NULL;
    SCOPED(fab_inventory) inv;
    struct fab_err err = {{0}};
    make_nodes(&inv, nodes, 5);
    must_do(fab_names_new(NULL, &names, fresh_err()));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(fab_names_switches(names, bad[i], &err), PMIXFAB_ERR_SYNTAX);
        assert_non_null(strstr(err.text, "switch pattern"));
    }
    must_do(fab_names_switches(names, NULL, fresh_err()));
    must_do(fab_names_map(names, "m", map, strlen(map), fresh_err()));
    must_do(fab_names_apply(names, &inv, fresh_err()));
    assert_string_equal(fab_str(&inv, inv.nodes[2].name), "a");
    must_do(fab_names_switches(names, "^(row[0-9]+) (leaf|spine) ([0-9]*) \\(", fresh_err()));
    must_do(fab_names_apply(names, &inv, fresh_err()));
    must_be_called(&inv, nodes, 5);
}

static struct fab_names *with_map(const char *text)
{
    struct fab_names *names = NULL;
    assert_int_equal(fab_names_new(NULL, &names, NULL), 0);
    must_do(fab_names_map(names, "site.map", text, strlen(text), fresh_err()));
    return names;
}

TEST(test_map)
{
    static struct called nodes[] = {
        {FAB_HCA, 0x10, "MT4123 ConnectX6   Mellanox Technologies", "login1", "mlx5_2"},
        {FAB_HCA, 0x11, "ignored HCA-1", "big node? 7",
         "HCA-1"}, /* no `host device`: the whole is the host */
        {FAB_HCA, 0x12, "", "login1", "HCA-1"},
        {FAB_HCA, 0x13, "node13 HCA-1", "node13", "HCA-1"},
        {FAB_SWITCH, 0x21, "Quantum", "", "leaf 1"},
        {FAB_SWITCH, UINT64_MAX, "Quantum", "", "last"},
    };
    SCOPED(fab_inventory) inv;
    OWNED(fab_names_free)
    struct fab_names *names = with_map("0x21 \"leaf 1\" # a comment\r\n"
                                       "# comment \"with quotes\"\n\n \t\n"
                                       "\t0x0000000000000010\t\"login1 mlx5_2\"#\n"
                                       "0X11 \"big node, 7\"\n"
                                       "0x12 \"login1\"\n"
                                       "0x21 \"leaf 1\"\n" /* says the same again */
                                       "0xffffffffffffffff \"last\"");
    make_nodes(&inv, nodes, 6);
    assert_int_equal(fab_names_apply(names, &inv, NULL), 0);
    must_be_called(&inv, nodes, 6);

    /* a second file adds, and goes before the first; an empty one changes nothing */
    static const char second[] = "0x12 \"other\"\n0x13 \"thirteen\"\n";
    assert_int_equal(fab_names_map(names, NULL, second, strlen(second), NULL), 0);
    assert_int_equal(fab_names_map(names, NULL, NULL, 0, NULL), 0);
    assert_int_equal(fab_names_apply(names, &inv, NULL), 0);
    nodes[2].host = "other";
    nodes[3].host = "thirteen";
    must_be_called(&inv, nodes, 6);
}

/* Names of several words that are no devices. */
TEST(test_map_of_words)
{
    static const struct called nodes[] = {
        {FAB_HCA, 0x10, "", "gpu7", "HCA-1"},     {FAB_HCA, 0x11, "", "gpu7", "HCA-2"},
        {FAB_HCA, 0x12, "", "gpu8", "mlx5_3"},    {FAB_HCA, 0x13, "", "login 1", "HCA-1"},
        {FAB_HCA, 0x14, "", "login 2", "HCA-1"},  {FAB_HCA, 0x15, "", "mgmt", "HCA-1"},
        {FAB_HCA, 0x16, "", "store a", "HCA-1"},  {FAB_HCA, 0x17, "", "store b", "HCA-1"},
        {FAB_HCA, 0x18, "", "c1.site", "HCA-1"},  {FAB_SWITCH, 0x21, "", "", "leaf of row 1"},
        {FAB_HCA, 0x19, "", "?1 spare", "HCA-1"},
    };
    static const char map[] = "0x10 \"gpu7  MT4119 ConnectX5\"\n0x11 \" gpu7\tMT4123 ConnectX6 \"\n"
                              "0x12 \"gpu8 mlx5_3 (spare)\"\n0x13 \"login 1\"\n0x14 \"login 2\"\n"
                              "0x15 \"mgmt ConnectX-6 Dx\"\n0x16 \"store a\"\n0x17 \"store b\"\n"
                              "0x18 \"c1.site HCA 1\"\n0x21 \" leaf of row 1 \"\n0x19 \",1 spare\"\n";
    SCOPED(fab_inventory) inv;
    OWNED(fab_names_free) struct fab_names *names = with_map(map);
    make_nodes(&inv, nodes, 11);
    assert_int_equal(fab_names_apply(names, &inv, NULL), 0);
    must_be_called(&inv, nodes, 11);
}

/* A name without a blank is not cut up, whatever the pattern takes from descriptions. */
TEST(test_map_and_own_pattern)
{
    static const struct called nodes[] = {
        {FAB_HCA, 0x10, "compute-9", "compute-7", "HCA-1"},
        {FAB_HCA, 0x11, "compute-9", "8", "ib0"},
        {FAB_HCA, 0x12, "compute-9", "login 1", "HCA-1"},
        {FAB_HCA, 0x13, "compute-9", "9", "HCA-1"},
    };
    SCOPED(fab_inventory) inv;
    OWNED(fab_names_free) struct fab_names *names = NULL;
    static const char map[] = "0x10 \"compute-7\"\n0x11 \"compute-8 ib0\"\n0x12 \"login 1\"\n";
    assert_int_equal(fab_names_new("^compute-([0-9]+)( (ib[0-9]))?$", &names, NULL), 0);
    assert_int_equal(fab_names_map(names, NULL, map, strlen(map), NULL), 0);
    make_nodes(&inv, nodes, 4);
    assert_int_equal(fab_names_apply(names, &inv, NULL), 0);
    must_be_called(&inv, nodes, 4);
}

TEST(test_bad_maps)
{
    static const struct {
        const char *text;
        int code;
        const char *message;
    } bad[] = {
        {"leaf1\n", PMIXFAB_ERR_SYNTAX,
         "site.map:1:1: expected a node GUID (0x and up to 16 hexadecimal digits)"},
        {"\n  21 \"x\"", PMIXFAB_ERR_SYNTAX,
         "site.map:2:3: expected a node GUID (0x and up to 16 hexadecimal digits)"},
        {"0x", PMIXFAB_ERR_SYNTAX, "site.map:1:1: expected a node GUID (0x and up to 16 hexadecimal digits)"},
        {"0xg \"x\"", PMIXFAB_ERR_SYNTAX,
         "site.map:1:1: expected a node GUID (0x and up to 16 hexadecimal digits)"},
        {"0x12345678901234567 \"x\"", PMIXFAB_ERR_RANGE,
         "site.map:1:1: a GUID has at most 16 hexadecimal digits"},
        {"0x0 \"x\"", PMIXFAB_ERR_RANGE, "site.map:1:1: GUID 0 is not valid"},
        {"0x21\"x\"", PMIXFAB_ERR_SYNTAX,
         "site.map:1:5: expected white space and a name in double quotes after the GUID"},
        {"0x21", PMIXFAB_ERR_SYNTAX, "site.map:1:5: expected a name in double quotes"},
        {"0x21 # no name", PMIXFAB_ERR_SYNTAX, "site.map:1:6: expected a name in double quotes"},
        {"0x21 leaf1\n", PMIXFAB_ERR_SYNTAX, "site.map:1:6: expected a name in double quotes"},
        {"0x21 \"leaf1\n0x22 \"leaf2\"\n", PMIXFAB_ERR_SYNTAX,
         "site.map:1:6: the name's closing quote is missing"},
        {"0x21 \"\"\n", PMIXFAB_ERR_SYNTAX, "site.map:1:6: an empty name"},
        {"0x21 \" \t\"\n", PMIXFAB_ERR_SYNTAX, "site.map:1:6: an empty name"},
        {"0x21 \"a\" b\n", PMIXFAB_ERR_SYNTAX,
         "site.map:1:10: expected the end of the line or a # comment after the name"},
        {"0x21 \"a\"\n0x22 \"b\"\n 0x21 \"c\"", PMIXFAB_ERR_CONFLICT,
         "site.map:3:2: node 0x0000000000000021 is called \"c\" here and \"a\" in line 1"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        OWNED(fab_names_free) struct fab_names *names = with_map("0x30 \"kept\"\n");
        struct fab_err err = {{0}};
        SCOPED(fab_inventory) inv;
        OWNED(free) char *exact = malloc(strlen(bad[i].text)); /* no 0 behind it: a text has a length */
        memcpy(exact, bad[i].text, strlen(bad[i].text));
        assert_int_equal(fab_names_map(names, "site.map", exact, strlen(bad[i].text), &err), bad[i].code);
        assert_string_equal(err.text, bad[i].message);
        assert_int_equal(fab_names_map(names, NULL, exact, strlen(bad[i].text), NULL), bad[i].code);
        static const struct called nodes[] = {{FAB_SWITCH, 0x21, "desc", "", "desc"},
                                              {FAB_SWITCH, 0x30, "desc", "", "kept"}};
        make_nodes(&inv, nodes, 2); /* nothing of it was taken */
        assert_int_equal(fab_names_apply(names, &inv, NULL), 0);
        must_be_called(&inv, nodes, 2);
    }
}

TEST(test_map_with_odd_bytes)
{
    OWNED(fab_names_free) struct fab_names *names = with_map("0x21 \"a\tb\x1b\xff caf\xc3\xa9\"\n");
    SCOPED(fab_inventory) inv;
    struct fab_err err = {{0}};
    char text[400];

    static const struct called node = {FAB_SWITCH, 0x21, "", "", "a?b?? caf\xc3\xa9"};
    make_nodes(&inv, &node, 1);
    assert_int_equal(fab_names_apply(names, &inv, NULL), 0);
    must_be_called(&inv, &node, 1);

    assert_int_equal(fab_names_map(names, "m", "0x22 \"a\0b\"", 10, &err), PMIXFAB_ERR_SYNTAX);
    assert_string_equal(err.text, "m:1:6: a 0 byte in a name");
    memset(text, 'x', sizeof(text));
    memcpy(text, "0x22 \"", 6);
    text[6 + 256] = '"';
    assert_int_equal(fab_names_map(names, "m", text, 6 + 257, &err), PMIXFAB_ERR_RANGE);
    assert_string_equal(err.text, "m:1:6: a name of 256 bytes; at most 255 are allowed");
    text[6 + 255] = '"';
    assert_int_equal(fab_names_map(names, "m", text, 6 + 256, &err), 0);
}
