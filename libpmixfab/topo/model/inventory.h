/*
 * inventory.h - everything that was observed of a fabric at one time, in one canonical order.
 *
 * Built by adding nodes and ports and linking ports, then finished once. A finished inventory is sorted
 * (nodes by GUID, ports by node and number), consistent (checked), and comparable: two sweeps of the same
 * fabric give equal inventories, whichever probe saw it.
 */
#ifndef FAB_TOPO_MODEL_INVENTORY_H
#define FAB_TOPO_MODEL_INVENTORY_H

#include <stdbool.h>

#include "topo/model/model.h"

struct fab_inventory {
    struct fab_node *nodes;
    struct fab_port *ports;
    char *pool; /* strings, each with its end; pool[0] is the empty string */
    uint32_t n_nodes, n_ports, n_subnets;
    uint32_t cap_nodes, cap_ports, pool_size, pool_cap;
    struct fab_subnet subnets[FAB_MAX_SUBNETS];
    uint32_t n_dangling; /* ports that are up and lead nowhere (finish counts them) */
    bool finished;
};

void fab_inventory_init(struct fab_inventory *inv);
void fab_inventory_destroy(struct fab_inventory *inv); /* leaves it as after init */

static inline const char *fab_str(const struct fab_inventory *inv, uint32_t offset)
{
    return inv->pool == NULL ? "" : inv->pool + offset;
}

/*
 * Add a string of len bytes (no byte 0 inside; cut at the first). Returns its offset, FAB_NONE without
 * memory. The empty string is 0.
 */
uint32_t fab_inventory_string(struct fab_inventory *inv, const char *text, size_t len);
/* Room for strings of `need` bytes in all. False: no memory. */
bool inventory_pool_room(struct fab_inventory *inv, uint64_t need);

/* Append; *index (may be NULL) is the new element's. A port starts uncabled, whatever its peer says.
 * PMIXFAB_ERR_NOMEM, PMIXFAB_ERR_RANGE past 2^24, PMIXFAB_ERR_INVAL when finished. */
int fab_inventory_add_node(struct fab_inventory *inv, const struct fab_node *node, uint32_t *index);
int fab_inventory_add_port(struct fab_inventory *inv, const struct fab_port *port, uint32_t *index);

/* Cable two ports. PMIXFAB_ERR_CONFLICT where one of them has a cable, _INVAL for a port that is none. */
int fab_inventory_link(struct fab_inventory *inv, uint32_t a, uint32_t b);

/*
 * Sort and check. Refused, with the place (line, where a line is known) and the reason: two nodes with one
 * GUID, two ports with one number on a node, two HCA ports with one port GUID, port 0 or 255 or beyond the
 * node's ports, a port cabled to itself or to its own node, peers that do not name each other, a sibling that
 * is no port, a zero node GUID, a number of ports other than 1 to 254, a port of no subnet, an unknown kind,
 * width, speed or state (width 0, speed and state UNKNOWN are fine: not known). PMIXFAB_ERR_CONFLICT for
 * contradictions, _RANGE for numbers that cannot be, _CORRUPT for broken indices, _NOMEM. Counts n_dangling:
 * uncabled ports that are INIT, ARMED or ACTIVE. Nodes without any subnet get one, with the default prefix.
 * Finishing again is allowed.
 */
int fab_inventory_finish(struct fab_inventory *inv, struct fab_err *err);

/*
 * Add what `from` (finished) saw to `into`, which is unfinished afterwards. Nodes with one GUID are joined,
 * their ports united: `into` holds, `from` fills in what was not known; of a port that only one of them saw
 * cabled, the cabled view holds (an HCA's other port is known to exist, and no more, in the subnet that it is
 * not on). Contradictions are PMIXFAB_ERR_CONFLICT: one node of two kinds or numbers of ports, one port with
 * two GUIDs or two cables. Subnets are appended, except those that both saw (a cable in common, the same
 * prefix). On error `into` can only be destroyed.
 */
int fab_inventory_merge(struct fab_inventory *into, const struct fab_inventory *from, struct fab_err *err);

/* Deep copy of a finished inventory. *to is initialised here. */
int fab_inventory_copy(struct fab_inventory *to, const struct fab_inventory *from);

/*
 * Does this port show that something is missing: up and leading nowhere, or of a switch and never heard of?
 */
static inline bool fab_port_dangles(const struct fab_inventory *inv, const struct fab_port *port)
{
    return port->peer == FAB_NONE &&
           (fab_state_is_up(port->state) ||
            (port->state == FAB_PORT_UNKNOWN && inv->nodes[port->node].kind == FAB_SWITCH));
}

/* What the cable of this port leads to, its own or that of its sibling; FAB_NONE: nothing. */
static inline uint32_t fab_port_far(const struct fab_inventory *inv, const struct fab_port *port)
{
    return port->peer == FAB_NONE && port->sibling != 0 ? inv->ports[port->sibling - 1].peer : port->peer;
}

static inline bool fab_same_rate(const struct fab_port *a, const struct fab_port *b)
{
    return a->width == b->width && a->speed == b->speed;
}

static inline bool fab_node_is_cabled(const struct fab_inventory *inv, const struct fab_node *node)
{
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
        if (inv->ports[p].peer != FAB_NONE)
            return true;
    return false;
}

/* The name under which people look for a node: an HCA's is its host's. */
static inline const char *fab_node_known_as(const struct fab_inventory *inv, const struct fab_node *node)
{
    return fab_str(inv, node->kind == FAB_HCA ? node->host : node->name);
}

/* Does no sweep see this port's cable any more, or its node, and its place is kept? Of either end. */
static inline bool fab_port_is_missing(const struct fab_inventory *inv, const struct fab_port *port)
{
    if (port->missing || inv->nodes[port->node].missing)
        return true;
    const struct fab_port *peer = port->peer == FAB_NONE ? port : &inv->ports[port->peer];
    return peer->missing || inv->nodes[peer->node].missing;
}

/* Node by GUID in a finished inventory (binary search); FAB_NONE. */
uint32_t fab_inventory_find(const struct fab_inventory *inv, uint64_t guid);
/* The same for GUIDs asked in rising order: the walk is at *from, 0 at first, and moves on. */
uint32_t fab_inventory_find_next(const struct fab_inventory *inv, uint64_t guid, uint32_t *from);
/* Port `num` of a node; FAB_NONE. */
uint32_t fab_inventory_port(const struct fab_inventory *inv, uint32_t node, unsigned num);

/* Set shares_name of each node; fab_inventory_finish() does, and who names nodes afterwards. */
int fab_inventory_mark_names(struct fab_inventory *inv); /* PMIXFAB_ERR_NOMEM */
/* Equal for two nodes that have one name; 0 for no name. */
uint64_t fab_name_hash(enum fab_node_kind kind, const char *host, const char *name);

/* Do both say the same of a node, its ports aside? */
bool fab_node_equal(const struct fab_inventory *ia, const struct fab_node *a, const struct fab_inventory *ib,
                    const struct fab_node *b);
/* True where both (finished) say the same, lines aside. */
bool fab_inventory_equal(const struct fab_inventory *a, const struct fab_inventory *b);

#endif
