/* What can be tested of the live probe without a subnet: decoding, and hand-made fabrics. */

#include "probes/fabric/observed.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

#ifdef HAVE_IBNETDISC
#include <infiniband/mad.h>

#include "probes/ibnetdisc/ibnetdisc.h"
#include "probes/registry.h"

#define EXT_SPEEDS  (1u << 14)
#define CAP_MASK2   (1u << 15)
#define EXT_SPEEDS2 (1u << 11)

/* ---- decoding, against libibmad ---- */

static void random_bytes(uint8_t *bytes, uint64_t *state)
{
    for (unsigned i = 0; i < ATTRIBUTE_SIZE; i++)
        bytes[i] = (uint8_t)(fabric_random_next(state) >> 32);
}

TEST(test_node_info)
{
    uint64_t random = 1;
    for (unsigned round = 0; round < 1000; round++) {
        uint8_t info[ATTRIBUTE_SIZE];
        struct node_info got;
        random_bytes(info, &random);
        node_info_decode(info, &got);
        assert_int_equal(got.type, mad_get_field(info, 0, IB_NODE_TYPE_F));
        assert_int_equal(got.num_ports, mad_get_field(info, 0, IB_NODE_NPORTS_F));
        assert_int_equal(got.local_port, mad_get_field(info, 0, IB_NODE_LOCAL_PORT_F));
        assert_int_equal(got.vendor_id, mad_get_field(info, 0, IB_NODE_VENDORID_F));
        assert_int_equal(got.device_id, mad_get_field(info, 0, IB_NODE_DEVID_F));
        assert_true(got.system_guid == mad_get_field64(info, 0, IB_NODE_SYSTEM_GUID_F));
        assert_true(got.node_guid == mad_get_field64(info, 0, IB_NODE_GUID_F));
        assert_true(got.port_guid == mad_get_field64(info, 0, IB_NODE_PORT_GUID_F));
    }
}

static unsigned expected_width(unsigned field)
{
    return field == 1 ? 1 : field == 2 ? 4 : field == 4 ? 8 : field == 8 ? 12 : field == 16 ? 2 : 0;
}

static enum fab_speed expected_speed(uint8_t *info, uint8_t *capabilities, bool fdr10)
{
    unsigned mask = mad_get_field(capabilities, 0, IB_PORT_CAPMASK_F);
    unsigned mask2 = mask & CAP_MASK2 ? mad_get_field(capabilities, 0, IB_PORT_CAPMASK2_F) : 0;
    unsigned active = mad_get_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F);
    unsigned ext = mask & EXT_SPEEDS ? mad_get_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F) : 0;
    unsigned ext2 = mask & EXT_SPEEDS && mask2 & EXT_SPEEDS2 ? info[56] >> 5 & 3 : 0;
    if (ext2 != 0)
        return ext2 == 1 ? FAB_XDR : FAB_SPEED_UNKNOWN;
    if (ext != 0)
        return ext == 1   ? FAB_FDR
               : ext == 2 ? FAB_EDR
               : ext == 4 ? FAB_HDR
               : ext == 8 ? FAB_NDR
                          : FAB_SPEED_UNKNOWN;
    if (active == 4)
        return fdr10 ? FAB_FDR10 : FAB_QDR;
    return active == 1 ? FAB_SDR : active == 2 ? FAB_DDR : FAB_SPEED_UNKNOWN;
}

TEST(test_port_info)
{
    uint64_t random = 2;
    bool seen[FAB_XDR + 1] = {false};
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t info[ATTRIBUTE_SIZE], capabilities[ATTRIBUTE_SIZE];
        struct port_info got;
        bool fdr10 = fabric_random_next(&random) >> 40 & 1;
        random_bytes(info, &random);
        random_bytes(capabilities, &random);
        info[31] = (uint8_t)(1u << fabric_random_next(&random) % 6);
        if (round % 2 != 0)
            info[62] = (uint8_t)(16u << fabric_random_next(&random) % 5);
        port_info_decode(info, capabilities, fdr10, &got);
        unsigned logical = mad_get_field(info, 0, IB_PORT_STATE_F);
        assert_true(got.prefix == mad_get_field64(info, 0, IB_PORT_GID_PREFIX_F));
        assert_int_equal(got.lid, mad_get_field(info, 0, IB_PORT_LID_F));
        assert_int_equal(got.lmc, mad_get_field(info, 0, IB_PORT_LMC_F));
        const unsigned physical = mad_get_field(info, 0, IB_PORT_PHYS_STATE_F);
        assert_int_equal(got.state, physical == 3  ? FAB_PORT_DISABLED
                                    : logical <= 4 ? logical
                                                   : FAB_PORT_UNKNOWN);
        assert_int_equal(got.link_up, mad_get_field(info, 0, IB_PORT_PHYS_STATE_F) == 5);
        assert_int_equal(got.width, expected_width(mad_get_field(info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F)));
        assert_int_equal(got.speed, expected_speed(info, capabilities, fdr10));
        seen[got.speed] = true;
        port_info_decode(info, NULL, fdr10, &got);
        assert_int_equal(got.speed, FAB_SPEED_UNKNOWN);
    }
    for (unsigned i = 0; i <= FAB_XDR; i++)
        assert_true(seen[i]);
}

