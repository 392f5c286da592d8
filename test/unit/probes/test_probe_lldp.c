/* Switches of what lldpd heard; liblldpctl is played by this file. With a real lldpd: test_probe_lldp.py. */
#include <lldp-const.h>
#include <lldpctl.h>

#include "test/unit/report_text.h"

extern const struct probe fabricd_probe;

#define MAC    LLDP_CHASSISID_SUBTYPE_LLADDR, "mac"
#define LOCAL  LLDP_CHASSISID_SUBTYPE_LOCAL, "local"
#define BRIDGE (LLDP_CAP_BRIDGE | LLDP_CAP_ROUTER | LLDP_CAP_STATION), LLDP_CAP_BRIDGE
#define ROUTER (LLDP_CAP_BRIDGE | LLDP_CAP_ROUTER), LLDP_CAP_ROUTER
#define HOST   (LLDP_CAP_BRIDGE | LLDP_CAP_STATION), LLDP_CAP_STATION

/* ---- a liblldpctl: an interface, its port, its only neighbour and that one's chassis are one atom ---- */

struct lldpctl_atom_t {
    const char *interface, *protocol;
    int type;
    const char *type_name, *id, *name;
    int can, does;
    const char *port;
    bool hidden, no_chassis;
    lldpctl_error_t error; /* what the question for the port ends with */
};

static struct {
    const char *socket;          /* that was connected to */
    const lldpctl_atom_t *heard; /* NULL: lldpd does not answer */
    size_t n;
    int references; /* of atoms that are not given back */
    lldpctl_error_t error;
} lldpd;

static lldpctl_atom_t all_interfaces;

const char *lldpctl_get_default_transport(void)
{
    return "the usual one";
}

void lldpctl_log_callback(void (*callback)(int severity, const char *message))
{
    assert_non_null(callback);
}

lldpctl_conn_t *lldpctl_new_name(const char *name, lldpctl_send_callback send, lldpctl_recv_callback receive,
                                 void *data)
{
    assert_true(send == NULL && receive == NULL && data == NULL);
    lldpd.socket = name;
    return (lldpctl_conn_t *)&lldpd;
}

int lldpctl_release(lldpctl_conn_t *connection)
{
    assert_ptr_equal(connection, &lldpd);
    assert_int_equal(lldpd.references, 0);
    return 0;
}

lldpctl_error_t lldpctl_last_error(lldpctl_conn_t *connection)
{
    assert_ptr_equal(connection, &lldpd);
    return lldpd.error;
}

const char *lldpctl_strerror(lldpctl_error_t error)
{
    return error == LLDPCTL_ERR_EOF ? "end of file" : "another error";
}

static lldpctl_atom_t *reference(const lldpctl_atom_t *atom)
{
    lldpd.references++;
    return (lldpctl_atom_t *)atom;
}

void lldpctl_atom_dec_ref(lldpctl_atom_t *atom)
{
    assert_non_null(atom);
    assert_true(lldpd.references-- > 0);
}

lldpctl_atom_t *lldpctl_get_interfaces(lldpctl_conn_t *connection)
{
    assert_ptr_equal(connection, &lldpd);
    return lldpd.heard == NULL ? NULL : reference(&all_interfaces);
}

lldpctl_atom_t *lldpctl_get_port(lldpctl_atom_t *interface)
{
    lldpd.error = interface->error;
    return lldpd.error != LLDPCTL_NO_ERROR ? NULL : reference(interface);
}

lldpctl_atom_t *lldpctl_atom_get(lldpctl_atom_t *atom, lldpctl_key_t key)
{
    assert_true(key == lldpctl_k_port_neighbors || key == lldpctl_k_port_chassis);
    return key == lldpctl_k_port_chassis && atom->no_chassis ? NULL : reference(atom);
}

lldpctl_atom_iter_t *lldpctl_atom_iter(lldpctl_atom_t *atom)
{
    if (atom == &all_interfaces)
        return lldpd.n > 0 ? (lldpctl_atom_iter_t *)lldpd.heard : NULL;
    return (lldpctl_atom_iter_t *)atom;
}

lldpctl_atom_iter_t *lldpctl_atom_iter_next(lldpctl_atom_t *atom, lldpctl_atom_iter_t *at)
{
    const lldpctl_atom_t *next = (const lldpctl_atom_t *)at + 1;
    return atom == &all_interfaces && next < lldpd.heard + lldpd.n ? (lldpctl_atom_iter_t *)next : NULL;
}

lldpctl_atom_t *lldpctl_atom_iter_value(lldpctl_atom_t *atom, lldpctl_atom_iter_t *at)
{
    (void)atom;
    return reference((const lldpctl_atom_t *)at);
}

