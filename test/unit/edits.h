/* edits.h - random edits of a fabric, several at a time: what operators and accidents do to it. */
#ifndef FAB_TEST_EDITS_H
#define FAB_TEST_EDITS_H

#include "test/unit/handmade.h"

#define EDITS_ADDS 16

/* What to do to an inventory; arrays by its nodes and ports. */
struct edits {
    uint8_t *drop_node, *drop_cable; /* drop_cable: at either end */
    uint8_t *slow;                   /* per port: another rate for its cable; 0: as it is */
    uint64_t *guid;                  /* per node: another GUID; 0: as it is */
    uint32_t missing;                /* this switch is missing from now on; FAB_NONE: none */
    bool found;                      /* no switch is missing any more */
    uint32_t add[EDITS_ADDS][2];     /* cables between two nodes; the second FAB_NONE: to a new host */
    unsigned n_adds;
};

/* What never comes again: GUIDs and hosts. */
struct edits_source {
    uint64_t random;
    unsigned next;
};

static inline uint32_t edits_roll(struct edits_source *source, uint32_t sides)
{
    return (uint32_t)(fabric_random_next(&source->random) % sides);
}

static inline void *edits_array(size_t n, size_t size)
{
    void *memory = calloc(n + 1, size);
    if (memory == NULL)
        abort();
    return memory;
}

static inline void edits_begin(struct edits *edits, const struct fab_inventory *inv)
{
    memset(edits, 0, sizeof(*edits));
    edits->missing = FAB_NONE;
    edits->drop_node = edits_array(inv->n_nodes, 1);
    edits->drop_cable = edits_array(inv->n_ports, 1);
    edits->slow = edits_array(inv->n_ports, 1);
    edits->guid = edits_array(inv->n_nodes, sizeof(uint64_t));
}

static inline void edits_end(struct edits *edits)
{
    free(edits->drop_node);
    free(edits->drop_cable);
    free(edits->slow);
    free(edits->guid);
}

/* A random node of a kind; FAB_NONE where none is met. */
static inline uint32_t edits_node(struct edits_source *source, const struct fab_inventory *inv,
                                  enum fab_node_kind kind)
{
    for (unsigned tries = 0; tries < 200 && inv->n_nodes > 0; tries++) {
        uint32_t node = edits_roll(source, inv->n_nodes);
        if (inv->nodes[node].kind == kind)
            return node;
    }
    return FAB_NONE;
}

/* A GUID below or above those of the generators. */
static inline uint64_t edits_guid(struct edits_source *source, enum fab_node_kind kind)
{
    uint64_t base = kind == FAB_SWITCH ? 0x1f0000 : 0x0f0000;
    return base + (edits_roll(source, 2) ? 0x200000 : 0) + 16 * source->next++;
}

/* A random cable between two switches (or from a switch to an HCA); FAB_NONE where none is met. */
static inline uint32_t edits_cable(struct edits_source *source, const struct fab_inventory *inv,
                                   bool switches)
{
    for (unsigned tries = 0; tries < 400 && inv->n_ports > 0; tries++) {
        uint32_t port = edits_roll(source, inv->n_ports), peer = inv->ports[port].peer;
        if (peer != FAB_NONE && inv->nodes[inv->ports[port].node].kind == FAB_SWITCH &&
            (inv->nodes[inv->ports[peer].node].kind == FAB_SWITCH) == switches)
            return port;
    }
    return FAB_NONE;
}

static inline void edits_add(struct edits *edits, uint32_t a, uint32_t b)
{
    if (edits->n_adds == EDITS_ADDS || a == FAB_NONE || a == b)
        return;
    edits->add[edits->n_adds][0] = a;
    edits->add[edits->n_adds++][1] = b;
}

/* The kinds of single edits; edits_one() takes the number modulo EDITS_KINDS. */
enum {
    EDIT_PULL_CABLE,
    EDIT_PULL_HOST,
    EDIT_ADD_CABLE,
    EDIT_ADD_HOST,
    EDIT_MOVE_HOST,
    EDIT_RATE,
    EDIT_HOST_RATE,
    EDIT_LOSE_SWITCH,
    EDIT_LOSE_HOST,
    EDIT_REPLACE_SWITCH,
    EDIT_MISSING, /* a switch is missing, or all that were are back */
    EDITS_KINDS
};