/* ---- hand-made fabrics ---- */

#define MAX_NODES 8

struct made {
    ibnd_fabric_t fabric;
    ibnd_node_t *nodes[MAX_NODES];
    unsigned n;
};

static ibnd_node_t *make_node(struct made *m, int type, uint64_t guid, int numports, const char *desc)
{
    ibnd_node_t *node = must_have(sizeof(*node));
    assert_true(m->n < MAX_NODES);
    node->ports = must_have(((size_t)numports + 1) * sizeof(ibnd_port_t *));
    node->guid = guid;
    node->type = type;
    node->numports = numports;
    mad_set_field(node->info, 0, IB_NODE_TYPE_F, (uint32_t)type);
    mad_set_field(node->info, 0, IB_NODE_NPORTS_F, (uint32_t)numports);
    mad_set_field(node->info, 0, IB_NODE_VENDORID_F, 0x2c9);
    mad_set_field(node->info, 0, IB_NODE_DEVID_F, 0x1017);
    mad_set_field64(node->info, 0, IB_NODE_GUID_F, guid);
    mad_set_field64(node->info, 0, IB_NODE_SYSTEM_GUID_F, guid);
    strncpy(node->nodedesc, desc, IB_SMP_DATA_SIZE);
    m->nodes[m->n++] = node;
    return node;
}

/* An active 4x EDR port. */
static ibnd_port_t *make_port(ibnd_node_t *node, int num)
{
    ibnd_port_t *port = must_have(sizeof(*port));
    port->node = node;
    port->portnum = num;
    port->guid = node->guid + (node->type == IB_NODE_SWITCH ? 0 : (uint64_t)num);
    mad_set_field(port->info, 0, IB_PORT_STATE_F, 4);
    mad_set_field(port->info, 0, IB_PORT_PHYS_STATE_F, 5);
    mad_set_field(port->info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F, 2);
    mad_set_field(port->info, 0, IB_PORT_LINK_SPEED_ACTIVE_F, 4);
    mad_set_field(port->info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 2);
    mad_set_field(port->info, 0, IB_PORT_CAPMASK_F,
                  node->type == IB_NODE_SWITCH && num != 0 ? 0 : EXT_SPEEDS);
    mad_set_field(port->info, 0, IB_PORT_LID_F, (uint32_t)(node->guid & 0xff));
    mad_set_field64(port->info, 0, IB_PORT_GID_PREFIX_F, 0xfec0000000000007ull);
    node->ports[num] = port;
    return port;
}

static void cable(ibnd_port_t *a, ibnd_port_t *b)
{
    a->remoteport = b;
    b->remoteport = a;
}

/* Link the list of nodes, from the last made or from the first, and look. */
static int look(struct made *m, bool backwards, struct fab_inventory *inv, struct fab_err *err)
{
    SCOPED_BY(observed_free) struct observed seen;
    m->fabric.nodes = NULL;
    for (unsigned i = 0; i < m->n; i++) {
        ibnd_node_t *node = m->nodes[backwards ? i : m->n - 1 - i];
        node->next = m->fabric.nodes;
        m->fabric.nodes = node;
    }
    fab_inventory_init(inv);
    int rc = ibnetdisc_observe(&m->fabric, &seen, err);
    if (rc == PMIXFAB_OK)
        rc = observed_inventory(&seen, NULL, inv, err);
    return rc;
}

static void made_destroy(struct made *m)
{
    for (unsigned i = 0; i < m->n; i++) {
        for (int p = 0; p <= m->nodes[i]->numports; p++)
            free(m->nodes[i]->ports[p]);
        free(m->nodes[i]->ports);
        free(m->nodes[i]);
    }
}

