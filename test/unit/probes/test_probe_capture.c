/* The reader of captures: strange ones, broken ones, cut ones. */
#include "test/fabrics/fabrics.h"
#include "test/unit/probe_files.h"

/* ---- a small capture, and changes of it ---- */

static const char base[] =
    "#\n"                                                                          /* 1 */
    "# Initiated from node 0000000000000011 port 0000000000000012\n"               /* 2 */
    "\n"                                                                           /* 3 */
    "vendid=0x2c9\n"                                                               /* 4 */
    "devid=0xd2f0\n"                                                               /* 5 */
    "sysimgguid=0x21\n"                                                            /* 6 */
    "switchguid=0x21(21)\n"                                                        /* 7 */
    "Switch\t8 \"S-0000000000000021\"\t\t# \"leaf\" base port 0 lid 1 lmc 0\n"     /* 8 */
    "[1]\t\"H-0000000000000011\"[1](12) \t\t# \"n1\" lid 2 4xHDR\n"                /* 9 */
    "[2]\t\"H-0000000000000013\"[1](14) \t\t# \"n2\" lid 3 4xHDR\n"                /* 10 */
    "\n"                                                                           /* 11 */
    "vendid=0x2c9\n"                                                               /* 12 */
    "devid=0x101b\n"                                                               /* 13 */
    "sysimgguid=0x11\n"                                                            /* 14 */
    "caguid=0x11\n"                                                                /* 15 */
    "Ca\t1 \"H-0000000000000011\"\t\t# \"n1\"\n"                                   /* 16 */
    "[1](12) \t\"S-0000000000000021\"[1]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xHDR\n"  /* 17 */
    "\n"                                                                           /* 18 */
    "vendid=0x2c9\n"                                                               /* 19 */
    "devid=0x101b\n"                                                               /* 20 */
    "sysimgguid=0x13\n"                                                            /* 21 */
    "caguid=0x13\n"                                                                /* 22 */
    "Ca\t1 \"H-0000000000000013\"\t\t# \"n2\"\n"                                   /* 23 */
    "[1](14) \t\"S-0000000000000021\"[2]\t\t# lid 3 lmc 0 \"leaf\" lid 1 4xHDR\n"; /* 24 */

/* base with the n-th `from` (0: the first) replaced; every `from` when n < 0. Free it. */
static char *change(const char *from, const char *to, int n)
{
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    bool done = false;
    int seen = 0;
    for (const char *p = base; *p != '\0';) {
        if (strncmp(p, from, strlen(from)) == 0 && (n < 0 || seen++ == n)) {
            fputs(to, f);
            p += strlen(from);
            done = true;
        } else {
            fputc(*p++, f);
        }
    }
    fclose(f);
    assert_true(done);
    return out;
}

static struct fab_inventory changed(const char *from, const char *to, int n)
{
    OWNED(free) char *text = change(from, to, n);
    struct fab_inventory inv;
    parse(text, strlen(text), &inv);
    return inv;
}

TEST(test_base)
{
    SCOPED(fab_inventory) inv;
    parse(base, strlen(base), &inv);
    assert_int_equal(inv.n_nodes, 3);
    assert_int_equal(inv.n_ports, 4);
    assert_int_equal(inv.n_dangling, 0);
    assert_int_equal(inv.n_subnets, 1);
    assert_int_equal(inv.subnets[0].prefix, FAB_DEFAULT_PREFIX);
    const struct fab_node *leaf = &inv.nodes[fab_inventory_find(&inv, 0x21)];
    assert_int_equal(leaf->kind, FAB_SWITCH);
    assert_int_equal(leaf->num_ports, 8);
    assert_int_equal(leaf->lid, 1);
    assert_int_equal(leaf->line, 8);
    const struct fab_port *port = &inv.ports[fab_inventory_port(&inv, fab_inventory_find(&inv, 0x13), 1)];
    assert_int_equal(port->guid, 0x14);
    assert_int_equal(port->lid, 3);
    assert_int_equal(port->state, FAB_PORT_ACTIVE);
    assert_int_equal(port->width, 4);
    assert_int_equal(port->speed, FAB_HDR);
    assert_int_equal(port->line, 24);
}