static inline void edits_one(struct edits_source *source, const struct fab_inventory *inv, unsigned kind,
                             struct edits *edits)
{
    bool host = kind == EDIT_PULL_HOST || kind == EDIT_MOVE_HOST || kind == EDIT_HOST_RATE;
    uint32_t cable = edits_cable(source, inv, !host), sw = edits_node(source, inv, FAB_SWITCH);
    uint32_t hca = edits_node(source, inv, FAB_HCA);
    if (sw == FAB_NONE)
        return;
    switch (kind) {
    case EDIT_PULL_CABLE:
    case EDIT_PULL_HOST:
    case EDIT_MOVE_HOST:
        if (cable != FAB_NONE)
            edits->drop_cable[cable] = 1;
        if (cable != FAB_NONE && kind == EDIT_MOVE_HOST)
            edits_add(edits, sw, inv->ports[inv->ports[cable].peer].node);
        break;
    case EDIT_ADD_CABLE:
        edits_add(edits, sw, edits_node(source, inv, FAB_SWITCH));
        break;
    case EDIT_ADD_HOST:
        edits_add(edits, sw, FAB_NONE);
        break;
    case EDIT_RATE:
    case EDIT_HOST_RATE:
        if (cable != FAB_NONE)
            edits->slow[cable] = (uint8_t)(1 + edits_roll(source, 4));
        break;
    case EDIT_LOSE_SWITCH:
        edits->drop_node[sw] = 1;
        break;
    case EDIT_LOSE_HOST:
        if (hca != FAB_NONE)
            edits->drop_node[hca] = 1;
        break;
    case EDIT_REPLACE_SWITCH:
        edits->guid[sw] = edits_guid(source, FAB_SWITCH);
        break;
    case EDIT_MISSING:
        edits->missing = sw;
        for (uint32_t i = 0; i < inv->n_nodes; i++)
            edits->found = edits->found || inv->nodes[i].missing;
        break;
    }
}

/* A free port of a node that is not finished yet. False: it has none. */
static inline bool edits_free_port(const struct fab_inventory *inv, uint32_t node, uint8_t *num)
{
    uint8_t used[256] = {1};
    for (uint32_t p = 0; p < inv->n_ports; p++)
        if (inv->ports[p].node == node)
            used[inv->ports[p].num] = 1;
    for (unsigned n = 1; n < 255; n++)
        if (!used[n]) {
            *num = (uint8_t)n;
            return true;
        }
    return false;
}

static inline uint32_t edits_host(struct fab_inventory *to, struct edits_source *source)
{
    char text[32];
    uint32_t index;
    int len = snprintf(text, sizeof(text), "node%04u", 1 + edits_roll(source, 3) * 5000 + source->next);
    struct fab_node node = {.guid = edits_guid(source, FAB_HCA), .kind = FAB_HCA, .num_ports = 1};
    node.desc = node.host = fab_inventory_string(to, text, (size_t)len);
    node.name = fab_inventory_string(to, "HCA-1", 5);
    assert_int_equal(fab_inventory_add_node(to, &node, &index), 0);
    return index;
}

/* The port for one end of a new cable: a free one of a switch; of an HCA its first that has none, or
 * FAB_NONE. */
static inline uint32_t edits_end_port(struct fab_inventory *to, uint32_t node)
{
    struct fab_port port = {
        .node = node, .peer = FAB_NONE, .state = FAB_PORT_ACTIVE, .width = 4, .speed = FAB_HDR};
    uint32_t index;
    if (to->nodes[node].kind == FAB_HCA) {
        for (uint32_t p = 0; p < to->n_ports; p++)
            if (to->ports[p].node == node) {
                to->ports[p].state = FAB_PORT_ACTIVE;
                return to->ports[p].peer == FAB_NONE ? p : FAB_NONE;
            }
        port.guid = to->nodes[node].guid + 1;
        port.num = 1;
    } else if (!edits_free_port(to, node, &port.num)) {
        return FAB_NONE;
    }
    if (port.num > to->nodes[node].num_ports)
        to->nodes[node].num_ports = port.num;
    assert_int_equal(fab_inventory_add_port(to, &port, &index), 0);
    return index;
}