/* All that is there. */
static struct fab_inventory look_well(struct made *m, bool backwards)
{
    struct fab_inventory inv;
    must_do(look(m, backwards, &inv, fresh_err()));
    return inv;
}

/* A switch with two hosts, one of them with a second port that was not reached. */
static struct made make_small(void)
{
    struct made small = {0}, *m = &small;
    ibnd_node_t *leaf = make_node(m, IB_NODE_SWITCH, 0x21, 4, "leaf");
    ibnd_node_t *n1 = make_node(m, IB_NODE_CA, 0x11, 2, "n1 HCA-1");
    ibnd_node_t *n2 = make_node(m, IB_NODE_CA, 0x13, 1, "n2 HCA-1");
    leaf->smalid = 9;
    leaf->smaenhsp0 = 1;
    make_port(leaf, 0);
    for (int p = 1; p <= 4; p++) {
        ibnd_port_t *port = make_port(leaf, p);
        if (p > 2) {
            mad_set_field(port->info, 0, IB_PORT_STATE_F, 1);
            mad_set_field(port->info, 0, IB_PORT_PHYS_STATE_F, 2);
        }
    }
    cable(leaf->ports[1], make_port(n1, 1));
    cable(leaf->ports[2], make_port(n2, 1));
    m->fabric.from_node = n1;
    m->fabric.from_portnum = 1;
    return small;
}

static const struct fab_port *port_of(const struct fab_inventory *inv, uint64_t guid, unsigned num)
{
    uint32_t i = fab_inventory_port(inv, fab_inventory_find(inv, guid), num);
    return i == FAB_NONE ? NULL : &inv->ports[i];
}

TEST(test_small)
{
    SCOPED(made) m = make_small();
    SCOPED(fab_inventory) inv = look_well(&m, false);
    assert_int_equal(inv.n_nodes, 3);
    assert_int_equal(inv.n_ports, 4); /* empty switch ports are not listed */
    assert_int_equal(inv.n_dangling, 0);
    assert_true(inv.subnets[0].prefix == 0xfec0000000000007ull);
    const struct fab_node *leaf = &inv.nodes[fab_inventory_find(&inv, 0x21)];
    assert_int_equal(leaf->lid, 9);
    assert_int_equal(leaf->enhanced, 1);
    const struct fab_port *port = port_of(&inv, 0x13, 1);
    assert_int_equal(port->speed, FAB_EDR);
    assert_int_equal(port->width, 4);
    assert_int_equal(port->lid, 0x13);
    assert_int_equal(port->guid, 0x14);
    assert_ptr_equal(&inv.ports[port->peer], port_of(&inv, 0x21, 2));
    assert_int_equal(inv.ports[port->peer].speed, FAB_EDR); /* by the capabilities of port 0 */
    SCOPED(fab_inventory) other = look_well(&m, true);
    assert_true(fab_inventory_equal(&inv, &other));
}

TEST(test_partial)
{
    SCOPED(made) m = make_small();
    /* port 3 is up and its neighbour did not answer; port 2's neighbour forgot it */
    mad_set_field(m.nodes[0]->ports[3]->info, 0, IB_PORT_STATE_F, 2);
    mad_set_field(m.nodes[0]->ports[3]->info, 0, IB_PORT_PHYS_STATE_F, 5);
    m.nodes[2]->ports[1]->remoteport = NULL;
    SCOPED(fab_inventory) inv = look_well(&m, false);
    assert_int_equal(port_of(&inv, 0x21, 3)->state, FAB_PORT_INIT);
    assert_int_equal(port_of(&inv, 0x21, 3)->peer, FAB_NONE);
    assert_int_equal(port_of(&inv, 0x21, 2)->peer, FAB_NONE);
    assert_int_equal(inv.n_dangling, 3);
    fab_inventory_destroy(&inv);
    /* a port that gave no PortInfo: a discovery that ended early leaves no other trace */
    ibnd_port_t *silent = m.nodes[0]->ports[3];
    m.nodes[0]->ports[3] = NULL;
    inv = look_well(&m, false);
    assert_int_equal(port_of(&inv, 0x21, 3)->state, FAB_PORT_UNKNOWN);
    assert_int_equal(inv.n_dangling, 3);
    fab_inventory_destroy(&inv);
    m.nodes[0]->ports[3] = silent;
    /* a node of a type that does not exist is left out */
    mad_set_field(m.nodes[1]->info, 0, IB_NODE_TYPE_F, 7);
    inv = look_well(&m, false);
    assert_int_equal(inv.n_nodes, 2);
    assert_int_equal(port_of(&inv, 0x21, 1)->peer, FAB_NONE);
    fab_inventory_destroy(&inv);
    /* no node at all */
    struct made none = {0};
    assert_int_equal(look(&none, false, &inv, fresh_err()), PMIXFAB_ERR_PARTIAL);
}

