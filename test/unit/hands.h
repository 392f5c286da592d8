/* hands.h - for tests of what hands did to a fabric: which node, which port, another name. */
#ifndef TEST_UNIT_HANDS_H
#define TEST_UNIT_HANDS_H

#include "test/unit/handmade.h"
#include "topo/changes/changes.h"

#define SMALL "fattree2:2,2,2,1"

/* Of every kind; all their swaps are told as such. */
#define HANDS_FABRICS 8
static const char *const hands_fabrics[HANDS_FABRICS] = {
    "fattree2:6,3,5,1", "fattree2:4,3,4,2", "fattree3:4", "dragonfly:3,4,2",
    "torus:4,4:2",      "torus:3,3,3:1",    "mesh:4,4:2", "random:12,40,10:5"};

/* The device says its name as a node that was never renamed does, a switch has room for more cables. */
static inline void hands_prepare(struct fab_inventory *inv, uint8_t num_ports)
{
    char desc[80];
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        struct fab_node *node = &inv->nodes[i];
        snprintf(desc, sizeof(desc), "%s %s", fab_str(inv, node->host), fab_str(inv, node->name));
        if (node->kind == FAB_HCA)
            node->desc = fab_inventory_string(inv, desc, strlen(desc));
        else
            node->num_ports = num_ports;
    }
    hand_names(inv, NULL);
}

static inline void rename_to(struct fab_inventory *inv, const char *node, const char *desc)
{
    uint32_t at = fabric_find(inv, node);
    assert_true(at != FAB_NONE);
    inv->nodes[at].desc = fab_inventory_string(inv, desc, strlen(desc));
}

/* A random node of a kind, by the name that fabric_find() knows. */
static inline uint32_t pick(const struct fab_inventory *inv, unsigned kind, uint64_t *dice, char name[64])
{
    uint32_t node;
    do {
        node = (uint32_t)(fabric_random_next(dice) % inv->n_nodes);
    } while (inv->nodes[node].kind != kind);
    fabric_node_name(inv, node, name, 64);
    return node;
}

static inline unsigned free_port(const struct fab_inventory *inv, uint32_t node)
{
    unsigned num = 254;
    while (fab_inventory_port(inv, node, num) != FAB_NONE)
        num--;
    return num;
}

static inline bool has_switch_and_hca(const struct fab_inventory *inv)
{
    uint32_t n[5] = {0};
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        n[inv->nodes[i].kind]++;
    return n[FAB_SWITCH] > 0 && n[FAB_HCA] > 0;
}

/* A random hand: HCAs and switches are replaced, moved, taken away, unplugged or called otherwise. Finished
 * and named again. */
static inline void random_hand(struct fab_inventory *inv, uint64_t *dice)
{
    char name[64], other[64], desc[40];
    uint64_t r = fabric_random_next(dice);
    uint32_t node = pick(inv, r % 3 != 0 ? FAB_HCA : FAB_SWITCH, dice, name),
             to = pick(inv, FAB_SWITCH, dice, other);
    switch ((r >> 8) % 8) { /* some are refused: there is no such cable, or it would lead to itself */
    case 0:
        (void)fabric_replace(inv, name, 0x900000 + (r >> 20) % 50, (unsigned)(r >> 16) % 9);
        break;
    case 1:
        (void)fabric_move(inv, name, 1 + (unsigned)(r >> 32) % 4, other, free_port(inv, to));
        break;
    case 2:
    case 3:
    case 4:
        if (inv->n_nodes > 8)
            (void)fabric_lose(inv, name);
        break;
    case 5:
    case 6:
        (void)fabric_unlink(inv, name, 1 + (unsigned)(r >> 32) % 4);
        break;
    default:
        snprintf(desc, sizeof(desc), "node%04u HCA-%u", (unsigned)(r >> 16) % 30,
                 1 + (unsigned)(r >> 40) % 2);
        inv->nodes[node].desc = fab_inventory_string(inv, desc, strlen(desc));
        break;
    }
    hand_finish(inv);
    hand_names(inv, NULL);
}

/* A hand, or something about a node or port changes. */
static inline void random_edit(struct fab_inventory *inv, uint64_t *dice)
{
    const uint64_t r = fabric_random_next(dice);
    struct fab_node *node = &inv->nodes[(r >> 16) % inv->n_nodes];
    struct fab_port *port = inv->n_ports > 0 ? &inv->ports[(r >> 16) % inv->n_ports] : NULL;
    if (r % 2 == 0)
        random_hand(inv, dice);
    else if (r % 8 == 1 && port != NULL && port->peer != FAB_NONE)
        port->speed = inv->ports[port->peer].speed = FAB_EDR;
    else if (r % 8 == 3 && port != NULL)
        port->state = (uint8_t)(FAB_PORT_DOWN + (r >> 40) % 4);
    else if (r % 8 == 5)
        node->lid++;
    else
        node->chassis++;
    hand_finish(inv);
    hand_names(inv, NULL);
}

/* "kind|what|before|after", and with subjects "|this,that" behind it. */
static inline void line_of(const struct fab_change *c, bool subjects, char *line, size_t size)
{
    int n = snprintf(line, size, "%s|%s|%s|%s%s", fab_change_name(c->kind), c->what, c->before, c->after,
                     subjects ? "|" : "");
    for (const char *s = c->subjects; subjects && *s != '\0'; s = fab_subject_next(s))
        n += snprintf(line + n, size - (size_t)n, "%s%s", s == c->subjects ? "" : ",", s);
}

static inline void assert_lines(const struct fab_diff *diff, bool subjects, const char *const *lines,
                                uint32_t n)
{
    for (uint32_t i = 0; i < diff->n || i < n; i++) {
        char line[4000] = "(no more)";
        if (i < diff->n)
            line_of(&diff->changes[i], subjects, line, sizeof(line));
        assert_string_equal(line, i < n ? lines[i] : "(no more)");
    }
}

#endif