/* Each is read, and says what is expected of node 0x13's description and of its port. */
TEST(test_variants)
{
    static const struct {
        const char *from, *to;
        int n;
        const char *desc;
        unsigned width, speed;
    } cases[] = {
        {"\n", "\r\n", -1, "n2", 4, FAB_HDR},
        {"#\n", "\xef\xbb\xbf#\n", 0, "n2", 4, FAB_HDR},
        {"# \"n2\"\n", "# \"say \"hi\" to n2\"\n", 0, "say \"hi\" to n2", 4, FAB_HDR},
        {"# \"n2\"\n", "# \"\"\n", 0, "", 4, FAB_HDR},
        {"# \"n2\"\n", "# \" n 2 \"\n", 0, "n 2", 4, FAB_HDR},
        {"# \"n2\"\n", "# \"kn\xc3\xb6t\xe2\x82\xac\"\n", 0, "kn\xc3\xb6t\xe2\x82\xac", 4, FAB_HDR},
        {"# \"n2\"\n", "# \"a\x01\x1b[31m\x7f\t\xff\"\n", 0, "a\x01\x1b[31m\x7f\t\xff", 4, FAB_HDR},
        {"# \"n2\"\n", "# \"n2\" (scp)\n", 0, "n2", 4, FAB_HDR},
        {"lid 1 4xHDR\n", "lid 1 2xHDR\n", 1, "n2", 2, FAB_HDR},
        {"lid 1 4xHDR\n", "lid 1 4xNDR\n", 1, "n2", 4, FAB_NDR},
        {"lid 1 4xHDR\n", "lid 1 12xXDR\n", 1, "n2", 12, FAB_XDR},
        {"lid 1 4xHDR\n", "lid 1 4xFDR10\n", 1, "n2", 4, FAB_FDR10},
        {"lid 1 4xHDR\n", "lid 1 1xSDR s=1 w=1 v=4\n", 1, "n2", 1, FAB_SDR},
        {"lid 1 4xHDR\n", "lid 1 4x???\n", 1, "n2", 4, FAB_SPEED_UNKNOWN},
        {"lid 1 4xHDR\n", "lid 1 ?????\n", 1, "n2", 0, FAB_SPEED_UNKNOWN},
        {"lid 1 4xHDR\n", "lid 1 ?x?\n", 1, "n2", 0, FAB_SPEED_UNKNOWN},
        {"lid 1 4xHDR\n", "lid 1 ??DDR\n", 1, "n2", 0, FAB_DDR},
        {"lid 1 4xHDR\n", "lid 1 4xHDR", 1, "n2", 4, FAB_HDR}, /* no line end in the last line */
        {"[1]\t", "[1][ext 17]\t", 0, "n2", 4, FAB_HDR},
        {"sysimgguid=0x13\n", "", 0, "n2", 4, FAB_HDR},
        {"sysimgguid=0x13\n", "sysimgguid=0x13\t\t# Chassis 3 (x) slot 4\n", 0, "n2", 4, FAB_HDR},
        {"sysimgguid=0x13\n", "\t\t# Chassis 3\n", 0, "n2", 4, FAB_HDR},
        {"base port", "enhanced port", 0, "n2", 4, FAB_HDR},
        {"#\n", "Chassis 1 (guid 0x5)\n\nNon-Chassis Nodes\nHostname: x\n", 0, "n2", 4, FAB_HDR},
        {"#\n", "DR path slid 0; dlid 0; 0 -> new ca {1} portnum 1 lid 1-1 \"x\"\nLid 3 -> known x\n", 0,
         "n2", 4, FAB_HDR},
        {"#\n", "ibwarn: [1] _do_madrpc: recv failed\nsrc/query_smp.c:228; mad (DR path) bad status 110\n", 0,
         "n2", 4, FAB_HDR},
        {"Ca\t1", "Ca   1", 1, "n2", 4, FAB_HDR},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_inventory) inv = changed(cases[i].from, cases[i].to, cases[i].n);
        uint32_t n2 = fab_inventory_find(&inv, 0x13);
        const struct fab_port *port = &inv.ports[fab_inventory_port(&inv, n2, 1)];
        assert_string_equal(fab_str(&inv, inv.nodes[n2].desc), cases[i].desc);
        assert_int_equal(port->width, cases[i].width);
        assert_int_equal(port->speed, cases[i].speed);
        assert_int_equal(inv.n_dangling, 0);
    }
}

