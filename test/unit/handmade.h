/* handmade.h - for tests of inventories: small ones put together by hand, and copies with something
 * changed. */
#ifndef FAB_TEST_HANDMADE_H
#define FAB_TEST_HANDMADE_H

#include "test/unit/generated.h"
#include "topo/model/names.h"

OWNER(fab_names_free, struct fab_names)

static inline uint32_t hand_node(struct fab_inventory *inv, unsigned kind, uint64_t guid, const char *desc,
                                 unsigned ports, uint32_t line)
{
    uint32_t index = FAB_NONE;
    struct fab_node node = {.guid = guid, .kind = (uint8_t)kind, .num_ports = (uint8_t)ports, .line = line};
    node.desc = fab_inventory_string(inv, desc, strlen(desc));
    assert_int_equal(fab_inventory_add_node(inv, &node, &index), 0);
    return index;
}

/* An ACTIVE port at 4xHDR. */
static inline uint32_t hand_port(struct fab_inventory *inv, uint32_t node, unsigned num, uint64_t guid,
                                 uint32_t line)
{
    uint32_t index = FAB_NONE;
    struct fab_port port = {.guid = guid,
                            .node = node,
                            .num = (uint8_t)num,
                            .line = line,
                            .state = FAB_PORT_ACTIVE,
                            .width = 4,
                            .speed = FAB_HDR};
    assert_int_equal(fab_inventory_add_port(inv, &port, &index), 0);
    return index;
}

static inline void hand_cable(struct fab_inventory *inv, uint32_t node_a, unsigned num_a, uint32_t node_b,
                              unsigned num_b)
{
    uint64_t guid_a = inv->nodes[node_a].kind == FAB_HCA ? inv->nodes[node_a].guid + num_a : 0;
    uint64_t guid_b = inv->nodes[node_b].kind == FAB_HCA ? inv->nodes[node_b].guid + num_b : 0;
    uint32_t a = hand_port(inv, node_a, num_a, guid_a, 0), b = hand_port(inv, node_b, num_b, guid_b, 0);
    assert_int_equal(fab_inventory_link(inv, a, b), 0);
}

static inline void hand_finish(struct fab_inventory *inv)
{
    must_do(fab_inventory_finish(inv, fresh_err()));
}

static inline void hand_names(struct fab_inventory *inv, const char *pattern)
{
    OWNED(fab_names_free) struct fab_names *names = NULL;
    assert_int_equal(fab_names_new(pattern, &names, NULL), 0);
    assert_int_equal(fab_names_apply(names, inv, NULL), 0);
}

/* HCAs of so many ports on one switch, 0x200, "leaf1": `first`, first + 0x10..., port 1 of each cabled. Named
 * and finished; *inv is initialised here. */
static inline void hand_star(struct fab_inventory *inv, uint64_t first, unsigned ports,
                             const char *const *descs, uint32_t n)
{
    fab_inventory_init(inv);
    inv->n_subnets = 1;
    inv->subnets[0].prefix = FAB_DEFAULT_PREFIX;
    uint32_t sw = hand_node(inv, FAB_SWITCH, 0x200, "leaf1", 36, 0);
    for (uint32_t i = 0; i < n; i++)
        hand_cable(inv, sw, i + 1, hand_node(inv, FAB_HCA, first + 0x10 * i, descs[i], ports, 0), 1);
    hand_finish(inv);
    hand_names(inv, NULL);
}

/* One more port of a node of a finished inventory: nothing is known of it but its state. */
static inline void hand_uncabled(struct fab_inventory *inv, uint64_t node_guid, unsigned num,
                                 enum fab_port_state state)
{
    struct fab_port port = {.node = fab_inventory_find(inv, node_guid),
                            .peer = FAB_NONE,
                            .num = (uint8_t)num,
                            .state = (uint8_t)state};
    if (inv->nodes[port.node].num_ports < num)
        inv->nodes[port.node].num_ports = (uint8_t)num;
    inv->finished = false;
    assert_int_equal(fab_inventory_add_port(inv, &port, NULL), 0);
    hand_finish(inv);
}

#define HAND_STAR(inv, first, ports, ...) hand_star(inv, first, ports, LINES(__VA_ARGS__))

/* What a copy leaves out: one flag an element of the original. A cable goes with either end's flag or node.
 */
struct hand_without {
    bool *node, *cable, *port;
};

static inline struct hand_without hand_without_new(const struct fab_inventory *inv)
{
    return (struct hand_without){.node = calloc(inv->n_nodes + 1u, sizeof(bool)),
                                 .cable = calloc(inv->n_ports + 1u, sizeof(bool)),
                                 .port = calloc(inv->n_ports + 1u, sizeof(bool))};
}

static inline void hand_without_free(struct hand_without *w)
{
    free(w->node);
    free(w->cable);
    free(w->port);
}

/* A text of one inventory, in another. */
static inline uint32_t hand_string(struct fab_inventory *to, const struct fab_inventory *from,
                                   uint32_t offset)
{
    return fab_inventory_string(to, fab_str(from, offset), strlen(fab_str(from, offset)));
}

/* A plain copy into *to (initialised here, not finished), element by element in another order where seed !=
 * 0. */
static inline void hand_copy(struct fab_inventory *to, const struct fab_inventory *from,
                             const struct hand_without *without, uint64_t seed)
{
    OWNED(free) uint32_t *order = malloc((from->n_nodes + from->n_ports + 1u) * sizeof(*order));
    OWNED(free) uint32_t *at = malloc((from->n_nodes + from->n_ports + 1u) * sizeof(*at));
    uint32_t *port_order = order + from->n_nodes, *port_at = at + from->n_nodes;

    fab_inventory_init(to);
    to->n_subnets = from->n_subnets;
    memcpy(to->subnets, from->subnets, sizeof(to->subnets));
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t n = pass == 0 ? from->n_nodes : from->n_ports, *list = pass == 0 ? order : port_order;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t k = seed == 0 ? i : (uint32_t)(fabric_random_next(&seed) % (i + 1));
            list[i] = list[k];
            list[k] = i;
        }
    }
    for (uint32_t i = 0; i < from->n_nodes; i++) {
        struct fab_node node = from->nodes[order[i]];
        uint32_t *texts[] = {&node.desc, &node.host, &node.name};
        at[order[i]] = FAB_NONE;
        if (without->node[order[i]])
            continue;
        for (int t = 0; t < 3; t++)
            *texts[t] = hand_string(to, from, *texts[t]);
        assert_int_equal(fab_inventory_add_node(to, &node, &at[order[i]]), 0);
    }
    for (uint32_t i = 0; i < from->n_ports; i++) {
        struct fab_port port = from->ports[port_order[i]];
        port_at[port_order[i]] = FAB_NONE;
        if (without->node[port.node] || without->port[port_order[i]])
            continue;
        port.node = at[port.node];
        assert_int_equal(fab_inventory_add_port(to, &port, &port_at[port_order[i]]), 0);
    }
    for (uint32_t i = 0; i < from->n_ports; i++) {
        uint32_t peer = from->ports[i].peer;
        if (peer == FAB_NONE || peer < i || without->cable[i] || without->cable[peer] ||
            port_at[i] == FAB_NONE || port_at[peer] == FAB_NONE)
            continue;
        assert_int_equal(fab_inventory_link(to, port_at[i], port_at[peer]), 0);
    }
}

#endif