static inline void edits_ports(const struct fab_inventory *from, const struct edits *edits,
                               const uint32_t *node, struct fab_inventory *to)
{
    static const uint8_t speeds[] = {0, FAB_EDR, FAB_FDR, FAB_QDR, FAB_HDR};
    OWNED(free) uint32_t *port = edits_array(from->n_ports, sizeof(*port));
    for (uint32_t i = 0; i < from->n_ports; i++) {
        struct fab_port p = from->ports[i];
        uint32_t peer = p.peer;
        bool cabled = peer != FAB_NONE && !edits->drop_cable[i] && !edits->drop_cable[peer] &&
                      node[from->ports[peer].node] != FAB_NONE;
        port[i] = FAB_NONE;
        if (node[p.node] == FAB_NONE || (!cabled && from->nodes[p.node].kind == FAB_SWITCH))
            continue;
        unsigned slow = edits->slow[i] != 0 ? edits->slow[i] : peer != FAB_NONE ? edits->slow[peer] : 0;
        p.speed = slow != 0 ? speeds[slow] : p.speed;
        p.state = cabled ? p.state : FAB_PORT_DOWN;
        p.node = node[p.node];
        p.peer = FAB_NONE;
        assert_int_equal(fab_inventory_add_port(to, &p, &port[i]), 0);
        if (cabled && peer < i)
            assert_int_equal(fab_inventory_link(to, port[peer], port[i]), 0);
    }
}

/* `to` is initialised here, and finished. */
static inline void edits_apply(const struct fab_inventory *from, const struct edits *edits,
                               struct edits_source *source, struct fab_inventory *to)
{
    OWNED(free) uint32_t *node = edits_array(from->n_nodes, sizeof(*node));
    fab_inventory_init(to);
    to->n_subnets = from->n_subnets;
    memcpy(to->subnets, from->subnets, sizeof(to->subnets));
    for (uint32_t i = 0; i < from->n_nodes; i++) {
        struct fab_node copy = from->nodes[i];
        node[i] = FAB_NONE;
        if (edits->drop_node[i])
            continue;
        copy.guid = edits->guid[i] != 0 ? edits->guid[i] : copy.guid;
        if (edits->missing != FAB_NONE)
            copy.missing = !edits->found && edits->missing == i;
        copy.desc = hand_string(to, from, copy.desc);
        copy.host = hand_string(to, from, copy.host);
        copy.name = hand_string(to, from, copy.name);
        assert_int_equal(fab_inventory_add_node(to, &copy, &node[i]), 0);
    }
    edits_ports(from, edits, node, to);
    for (unsigned i = 0; i < edits->n_adds; i++) {
        uint32_t a = node[edits->add[i][0]];
        uint32_t b = edits->add[i][1] == FAB_NONE ? edits_host(to, source) : node[edits->add[i][1]];
        if (a == FAB_NONE || b == FAB_NONE)
            continue;
        uint32_t to_port = edits_end_port(to, b);
        uint32_t from_port = to_port == FAB_NONE ? FAB_NONE : edits_end_port(to, a);
        if (from_port != FAB_NONE)
            assert_int_equal(fab_inventory_link(to, from_port, to_port), 0);
    }
    hand_finish(to);
}

/* inv becomes another one: up to `most` random edits at once, each of a kind that is in `kinds` (bits). */
static inline void edits_random(struct fab_inventory *inv, struct edits_source *source, unsigned kinds,
                                unsigned most)
{
    SCOPED_BY(edits_end) struct edits edits;
    struct fab_inventory after;
    edits_begin(&edits, inv);
    for (unsigned n = 1 + edits_roll(source, most); n > 0; n--) {
        unsigned kind = edits_roll(source, EDITS_KINDS);
        while ((kinds & 1u << kind) == 0)
            kind = (kind + 1) % EDITS_KINDS;
        edits_one(source, inv, kind, &edits);
    }
    edits_apply(inv, &edits, source, &after);
    fab_inventory_destroy(inv);
    *inv = after;
}

#endif
