/* An inventory as bytes: there and back, and nothing else gets in. */
#include "test/unit/handmade.h"
#include "test/unit/wire_lies.h"
#include "topo/model/inventory_wire.h"

/* Where things stand in the bytes of an inventory with one subnet. */
enum {
    AT_VERSION = 8,
    AT_TOTAL = 16,
    AT_COUNTS = 32,
    AT_NODES = 48 + 9 + FAB_VIEW_NAME,
    NODE = 52,
    PORT = 28
};

static struct message encode(const struct fab_inventory *inv)
{
    void *bytes = NULL;
    size_t size = 0;
    assert_int_equal(fab_wire_encode(inv, &bytes, &size), 0);
    assert_non_null(bytes);
    assert_true(size >= FAB_WIRE_HEAD);
    assert_int_equal(fab_wire_total(bytes), size);
    return (struct message){bytes, size};
}

static struct message encode_small(void)
{
    SCOPED(fab_inventory) inv = generated("fattree2:2,1,1");
    struct message m = encode(&inv);
    return m;
}

static int decode(const uint8_t *bytes, size_t size, struct fab_inventory *inv, struct fab_err *err)
{
    SCOPED(message) exact = message_copy(bytes, size);
    return fab_wire_decode(exact.bytes, size, inv, err);
}

static void refused(const uint8_t *bytes, size_t size, int code, const void *cbdata)
{
    struct fab_inventory inv;
    struct fab_err err = {{0}};
    int rc = decode(bytes, size, &inv, &err);
    (void)cbdata;
    assert_true(rc < 0);
    if (code != 0)
        assert_int_equal(rc, code);
    assert_true(err.text[0] != '\0');
    assert_int_equal(inv.n_nodes, 0);
    assert_true(inv.nodes == NULL && inv.pool == NULL && !inv.finished);
}

TEST(test_there_and_back)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        SCOPED(fab_inventory) a, b;
        if (seed == 0) {
            fab_inventory_init(&a);
            hand_finish(&a);
        } else {
            assert_int_equal(fabric_random(&a, (unsigned)seed, 60, 20, 1, seed), 0);
        }
        a.n_subnets += a.n_subnets > 0;
        a.subnets[1].prefix = 0xfec0000000000abcu;
        strcpy(a.subnets[1].view, "net.1");
        a.subnets[1].is_default = true;
        for (uint32_t i = 0; i < a.n_nodes; i++) {
            a.nodes[i].line = i + 1;
            a.nodes[i].chassis = (uint16_t)(i * 257);
            a.nodes[i].slot = (uint8_t)i;
            a.nodes[i].unnamed = i % 2;
        }
        for (uint32_t i = 0; i < a.n_ports; i++) {
            a.ports[i].line = 3 * i;
            a.ports[i].subnet = i % 2;
        }
        SCOPED(message) m = encode(&a);
        assert_int_equal(decode(m.bytes, m.size, &b, NULL), 0);
        assert_true(fab_inventory_equal(&a, &b));
        for (uint32_t i = 0; i < a.n_subnets; i++) {
            assert_string_equal(a.subnets[i].view, b.subnets[i].view);
            assert_int_equal(a.subnets[i].is_default, b.subnets[i].is_default);
        }
        assert_int_equal(a.n_dangling, b.n_dangling);
        for (uint32_t i = 0; i < a.n_nodes; i++)
            assert_int_equal(a.nodes[i].line, b.nodes[i].line);
        for (uint32_t i = 0; i < a.n_ports; i++)
            assert_int_equal(a.ports[i].line, b.ports[i].line);
        if (seed > 0) {
            SCOPED(message) again = encode(&b);
            assert_int_equal(again.size, m.size);
            assert_memory_equal(again.bytes, m.bytes, m.size);
        }
        /* what came over the pipe can go on: named, merged */
        hand_names(&b, NULL);
    }
}