TEST(test_self_loop)
{
    SCOPED(made) m = make_small();
    cable(m.nodes[0]->ports[3], m.nodes[0]->ports[4]);
    SCOPED(fab_inventory) inv = look_well(&m, false);
    for (unsigned num = 3; num <= 4; num++) {
        assert_int_equal(port_of(&inv, 0x21, num)->state, FAB_PORT_LOOPED);
        assert_int_equal(port_of(&inv, 0x21, num)->peer, FAB_NONE);
    }
    assert_int_equal(inv.n_dangling, 0);
    fab_inventory_destroy(&inv);
    m.nodes[0]->ports[4]->remoteport = NULL;
    cable(m.nodes[0]->ports[3], m.nodes[0]->ports[3]); /* a loopback plug */
    inv = look_well(&m, false);
    assert_int_equal(port_of(&inv, 0x21, 3)->state, FAB_PORT_LOOPED);
    assert_null(port_of(&inv, 0x21, 4));
}

/* An HCA's other ports are listed only where none is cabled. */
TEST(test_hca_ports)
{
    SCOPED(made) m = make_small();
    ibnd_port_t *second = make_port(m.nodes[1], 2);
    mad_set_field(second->info, 0, IB_PORT_STATE_F, 1);
    mad_set_field(second->info, 0, IB_PORT_PHYS_STATE_F, 2);
    SCOPED(fab_inventory) inv = look_well(&m, false);
    assert_null(port_of(&inv, 0x11, 2));
    fab_inventory_destroy(&inv);

    SCOPED(made) alone = {0};
    ibnd_node_t *node = make_node(&alone, IB_NODE_CA, 0x31, 2, "n3");
    ibnd_port_t *port = make_port(node, 1);
    mad_set_field(port->info, 0, IB_PORT_STATE_F, 1);
    mad_set_field(port->info, 0, IB_PORT_PHYS_STATE_F, 2);
    mad_set_field64(port->info, 0, IB_PORT_GID_PREFIX_F, 0);
    alone.fabric.from_node = node;
    alone.fabric.from_portnum = 1;
    inv = look_well(&alone, false);
    assert_int_equal(inv.n_ports, 1);
    assert_int_equal(inv.ports[0].state, FAB_PORT_DOWN);
    assert_int_equal(inv.ports[0].width, 0);
    assert_true(inv.subnets[0].prefix == FAB_DEFAULT_PREFIX);
}

TEST(test_speeds)
{
    SCOPED(made) m = make_small();
    mad_set_field(m.nodes[1]->ports[1]->info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 0);
    mad_set_field(m.nodes[1]->ports[1]->ext_info, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F, 1);
    mad_set_field(m.nodes[2]->ports[1]->info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 8);
    free(m.nodes[0]->ports[0]); /* port 0 did not answer: the switch's speeds are not known */
    m.nodes[0]->ports[0] = NULL;
    SCOPED(fab_inventory) inv = look_well(&m, false);
    assert_int_equal(port_of(&inv, 0x11, 1)->speed, FAB_FDR10);
    assert_int_equal(port_of(&inv, 0x13, 1)->speed, FAB_NDR);
    assert_int_equal(port_of(&inv, 0x21, 1)->speed, FAB_SPEED_UNKNOWN);
}