const char *lldpctl_atom_get_str(lldpctl_atom_t *atom, lldpctl_key_t key)
{
    switch (key) {
    case lldpctl_k_interface_name:
        return atom->interface;
    case lldpctl_k_port_protocol:
        return atom->protocol;
    case lldpctl_k_port_id:
        return atom->port;
    case lldpctl_k_chassis_id_subtype:
        return atom->type_name;
    case lldpctl_k_chassis_id:
        return atom->id;
    case lldpctl_k_chassis_name:
        return atom->name;
    default:
        fail();
        return NULL;
    }
}

long int lldpctl_atom_get_int(lldpctl_atom_t *atom, lldpctl_key_t key)
{
    switch (key) {
    case lldpctl_k_port_hidden:
        return atom->hidden;
    case lldpctl_k_chassis_id_subtype:
        return atom->type;
    case lldpctl_k_chassis_cap_available:
        return atom->can;
    case lldpctl_k_chassis_cap_enabled:
        return atom->does;
    default:
        fail();
        return 0;
    }
}

/* ---- the probe ---- */

static int look(const lldpctl_atom_t *heard, size_t n, struct notes *notes, struct fab_report *report,
                struct fab_err *err)
{
    const struct probe_config config = {0};
    const struct probe_sink sink = {count_note, notes};
    lldpd.heard = heard;
    lldpd.n = n;
    fab_report_init(report);
    return fabricd_probe.scan(&config, &sink, report, err);
}

/* The number of notes comes back. */
static unsigned expect(const lldpctl_atom_t *heard, size_t n, const char *items)
{
    struct notes notes = {0};
    struct fab_report report;
    must_do(look(heard, n, &notes, &report, fresh_err()));
    expect_items(&report, items);
    return notes.n;
}

#define EXPECT(ITEMS, NOTES, ...)                                                                            \
    do {                                                                                                     \
        const lldpctl_atom_t heard[] = {__VA_ARGS__};                                                        \
        assert_int_equal(expect(heard, sizeof(heard) / sizeof(heard[0]), ITEMS), NOTES);                     \
    } while (0)

TEST(test_switches)
{
    EXPECT("{'source': 'lldp', 'interface': 'eth0', 'switch-id': 'local Leaf 2', 'switch-port': "
           "'06:a8:f6:5b:01:50'}\n"
           "{'source': 'lldp', 'interface': 'eth1', 'switch-id': '06:a8:f6:5b:01:4f', 'switch-name': "
           "'leaf1', 'switch-port': 'Ethernet12'}\n"
           "{'source': 'lldp', 'interface': 'eth2', 'switch-id': 'ip 10.0.0.9', 'switch-name': 'leaf3', "
           "'switch-port': '517'}\n",
           0, {"eth1", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "Ethernet12"},
           {"eth0", "LLDP", LOCAL, "Leaf 2", NULL, ROUTER, .port = "06:a8:f6:5b:01:50"},
           {"eth2", "LLDP", LLDP_CHASSISID_SUBTYPE_ADDR, "ip", "10.0.0.9", "leaf3", .port = "517"});
}

/* Two hosts on one cable hear each other; of a neighbour that lldpd hides it prefers another. */
TEST(test_no_switch)
{
    const lldpctl_atom_t nobody = {0};
    assert_int_equal(expect(&nobody, 0, ""), 0); /* that is an answer, too */
    EXPECT("", 1, {"eth0", "LLDP", MAC, "06:a8:f6:5b:01:4f", "node2", HOST, .port = "eth0"});
    EXPECT("", 0, {"eth0", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .hidden = true});
}

/* The same switch by a second protocol or twice is one; two switches on one interface are none. */
TEST(test_several)
{
    static const char one[] =
        "{'source': 'lldp', 'interface': 'eth0', 'switch-id': '06:a8:f6:5b:01:4f', 'switch-name': 'leaf1', "
        "'switch-port': '12'}\n";
    EXPECT(one, 0, {"eth0", "CDPv2", LOCAL, "leaf1", "leaf1", BRIDGE, .port = "E12"},
           {"eth0", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "12"},
           {"eth0", "LLDP", MAC, "06:a8:f6:5b:01:4f", "again", BRIDGE, .port = "13"});
    EXPECT("{'source': 'lldp', 'interface': 'eth1', 'switch-id': '06:a8:f6:5b:01:4f', 'switch-name': "
           "'leaf1', 'switch-port': '13'}\n",
           1, {"eth0", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "12"},
           {"eth1", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "13"},
           {"eth0", "LLDP", MAC, "06:a8:f6:5b:02:4f", "leaf2", BRIDGE, .port = "12"});
    /* A host beside a switch does not count. */
    EXPECT(one, 1, {"eth0", "LLDP", MAC, "06:a8:f6:5b:03:4f", "node2", HOST, .port = "eth0"},
           {"eth0", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "12"});
}