TEST(test_unfinished_is_not_sent)
{
    struct fab_inventory inv;
    void *bytes = &inv;
    size_t size = 1;
    fab_inventory_init(&inv);
    assert_int_equal(fab_wire_encode(&inv, &bytes, &size), PMIXFAB_ERR_INVAL);
    assert_null(bytes);
    assert_int_equal(size, 0);
}

TEST(test_every_flip_and_every_cut)
{
    SCOPED(message) m = encode_small();
    refuses_flips(&m, SIZE_MAX, 0, refused, NULL);
    refuses_cuts(&m, refused, NULL);
}

TEST(test_named_errors)
{
    SCOPED(message) m = encode_small();
    SCOPED(fab_inventory) inv;

    assert_int_equal(fab_wire_decode(NULL, 0, &inv, NULL), PMIXFAB_ERR_TRUNCATED);
    m.bytes[0] ^= 1;
    refused(m.bytes, m.size, PMIXFAB_ERR_FOREIGN, NULL);
    assert_int_equal(fab_wire_total(m.bytes), 0);
    m.bytes[0] ^= 1;
    wire_put(m.bytes + AT_VERSION, 3, 4);
    wire_seal(m.bytes, m.size);
    refused(m.bytes, m.size, PMIXFAB_ERR_NEWER, NULL);
    wire_put(m.bytes + AT_VERSION, 0, 4);
    wire_seal(m.bytes, m.size);
    refused(m.bytes, m.size, PMIXFAB_ERR_OLDER, NULL);
    wire_put(m.bytes + AT_VERSION, 2, 4);
    wire_seal(m.bytes, m.size);
    assert_int_equal(decode(m.bytes, m.size, &inv, NULL), 0); /* the seal is the true one */
    wire_put(m.bytes + AT_TOTAL, (uint64_t)FAB_WIRE_MAX + 1, 8);
    assert_int_equal(fab_wire_total(m.bytes), (uint64_t)FAB_WIRE_MAX + 1);
    refused(m.bytes, m.size, PMIXFAB_ERR_CORRUPT, NULL);
    wire_put(m.bytes + AT_TOTAL, FAB_WIRE_HEAD, 8);
    refused(m.bytes, m.size, PMIXFAB_ERR_CORRUPT, NULL);
}

/* A writer that lies and seals its lies. */
TEST(test_lies)
{
    SCOPED(message) m = encode_small();
    const struct lie lies[] = {
        {AT_COUNTS, 4, 0, PMIXFAB_ERR_CORRUPT}, /* subnets */
        {AT_COUNTS, 4, 33, PMIXFAB_ERR_CORRUPT},
        {AT_COUNTS, 4, UINT32_MAX, PMIXFAB_ERR_CORRUPT},
        {AT_COUNTS + 4, 4, UINT32_MAX, PMIXFAB_ERR_CORRUPT},            /* nodes */
        {AT_COUNTS + 8, 4, UINT32_MAX, PMIXFAB_ERR_CORRUPT},            /* ports */
        {AT_COUNTS + 12, 4, UINT32_MAX, PMIXFAB_ERR_CORRUPT},           /* pool */
        {AT_NODES, 8, 0, PMIXFAB_ERR_RANGE},                            /* GUID */
        {AT_NODES + NODE, 8, 0x100000, PMIXFAB_ERR_CONFLICT},           /* another's GUID */
        {AT_NODES + 24, 4, UINT32_MAX, PMIXFAB_ERR_CORRUPT},            /* description */
        {AT_NODES + 28, 4, 1u << 30, PMIXFAB_ERR_CORRUPT},              /* host */
        {AT_NODES + 32, 4, 1u << 30, PMIXFAB_ERR_CORRUPT},              /* name */
        {AT_NODES + 47, 1, 9, PMIXFAB_ERR_RANGE},                       /* kind */
        {AT_NODES + 49, 1, 0, PMIXFAB_ERR_RANGE},                       /* number of ports */
        {AT_NODES + 5 * NODE + 8, 4, 99, PMIXFAB_ERR_CORRUPT},          /* first port: its node */
        {AT_NODES + 5 * NODE + 12, 4, 0x7fffffff, PMIXFAB_ERR_CORRUPT}, /* its peer */
        {AT_NODES + 5 * NODE + 12, 4, 0, PMIXFAB_ERR_CONFLICT},         /* itself */
        {AT_NODES + 5 * NODE + 22, 1, 0, PMIXFAB_ERR_RANGE},            /* its number */
        {AT_NODES + 5 * NODE + 24, 1, 200, PMIXFAB_ERR_RANGE},          /* its state */
        {AT_NODES + 5 * NODE + 25, 1, 200, PMIXFAB_ERR_RANGE},          /* its width */
        {AT_NODES + 5 * NODE + 26, 1, 200, PMIXFAB_ERR_RANGE},          /* its speed */
        {AT_NODES + 5 * NODE + 27, 1, 200, PMIXFAB_ERR_RANGE},          /* its subnet */
        {m.size - 1, 1, 'x', PMIXFAB_ERR_CORRUPT},                      /* names that do not end */
    };
    refuses_lies(&m, lies, sizeof(lies) / sizeof(lies[0]), refused, NULL);
    SCOPED(message) longer = {must_have(m.size + 1), m.size + 1}; /* a byte that no count speaks of */
    memcpy(longer.bytes, m.bytes, m.size);
    wire_seal(longer.bytes, longer.size);
    refused(longer.bytes, longer.size, PMIXFAB_ERR_CORRUPT, NULL);
}

