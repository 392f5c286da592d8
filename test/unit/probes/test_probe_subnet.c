/* The reader of opensm-subnet.lst: what a line says, and lines that cannot be. */
#include "test/unit/probe_files.h"

#define HOST(guid, port, desc, lid)                                                                          \
    "{ CA Ports:01 SystemGUID:00000000000000" guid " NodeGUID:00000000000000" guid                           \
    " PortGUID:00000000000000" port " VenID:0002C9 DevID:101B Rev:000000A1 {" desc "} LID:" lid " PN:01 } "
#define LEAF(number)                                                                                         \
    "{ SW-SM Ports:28 SystemGUID:0000000000000020 NodeGUID:0000000000000021 PortGUID:0000000000000021 "      \
    "VenID:000002C9 DevID:D2F0 Rev:000000A1 {le}af {1}} LID:000B PN:" number " } "
#define RATE "PHY=4x LOG=ACT SPD=50\n"

static const char base[] = HOST("11", "12", "n1 HCA-1", "000A") LEAF("0B") RATE /* 1 */
    LEAF("0B") HOST("11", "12", "n1 HCA-1", "000A") RATE                        /* 2 */
        LEAF("0C") HOST("13", "14", "n2", "000C") "PHY=2x LOG=INI SPD=FDR10\n"  /* 3 */
    HOST("13", "14", "n2", "000C") LEAF("0C") "PHY=2x LOG=INI SPD=FDR10\n";     /* 4 */

static int read_list(const char *text, size_t len, struct fab_inventory *inv, struct fab_err *err)
{
    fab_inventory_init(inv);
    err->text[0] = '\0';
    return subnet_parse("l.lst", text, len, NULL, inv, err);
}

TEST(test_what_a_line_says)
{
    SCOPED(fab_inventory) inv;
    must_do(read_list(base, sizeof(base) - 1, &inv, fresh_err()));
    assert_int_equal(inv.n_nodes, 3);
    assert_int_equal(inv.n_ports, 4);
    const struct fab_node *host = &inv.nodes[0], *leaf = &inv.nodes[2];
    assert_string_equal(fab_str(&inv, host->desc), "n1 HCA-1");
    assert_string_equal(fab_str(&inv, leaf->desc), "le}af {1}");
    assert_int_equal(leaf->num_ports, 0x28);
    assert_int_equal(leaf->lid, 0xb);
    assert_int_equal(leaf->system_guid, 0x20);
    assert_int_equal(leaf->device_id, 0xd2f0);
    assert_int_equal(leaf->kind, FAB_SWITCH);
    const struct fab_port *first = &inv.ports[host->first_port], *far = &inv.ports[first->peer];
    assert_int_equal(first->guid, 0x12);
    assert_int_equal(first->lid, 0xa);
    assert_int_equal(first->state, FAB_PORT_ACTIVE);
    assert_int_equal(far->num, 0xb);
    assert_int_equal(far->node, 2);
    const struct fab_port *second = &inv.ports[far - inv.ports + 1];
    assert_int_equal(second->width, 2);
    assert_int_equal(second->speed, FAB_FDR10);
    assert_int_equal(second->state, FAB_PORT_INIT);
}

/* base with its first `from` replaced. Free it. */
static char *changed(const char *from, const char *to)
{
    char *out = NULL;
    const char *at = strstr(base, from);
    assert_non_null(at);
    assert_true(asprintf(&out, "%.*s%s%s", (int)(at - base), base, to, at + strlen(from)) > 0);
    return out;
}

TEST(test_refused)
{
    static const struct {
        const char *from, *to;
        int code;
        const char *place;
    } cases[] = {
        {"{ CA", "{ XX", PMIXFAB_ERR_SYNTAX, "l.lst:1:3: expected a kind of node"},
        {"Ports:01", "Ports:FF", PMIXFAB_ERR_RANGE, "l.lst:1:12: number of ports FF is larger"},
        {"Ports:01", "Ports:00", PMIXFAB_ERR_RANGE, "l.lst:1:3: a node without"},
        {"NodeGUID:0000000000000011", "NodeGUID:0000000000000000", PMIXFAB_ERR_RANGE, "l.lst:1:3: "},
        {"DevID:101B", "DevID:101B0001", PMIXFAB_ERR_RANGE, "l.lst:1:3: a DevID"},
        {"} LID:", "} GID:", PMIXFAB_ERR_SYNTAX, "expected `{ `"}, /* it is a part of the description */
        {"PN:01 } {", "PN:02 } {", PMIXFAB_ERR_RANGE, "l.lst:1:155: port 2, but the node has 1 to 1"},
        {"PN:0C } { CA", "PN:0B } { CA", PMIXFAB_ERR_CONFLICT, "a second line for port 11"},
        {"SPD=50", "SPD=51", PMIXFAB_ERR_SYNTAX, "unexpected text after the speed"},
        {"PHY=4x", "PHY=3x", PMIXFAB_ERR_SYNTAX, "expected width, state and speed"},
        {" LOG=ACT", "", PMIXFAB_ERR_SYNTAX, "expected width, state and speed"},
        {"SPD=50\n", "SPD=50 x\n", PMIXFAB_ERR_SYNTAX, "unexpected text after the speed"},
        {"PN:0B } PHY", "PN:0D } PHY", PMIXFAB_ERR_CONFLICT, "contradicts it (port)"},
        {"50\n{ SW", "50\nwho", PMIXFAB_ERR_SYNTAX, "l.lst:2:1: this is not a line of OpenSM's"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        OWNED(free) char *text = changed(cases[i].from, cases[i].to);
        SCOPED(fab_inventory) inv;
        struct fab_err err;
        const int rc = read_list(text, strlen(text), &inv, &err);
        if (rc != cases[i].code || strstr(err.text, cases[i].place) == NULL)
            fail_msg("case %zu gave %d \"%s\"", i, rc, err.text);
    }
}

/* Cut anywhere, it is refused, or it was cut behind a line: then cables lead nowhere. */
TEST(test_cut)
{
    for (size_t len = 0; len < sizeof(base) - 1; len++) {
        SCOPED(fab_inventory) inv;
        struct fab_err err;
        const int rc = read_list(base, len, &inv, &err);
        if (rc == PMIXFAB_OK ? base[len - 1] != '\n' : rc != PMIXFAB_ERR_TRUNCATED)
            fail_msg("%zu bytes gave %d \"%s\"", len, rc, err.text);
    }
}