TEST(test_kinds)
{
    static const struct {
        const char *from, *to;
        int n;
        enum fab_node_kind kind;
    } cases[] = {
        {"# \"n2\"\n", "# \"Mellanox Technologies Aggregation Node\"\n", 0, FAB_AGGREGATOR},
        {"devid=0x101b\n", "devid=0xcf09\n", 1, FAB_AGGREGATOR},
        {"devid=0x101b\n", "devid=0xd2f4\n", 1, FAB_AGGREGATOR},
        {"devid=0x101b\n", "devid=0x1021\n", 1, FAB_HCA},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_inventory) inv = changed(cases[i].from, cases[i].to, cases[i].n);
        assert_int_equal(inv.nodes[fab_inventory_find(&inv, 0x13)].kind, cases[i].kind);
        assert_int_equal(inv.nodes[fab_inventory_find(&inv, 0x11)].kind, FAB_HCA);
    }
}

/* Each is refused with this code, and the message begins with this place and has these words in it. */
TEST(test_refused)
{
    static const struct {
        const char *from, *to;
        int n, code;
        const char *place, *words;
    } cases[] = {
        {"S-0000000000000021\"\t", "S-0000000000000011\"\t", 0, PMIXFAB_ERR_CONFLICT, "c.txt:8:10:", "GUID"},
        {"caguid=0x13\nCa\t1 \"H-0000000000000013\"", "caguid=0x11\nCa\t1 \"H-0000000000000011\"", 0,
         PMIXFAB_ERR_CONFLICT, "c.txt:23:6:", "second record"},
        {"(14)", "(12)", -1, PMIXFAB_ERR_CONFLICT, "c.txt:24:", "port GUID"},
        {"\"S-0000000000000021\"[2]", "\"S-0000000000000021\"[1]", 0, PMIXFAB_ERR_CONFLICT,
         "c.txt:10:5:", "c.txt:24 contradicts it"},
        {"\"H-0000000000000013\"[1](14)", "\"H-0000000000000013\"[1](15)", 0, PMIXFAB_ERR_CONFLICT,
         "c.txt:10:5:", "port GUID"},
        {"[2]\t", "[0]\t", 0, PMIXFAB_ERR_RANGE, "c.txt:10:2:", "1 to 254"},
        {"[2]\t", "[255]\t", 0, PMIXFAB_ERR_RANGE, "c.txt:10:2:", "1 to 254"},
        {"[2]\t", "[9]\t", 0, PMIXFAB_ERR_RANGE, "c.txt:10:2:", "1 to 8"},
        {"[2]\t", "[1]\t", 0, PMIXFAB_ERR_CONFLICT, "c.txt:10:2:", "second line"},
        {"[2]\t", "[1000000000000000000000000000000]\t", 0, PMIXFAB_ERR_RANGE, "c.txt:10:2:", "1 to 254"},
        {"[2]\t", "[4294967298]\t", 0, PMIXFAB_ERR_RANGE, "c.txt:10:2:", "1 to 254"},
        {"[2]\t", "[-2]\t", 0, PMIXFAB_ERR_SYNTAX, "c.txt:10:2:", "number"},
        {"[2]\t", "[2\t", 0, PMIXFAB_ERR_SYNTAX, "c.txt:10:3:", "`]`"},
        {"\"H-0000000000000013\"[1]", "\"H-0000000000000013\"[0]", 0, PMIXFAB_ERR_RANGE,
         "c.txt:10:26:", "1 to 254"},
        {"\"H-0000000000000013\"[1]", "\"H-0000000000000013\"[2]", 0, PMIXFAB_ERR_RANGE,
         "c.txt:10:5:", "no port 2"},
        {"Switch\t8", "Switch\t0", 0, PMIXFAB_ERR_RANGE, "c.txt:8:8:", "1 to 254"},
        {"Switch\t8", "Switch\t255", 0, PMIXFAB_ERR_RANGE, "c.txt:8:8:", "1 to 254"},
        {"Switch\t8", "Switch\t", 0, PMIXFAB_ERR_SYNTAX, "c.txt:8:", "number"},
        {"Ca\t1 \"H", "Ca\t1 \"S", 0, PMIXFAB_ERR_CONFLICT, "c.txt:16:6:", "named"},
        {"0xd2f0", "0x1000000000000000000000000", 0, PMIXFAB_ERR_RANGE, "c.txt:5:9:", "device id"},
        {"0xd2f0", "0x10000", 0, PMIXFAB_ERR_RANGE, "c.txt:5:9:", "device id"},
        {"0xd2f0", "d2f0", 0, PMIXFAB_ERR_SYNTAX, "c.txt:5:7:", "`0x`"},
        {"0xd2f0", "0xd2f0z", 0, PMIXFAB_ERR_SYNTAX, "c.txt:5:13:", "unexpected"},
        {"sysimgguid=0x21", "sysimgguid=0x10000000000000000", 0, PMIXFAB_ERR_RANGE, "c.txt:6:14:", "system"},
        {"\"S-0000000000000021\"\t", "\"S-0000000000000000\"\t", 0, PMIXFAB_ERR_RANGE, "c.txt:8:10:", "zero"},
        {"\"S-0000000000000021\"\t", "\"X-0000000000000021\"\t", 0, PMIXFAB_ERR_SYNTAX,
         "c.txt:8:10:", "node"},
        {"\"S-0000000000000021\"\t", "\"S-10000000000000021\"\t", 0, PMIXFAB_ERR_RANGE,
         "c.txt:8:13:", "larger"},
        {"\"leaf\" base", "\"leaf base", 0, PMIXFAB_ERR_SYNTAX, "c.txt:8:34:", "not closed"},
        {"base port 0 lid 1", "base port 0 lid 65536", 0, PMIXFAB_ERR_RANGE, "c.txt:8:57:", "LID"},
        {"base port 0 lid 1 lmc 0", "base port 0 lid 1 lmc 8", 0, PMIXFAB_ERR_RANGE, "c.txt:8:63:", "LMC"},
        {"base port", "middle port", 0, PMIXFAB_ERR_SYNTAX, "c.txt:8:41:", "enhanced"},
        {"lid 2 4xHDR", "lid 2 3xHDR", 0, PMIXFAB_ERR_RANGE, "c.txt:9:48:", "width"},
        {"lid 2 4xHDR", "lid 2 4xLDR", 0, PMIXFAB_ERR_SYNTAX, "c.txt:9:50:", "speed"},
        {"lid 2 4xHDR", "lid 2 4x", 0, PMIXFAB_ERR_SYNTAX, "c.txt:9:50:", "speed"},
        {"lid 2 4xHDR", "lid 2", 0, PMIXFAB_ERR_SYNTAX, "c.txt:9:", "width"},
        {"# lid 2 lmc 0", "", 0, PMIXFAB_ERR_SYNTAX, "c.txt:17:", "`#`"},
        {"devid=0xd2f0", "who=0xd2f0", 0, PMIXFAB_ERR_SYNTAX, "c.txt:5:1:", "not a line of ibnetdiscover"},
        {"#\n", "[1]\t\"S-1\"[1]\n", 0, PMIXFAB_ERR_SYNTAX, "c.txt:1:1:", "record"},
        {"devid=0x101b\n", "Switch\t : 0x21 ports 8 devid 0xd2f0 vendid 0x2c9 \"leaf\"\n", 0,
         PMIXFAB_ERR_SYNTAX, "c.txt:13:1:", "-l"},
        {"Ca\t1 \"H-0000000000000011\"\t\t# \"n1\"\n", "", 0, PMIXFAB_ERR_SYNTAX, "c.txt:16:1:", "record"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        OWNED(free) char *text = change(cases[i].from, cases[i].to, cases[i].n);
        SCOPED(fab_inventory) inv = {0};
        struct fab_err err = {{0}};
        int rc = capture_parse("c.txt", text, strlen(text), NULL, &inv, &err);
        if (rc != cases[i].code || strncmp(err.text, cases[i].place, strlen(cases[i].place)) != 0 ||
            strstr(err.text, cases[i].words) == NULL)
            fail_msg("case %zu: `%s` gave %d \"%s\"", i, cases[i].to, rc, err.text);
    }
}

TEST(test_refused_whole)
{
    static const struct {
        const char *text;
        size_t len;
        int code;
    } cases[] = {
        {"", 0, PMIXFAB_ERR_TRUNCATED},
        {"\n\n", 2, PMIXFAB_ERR_SYNTAX},
        {"# only a comment\n", 17, PMIXFAB_ERR_SYNTAX},
        {"\0\0\0\0", 4, PMIXFAB_ERR_FOREIGN},
        {"vendid=0x2c9\n\0", 14, PMIXFAB_ERR_FOREIGN},
        {"\x7f"
         "ELF\x02\x01\x01\n",
         8, PMIXFAB_ERR_SYNTAX},
        {"vendid=0x2c9\n", 13, PMIXFAB_ERR_TRUNCATED},
        {"vendid=0x2c9\nvendid=0x2c9\n", 26, PMIXFAB_ERR_SYNTAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_inventory) inv = {0};
        struct fab_err err = {{0}};
        int rc = capture_parse("c.txt", cases[i].text, cases[i].len, NULL, &inv, &err);
        if (rc != cases[i].code || strncmp(err.text, "c.txt:", 6) != 0)
            fail_msg("case %zu gave %d \"%s\"", i, rc, err.text);
    }
    size_t len = 100000;
    OWNED(free) char *line = must_have(len);
    memset(line, '#', len);
    SCOPED(fab_inventory) inv = {0};
    struct fab_err err = {{0}};
    must_fail(capture_parse("c.txt", line, len, NULL, &inv, &err), PMIXFAB_ERR_RANGE, &err,
              "c.txt:1:4097: the line is longer");
}

/* A record that is not there: the ports that lead to it are up and lead nowhere. */
TEST(test_missing_record)
{
    const char *record = strstr(base, "vendid=0x2c9\ndevid=0x101b"), *next = strstr(record + 1, "vendid=");
    SCOPED(fab_inventory) inv;
    const char *text = printed("%.*s%s", (int)(record - base), base, next);
    parse(text, strlen(text), &inv);
    assert_int_equal(inv.n_nodes, 2);
    assert_int_equal(inv.n_dangling, 1);
    const struct fab_port *port = &inv.ports[fab_inventory_port(&inv, fab_inventory_find(&inv, 0x21), 1)];
    assert_int_equal(port->peer, FAB_NONE);
    assert_int_equal(port->state, FAB_PORT_ACTIVE);
    fab_inventory_destroy(&inv);

    /* a record without the line of one port */
    char *short_record =
        change("[1](12) \t\"S-0000000000000021\"[1]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xHDR\n", "", 0);
    parse(short_record, strlen(short_record), &inv);
    assert_int_equal(inv.n_dangling, 1);
    free(short_record);
}

/* A neighbour that did not say what it is has no record either. */
TEST(test_kindless_peer)
{
    OWNED(free)
    char *text = change("[2]\t", "[3]\t\"?-0000000000000099\"[1](98) \t\t# \"\" lid 0 ?????\n[2]\t", 0);
    SCOPED(fab_inventory) inv;
    parse(text, strlen(text), &inv);
    assert_int_equal(inv.n_nodes, 3);
    assert_int_equal(inv.n_dangling, 1);
}

/* An HCA alone: it has no port line, and is there with its first port. */
TEST(test_lonely)
{
    static const char text[] =
        "# Initiated from node 0000000000000011 port 0000000000000012\n\nvendid=0x2c9\n"
        "devid=0x101b\ncaguid=0x11\nCa\t2 \"H-0000000000000011\"\t\t# \"n1\"\n";
    SCOPED(fab_inventory) inv;
    parse(text, strlen(text), &inv);
    assert_int_equal(inv.n_ports, 1);
    assert_int_equal(inv.ports[0].num, 1);
    assert_int_equal(inv.ports[0].guid, 0x12);
    assert_int_equal(inv.ports[0].state, FAB_PORT_DOWN);
    assert_int_equal(inv.n_dangling, 0);
}

/* Cut anywhere, a capture is refused, or known as partial; never taken for a whole smaller fabric. The one
 * exception is the line of a first switch without any port, which is what a switch alone looks like. */
TEST(test_cut)
{
    static const char *const files[] = {TEST_DATA "/site_mixed.txt", TEST_DATA "/site_grouped.txt",
                                        TEST_DATA "/ibsim_small.txt"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct blob whole = load(files[i]);
        SCOPED(fab_inventory) all;
        parse(whole.data, whole.len, &all);
        for (size_t len = 0; len < whole.len; len++) {
            SCOPED(fab_inventory) inv = {0};
            struct fab_err err = {{0}};
            OWNED(free)
            char *copy = malloc(len > 0 ? len : 1); /* no more, so that a sanitizer sees a byte too many */
            assert_non_null(copy);
            memcpy(copy, whole.data, len);
            int rc = capture_parse("c.txt", copy, len, NULL, &inv, &err);
            if (rc == PMIXFAB_OK && inv.n_dangling <= all.n_dangling && inv.n_nodes > 1 &&
                !fab_inventory_equal(&inv, &all))
                fail_msg("%s cut at %zu passes for a fabric of %u nodes", files[i], len, inv.n_nodes);
            if (rc != PMIXFAB_OK)
                assert_int_equal(strncmp(err.text, "c.txt:", 6), 0);
        }
        free(whole.data);
    }
}

/* ---- remarks ---- */

struct notes {
    unsigned n;
    char text[1000];
};

static void keep_remark(enum pmixfab_level level, const char *text, void *cbdata)
{
    struct notes *notes = cbdata;
    (void)level;
    notes->n++;
    snprintf(notes->text + strlen(notes->text), sizeof(notes->text) - strlen(notes->text), "%s\n", text);
}

static struct fab_inventory noted(const char *text, struct notes *notes)
{
    const struct probe_sink sink = {keep_remark, notes};
    struct fab_inventory inv;
    *notes = (struct notes){0};
    fab_inventory_init(&inv);
    must_do(capture_parse("c.txt", text, strlen(text), &sink, &inv, fresh_err()));
    return inv;
}

/* A switch's cable to itself, told at one end or at both: as a live discovery, without it and with a remark.
 */
TEST(test_self_cable)
{
    static const char *const lines[] = {"[3]\t\"S-0000000000000021\"[4]\t\t# \"leaf\" lid 1 4xHDR\n",
                                        "[3]\t\"S-0000000000000021\"[4]\t\t# \"leaf\" lid 1 4xHDR\n"
                                        "[4]\t\"S-0000000000000021\"[3]\t\t# \"leaf\" lid 1 4xHDR\n"};
    SCOPED(fab_inventory) plain;
    parse(base, strlen(base), &plain);
    for (unsigned n = 1; n <= 2; n++) {
        struct notes notes;
        const char *place = "\nvendid=0x2c9\ndevid=0x101b\nsysimgguid=0x11";
        OWNED(free) char *text = change(place, printed("%s%s", lines[n - 1], place), 0);
        SCOPED(fab_inventory) inv = noted(text, &notes);
        assert_int_equal(inv.n_ports, plain.n_ports + n);
        for (uint32_t p = 0, looped = 0; p < inv.n_ports || looped != n; p++) {
            assert_in_range(p, 0, inv.n_ports - 1);
            looped += inv.ports[p].state == FAB_PORT_LOOPED && inv.ports[p].peer == FAB_NONE;
        }
        assert_int_equal(inv.n_dangling, 0);
        assert_int_equal(notes.n, 1);
        assert_string_equal(notes.text, n == 1
                                            ? "c.txt:11: 1 port is cabled to its own node: left out\n"
                                            : "c.txt:11: 2 ports are cabled to their own node: left out\n");
    }
}

TEST(test_rates_that_disagree)
{
    struct notes notes;
    OWNED(free) char *text = change("lid 3 4xHDR", "lid 3 2xEDR", 0);
    SCOPED(fab_inventory) inv = noted(text, &notes);
    assert_int_equal(inv.n_ports, 4);
    assert_string_equal(
        notes.text,
        "c.txt:10 and c.txt:24: the two ends of this cable have different rates: 2xEDR and 4xHDR\n");
}

/* ---- a report of ports ---- */

static const char report[] =
    "SW     1  8 0x0000000000000021 4x SDR                                    'leaf'\n"          /* 1 */
    "SW     1  2 0x0000000000000021 4x HDR - CA     3  1 0x0000000000000014 ( 'leaf' - 'n2' )\n" /* 2 */
    "SW     1  1 0x0000000000000021 4x HDR - CA     2  1 0x0000000000000012 ( 'leaf' - 'n1' )\n" /* 3 */
    "CA     0  2 0x0000000000000013 4x SDR                                    'n1'\n"            /* 4 */
    "CA     2  1 0x0000000000000012 4x HDR - SW     1  1 0x0000000000000021 ( 'n1' - 'leaf' )\n" /* 5 */
    "CA     3  1 0x0000000000000014 4x HDR - SW     1  2 0x0000000000000021 ( 'n2' - 'leaf' )\n" /* 6 */
    "CA     0  1 0x0000000000000015 4x SDR                                    'n2'\n" /* 7 */;

TEST(test_report_of_ports)
{
    struct notes notes;
    SCOPED(fab_inventory) inv = noted(report, &notes);
    assert_int_equal(notes.n, 1);
    assert_non_null(strstr(notes.text, "each HCA gets the GUID of its first port"));
    assert_int_equal(inv.n_nodes, 4); /* the second n2 is another HCA: its port has no lower number */
    assert_int_equal(inv.n_dangling, 0);
    uint32_t leaf = fab_inventory_find(&inv, 0x21), n1 = fab_inventory_find(&inv, 0x12),
             alone = fab_inventory_find(&inv, 0x15);
    assert_int_equal(inv.nodes[leaf].num_ports, 8);
    assert_int_equal(inv.nodes[leaf].lid, 1);
    assert_int_equal(inv.nodes[n1].num_ports, 2);
    assert_string_equal(fab_str(&inv, inv.nodes[n1].desc), "n1");
    const struct fab_port *port = &inv.ports[fab_inventory_port(&inv, n1, 1)];
    assert_int_equal(port->lid, 2);
    assert_int_equal(port->speed, FAB_HDR);
    assert_int_equal(inv.ports[port->peer].node, leaf);
    assert_int_equal(inv.ports[port->peer].num, 1);
    port = &inv.ports[fab_inventory_port(&inv, alone, 1)];
    assert_int_equal(port->state, FAB_PORT_DOWN);
    assert_true(port->guid == 0x15 && port->peer == FAB_NONE && port->width == 0);
}

/* As sites have them that record with -s -p: progress before it, a chassis' GUID or a number sign in names,
 * and HCAs that nobody has named. */
TEST(test_report_of_a_site)
{
    static const char text[] =
        "DR path slid 0; dlid 0; 0 -> new Channel Adapter {0000000000000041} portnum 1 lid 0-0 \"\"\n"
        "DR path slid 0; dlid 0; 0,1 -> new Switch {0000000000000031} portnum 0 lid 0-0 \"\"\n"
        "SW     1  3 0x31 4x QDR - SW     2  1 0x32 ( 'QLogic 12800 GUID=0x31 L112' - 'Voltaire 4036 # "
        "4036-32' )\n"
        "SW     1  2 0x31 4x QDR - CA     4  1 0x42 ( 'QLogic 12800 GUID=0x31 L112' - 'MT25408 ConnectX' )\n"
        "SW     1  1 0x31 4x QDR - CA     3  1 0x41 ( 'QLogic 12800 GUID=0x31 L112' - 'n1 qib0' )\n"
        "CA     4  1 0x42 4x QDR - SW     1  2 0x31 ( 'MT25408 ConnectX' - 'QLogic 12800 GUID=0x31 L112' )\n"
        "CA     5  1 0x43 4x QDR - SW     2  2 0x32 ( 'MT25408 ConnectX' - 'Voltaire 4036 # 4036-32' )\n"
        "SW     2  2 0x32 4x QDR - CA     5  1 0x43 ( 'Voltaire 4036 # 4036-32' - 'MT25408 ConnectX' )\n"
        "SW     2  1 0x32 4x QDR - SW     1  3 0x31 ( 'Voltaire 4036 # 4036-32' - 'QLogic 12800 GUID=0x31 "
        "L112' )\n"
        "CA     3  1 0x41 4x QDR - SW     1  1 0x31 ( 'n1 qib0' - 'QLogic 12800 GUID=0x31 L112' )\n";
    SCOPED(fab_inventory) inv;
    parse(text, strlen(text), &inv);
    assert_int_equal(inv.n_nodes, 5); /* two HCAs of one description, line by line */
    assert_int_equal(inv.n_ports, 8);
    assert_int_equal(inv.n_dangling, 0);
    assert_string_equal(fab_str(&inv, inv.nodes[fab_inventory_find(&inv, 0x32)].desc),
                        "Voltaire 4036 # 4036-32");
    assert_string_equal(fab_str(&inv, inv.nodes[fab_inventory_find(&inv, 0x41)].desc), "n1 qib0");
}

/* The same subnet as records and as a report: the same cables at the same rates. */
TEST(test_report_and_records)
{
    size_t n_text, n_lines;
    SCOPED(fab_inventory) records, ports;
    OWNED(free) char *text = read_file(TEST_DATA "/ibsim_small.txt", &n_text);
    OWNED(free) char *lines = read_file(TEST_DATA "/ibsim_small.ports", &n_lines);
    parse(text, n_text, &records);
    parse(lines, n_lines, &ports);
    assert_int_equal(ports.n_nodes, records.n_nodes);
    assert_int_equal(ports.n_ports, records.n_ports);
    for (uint32_t i = 0; i < records.n_ports; i++) {
        const struct fab_port *a = &records.ports[i], *b = &ports.ports[i];
        assert_string_equal(fab_str(&ports, ports.nodes[b->node].desc),
                            fab_str(&records, records.nodes[a->node].desc));
        assert_true(a->num == b->num && a->peer == b->peer && a->width == b->width && a->speed == b->speed &&
                    a->guid == b->guid);
        assert_int_equal(a->lid, b->lid);
    }
}

TEST(test_report_refused)
{
    static const struct {
        const char *text;
        int code;
        const char *place, *words;
    } cases[] = {
        {"SW     1  1 0x21 4x HDR - CA     2  1 0x12 ( 'leaf' - 'n1'\n", PMIXFAB_ERR_SYNTAX,
         "c.txt:1:47:", "names"},
        {"SW     1  1 0x21 4x HDR - CA     2  1 0x12\n", PMIXFAB_ERR_SYNTAX, "c.txt:1:", "`( '`"},
        {"SW     1  1 0x21 4x HDR  'leaf\n", PMIXFAB_ERR_SYNTAX, "c.txt:1:", "not closed"},
        {"SW     1  0 0x21 4x HDR  'leaf'\n", PMIXFAB_ERR_RANGE, "c.txt:1:11:", "1 to 254"},
        {"SW 70000  1 0x21 4x HDR  'leaf'\n", PMIXFAB_ERR_RANGE, "c.txt:1:4:", "LID"},
        {"SW     1  1 0x0 4x HDR  'leaf'\n", PMIXFAB_ERR_RANGE, "c.txt:1:13:", "zero"},
        {"SW     1  1 0x21 4x HDR - XX     2  1 0x12 ( 'leaf' - 'n1' )\n", PMIXFAB_ERR_SYNTAX,
         "c.txt:1:27:", "kind"},
        {"SW     1  1 0x21 4x HDR  'leaf'\n"
         "CA     2  1 0x12 4x HDR - SW     1  2 0x21 ( 'n1' - 'leaf' )\n",
         PMIXFAB_ERR_RANGE, "c.txt:2:", "no port 2"},
        {"SW     1  2 0x21 4x HDR  'leaf'\n"
         "SW     1  1 0x21 4x HDR - CA     2  1 0x12 ( 'leaf' - 'n1' )\n"
         "CA     2  1 0x12 4x HDR - SW     1  1 0x31 ( 'n1' - 'other' )\n",
         PMIXFAB_ERR_CONFLICT, "c.txt:2:27:", "c.txt:3 contradicts it"},
        {"vendid=0x2c9\nSW     1  1 0x21 4x HDR  'leaf'\n", PMIXFAB_ERR_SYNTAX,
         "c.txt:2:1:", "among records"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(fab_inventory) inv = {0};
        struct fab_err err = {{0}};
        int rc = capture_parse("c.txt", cases[i].text, strlen(cases[i].text), NULL, &inv, &err);
        if (rc != cases[i].code || strncmp(err.text, cases[i].place, strlen(cases[i].place)) != 0 ||
            strstr(err.text, cases[i].words) == NULL)
            fail_msg("case %zu gave %d \"%s\"", i, rc, err.text);
    }
}