/* What must hold in a finished inventory, asked of every element. */
static void assert_sound(const struct fab_inventory *inv)
{
    assert_true(inv->finished);
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        assert_true(i == 0 || inv->nodes[i - 1].guid < node->guid);
        assert_true(node->desc < inv->pool_size && node->host < inv->pool_size &&
                    node->name < inv->pool_size);
        assert_true(node->first_port + node->n_ports <= inv->n_ports && node->num_ports >= node->n_ports);
    }
    for (uint32_t i = 0; i < inv->n_ports; i++) {
        const struct fab_port *port = &inv->ports[i];
        assert_true(port->node < inv->n_nodes && port->subnet < inv->n_subnets);
        assert_true(port->num >= 1 && port->num <= inv->nodes[port->node].num_ports);
        if (port->peer == FAB_NONE)
            continue;
        assert_true(port->peer < inv->n_ports);
        assert_int_equal(inv->ports[port->peer].peer, i);
        assert_int_not_equal(inv->ports[port->peer].node, port->node);
    }
}

/* Whatever is let in is a finished inventory. */
TEST(test_random_lies)
{
    SCOPED(message) m = encode_small();
    OWNED(free) uint8_t *copy = malloc(m.size);
    uint64_t seed = 11;
    unsigned let_in = 0;

    for (int round = 0; round < 6000; round++) {
        struct fab_inventory inv;
        memcpy(copy, m.bytes, m.size);
        for (uint64_t n = 1 + fabric_random_next(&seed) % 3; n > 0; n--)
            copy[FAB_WIRE_HEAD + fabric_random_next(&seed) % (m.size - FAB_WIRE_HEAD)] =
                (uint8_t)(fabric_random_next(&seed) % (round % 2 == 0 ? 4 : 256));
        size_t size =
            round % 5 == 0 ? FAB_WIRE_HEAD + fabric_random_next(&seed) % (m.size - FAB_WIRE_HEAD) : m.size;
        wire_seal(copy, size);
        if (decode(copy, size, &inv, NULL) != 0)
            continue;
        let_in++;
        assert_sound(&inv);
        SCOPED(fab_inventory) again = inventory_copy(&inv);
        hand_finish(&again);
        assert_true(fab_inventory_equal(&inv, &again));
        fab_inventory_destroy(&inv);
    }
    assert_true(let_in > 30);
}