/* Nothing is believed of what came over the cable. */
TEST(test_nonsense)
{
    static const lldpctl_atom_t left_out[] = {
        {.interface = "eth0"},
        {"eth0", "LLDP", MAC, NULL, "leaf1", BRIDGE, .port = "1"},
        {"eth0", "LLDP", LOCAL, "", "leaf1", BRIDGE, .port = "1"},
        {"eth0", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "1", .no_chassis = true},
        {"eth0", "LLDP", MAC, "00:00:00:00:00:00", "leaf1", BRIDGE, .port = "1"},
        {"eth0", "LLDP", MAC, "06:a8:f6:5b:01", "leaf1", BRIDGE, .port = "1"},
        {"eth0", "LLDP", LOCAL, "a\nb", "leaf1", BRIDGE, .port = "1"},
        {"eth0", "LLDP", 0, NULL, "x", "leaf1", BRIDGE, .port = "1"},
        {"", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "1"},
        {NULL, "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "1"},
        {"e\a", "LLDP", MAC, "06:a8:f6:5b:01:4f", "leaf1", BRIDGE, .port = "1"},
    };
    for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
        assert_int_equal(expect(&left_out[i], 1, ""), 1);
    EXPECT(
        "{'source': 'lldp', 'interface': 'eth0', 'switch-id': '06:a8:f6:5b:01:4f', 'switch-name': 'l?e?af', "
        "'switch-port': '?[31m'}\n",
        0,
        {"eth0", NULL, MAC, "06:a8:f6:5b:01:4f",
         "l\xe9"
         "e\naf",
         BRIDGE, .port = "\x1b[31m"});
}

static void fails(const lldpctl_atom_t *heard, size_t n, int code, const char *why)
{
    struct notes notes = {0};
    SCOPED(fab_report) report;
    struct fab_err err = {{0}};
    assert_int_equal(look(heard, n, &notes, &report, &err), code);
    assert_string_equal(err.text, why);
}

/* An interface may go at any time, lldpd should not. */
TEST(test_fails)
{
    static lldpctl_atom_t many[1025];
    const lldpctl_atom_t gone = {.interface = "eth0", .error = LLDPCTL_ERR_NOT_EXIST},
                         ended = {.interface = "eth0", .error = LLDPCTL_ERR_EOF};
    assert_int_equal(expect(&gone, 1, ""), 0);
    fails(&ended, 1, PMIXFAB_ERR_IO, "lldp: lldpd: end of file");
    fails(NULL, 0, PMIXFAB_ERR_UNSUPPORTED,
          "lldp: lldpd does not answer: end of file; start it, and let this user use its socket");
    /* More neighbours than any host has interfaces. */
    for (size_t i = 0; i < 1025; i++)
        many[i] = (lldpctl_atom_t){"eth0", "LLDP", LOCAL, "x", NULL, BRIDGE, .port = "1"};
    must_do(expect(many, 1024,
                   "{'source': 'lldp', 'interface': 'eth0', 'switch-id': 'local x', 'switch-port': '1'}\n"));
    fails(many, 1025, PMIXFAB_ERR_RANGE, "lldp: more than 1024 neighbours");
}

/* Where it asks, and what it says of this host. */
TEST(test_probe)
{
    const lldpctl_atom_t heard = {"eth0", "LLDP", LOCAL, "x", NULL, BRIDGE, .port = "1"};
    const struct probe_config missing = {.arg = "/nowhere/x.json"};
    SCOPED(fab_report) report = {0};
    char text[480];
    lldpd.heard = &heard;
    lldpd.n = 1;
    unsetenv("LLDPD_SOCKET");
    assert_int_equal(fabricd_probe.available(text, sizeof(text)), PMIXFAB_OK);
    assert_string_equal(text, "lldpd answers, switches on 1 interface");
    assert_string_equal(lldpd.socket, "the usual one");
    setenv("LLDPD_SOCKET", "/x", 1);
    lldpd.n = 0;
    assert_int_equal(fabricd_probe.available(text, sizeof(text)), PMIXFAB_OK);
    assert_string_equal(text, "lldpd answers, switches on 0 interfaces");
    assert_string_equal(lldpd.socket, "/x");
    unsetenv("LLDPD_SOCKET");
    assert_int_equal(fabricd_probe.scan(&missing, NULL, &report, fresh_err()), PMIXFAB_ERR_NOTFOUND);
}