/* Chassis numbers do not depend on the order in which the library came by; slots stand in descriptions. */
TEST(test_chassis)
{
    static const struct {
        uint64_t guid, system;
        const char *desc;
        unsigned chassis, slot_type, slot, chip;
    } parts[] = {
        {0x50, 0x900, "MF0;b:CS7500/L02/U1", 1, 1, 2, 1}, {0x70, 0x800, "MF0;a:CS7500/S11:x/U2", 2, 2, 11, 2},
        {0x60, 0x800, "MF0;a:CS7500/S0x/U1", 2, 0, 0, 0}, {0x61, 0x900, "MF0;b:CS7500/U1", 1, 0, 0, 0},
        {0x40, 0x700, "MF0;c:CS7500/L01/U1", 0, 1, 1, 1}, {0x41, 0, "MF0;c/L01/U1", 0, 0, 0, 0},
        {0x42, 0, "MF0;c:CS7500/L300/U1", 0, 0, 0, 0},
    };
    SCOPED(made) m = {0};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        ibnd_node_t *node = make_node(&m, IB_NODE_SWITCH, parts[i].guid, 4, parts[i].desc);
        mad_set_field64(node->info, 0, IB_NODE_SYSTEM_GUID_F, parts[i].system);
    }
    SCOPED(fab_inventory) inv = look_well(&m, false), other = look_well(&m, true);
    assert_true(fab_inventory_equal(&inv, &other));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const struct fab_node *node = &inv.nodes[fab_inventory_find(&inv, parts[i].guid)];
        assert_int_equal(node->chassis, parts[i].chassis);
        assert_int_equal(node->slot_type, parts[i].slot_type);
        assert_int_equal(node->slot, parts[i].slot);
        assert_int_equal(node->chip, parts[i].chip);
    }
}

/* As ibnetdiscover prints it, so that a capture of the subnet says the same; 64 bytes without an end are none
 * too many. */
TEST(test_description)
{
    SCOPED(made) m = {0};
    char full[ATTRIBUTE_SIZE + 1];
    memset(full, 'x', ATTRIBUTE_SIZE);
    full[ATTRIBUTE_SIZE] = '\0';
    make_node(&m, IB_NODE_SWITCH, 0x21, 4, "a\x01 \"b\"\xc3\xb6\t.");
    make_node(&m, IB_NODE_SWITCH, 0x22, 4, full);
    SCOPED(fab_inventory) inv = look_well(&m, false);
    assert_string_equal(fab_str(&inv, inv.nodes[0].desc), "a  \"b\"   .");
    assert_string_equal(fab_str(&inv, inv.nodes[1].desc), full);
}

TEST(test_target)
{
    static const struct {
        const char *arg, *ca;
        int port, code;
    } cases[] = {
        {NULL, "", 0, PMIXFAB_OK},
        {"", "", 0, PMIXFAB_OK},
        {"mlx5_0", "mlx5_0", 0, PMIXFAB_OK},
        {"mlx5_0:1", "mlx5_0", 1, PMIXFAB_OK},
        {":2", "", 2, PMIXFAB_OK},
        {"mlx5_0:254", "mlx5_0", 254, PMIXFAB_OK},
        {"mlx5_0:0", "", 0, PMIXFAB_ERR_INVAL},
        {"mlx5_0:255", "", 0, PMIXFAB_ERR_INVAL},
        {"mlx5_0:", "", 0, PMIXFAB_ERR_INVAL},
        {"mlx5_0:1:1", "", 0, PMIXFAB_ERR_INVAL},
        {"mlx5_0:99999999999999999999", "", 0, PMIXFAB_ERR_INVAL},
        {"../mlx5_0", "", 0, PMIXFAB_ERR_INVAL},
        {"a b", "", 0, PMIXFAB_ERR_INVAL},
        {"a_name_of_twenty_chrs", "", 0, PMIXFAB_ERR_INVAL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char ca[UMAD_CA_NAME_LEN];
        int port;
        struct fab_err err = {{0}};
        assert_int_equal(ibnetdisc_target(cases[i].arg, ca, &port, &err), cases[i].code);
        if (cases[i].code == PMIXFAB_OK) {
            assert_string_equal(ca, cases[i].ca);
            assert_int_equal(port, cases[i].port);
        } else {
            assert_true(err.text[0] != '\0');
        }
    }
}

/* Without a device the probe says so. (With one, this test has nothing to say.) */
TEST(test_absent)
{
    SCOPED(fab_inventory) inv = {0};
    struct fab_err err = {{0}};
    struct probe_config config = {0};
    char text[256] = "";
    const struct probe *probe = probe_find("ibnetdisc", NULL);
    assert_non_null(probe);
    if (probe->available(text, sizeof(text)) == PMIXFAB_OK)
        skip();
    assert_non_null(strstr(text, "/sys/class/infiniband_mad"));
    assert_int_equal(probe->run(&config, NULL, &inv, &err), PMIXFAB_ERR_NOTFOUND);
    assert_non_null(strstr(err.text, "/sys/class/infiniband_mad"));
}

#else

TEST(test_not_built)
{
    assert_null(probe_find("ibnetdisc", NULL));
}

#endif
