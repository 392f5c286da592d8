/*
 * inventory.h - everything observed of a fabric at one time, in one canonical order.
 *
 * Add nodes and ports, link ports, then finish once. A finished inventory is sorted (nodes by GUID, ports by
 * node and number) and checked for consistency. Two sweeps of the same fabric give equal inventories with any
 * probe.
 */
#ifndef FAB_TOPO_MODEL_INVENTORY_H
#define FAB_TOPO_MODEL_INVENTORY_H

#include <stdbool.h>

#include "topo/model/model.h"

struct fab_inventory {
    struct fab_node *nodes;
    struct fab_port *ports;
    char *pool; /* strings with their terminating 0; pool[0] is the empty string */
    uint32_t n_nodes, n_ports, n_subnets;
    uint32_t cap_nodes, cap_ports, pool_size, pool_cap;
    struct fab_subnet subnets[FAB_MAX_SUBNETS];
    uint32_t n_dangling; /* ports that are up without a peer, counted by finish */
    bool finished;
};

void fab_inventory_init(struct fab_inventory *inv);
void fab_inventory_destroy(struct fab_inventory *inv); /* leaves it as after init */

static inline const char *fab_str(const struct fab_inventory *inv, uint32_t offset)
{
    return inv->pool == NULL ? "" : inv->pool + offset;
}

/*
 * Add a string of len bytes, cut at the first 0 byte. Return its offset, FAB_NONE without memory. The empty
 * string is 0.
 */
uint32_t fab_inventory_string(struct fab_inventory *inv, const char *text, size_t len);
/* Make room for strings of `need` bytes in total. Return false without memory. */
bool inventory_pool_room(struct fab_inventory *inv, uint64_t need);

/*
 * Append; *index (may be NULL) becomes the index of the new element. A port starts without a cable, whatever
 * its peer member. PMIXFAB_ERR_NOMEM, PMIXFAB_ERR_RANGE past 2^24, PMIXFAB_ERR_INVAL when finished.
 */
int fab_inventory_add_node(struct fab_inventory *inv, const struct fab_node *node, uint32_t *index);
int fab_inventory_add_port(struct fab_inventory *inv, const struct fab_port *port, uint32_t *index);

/* Cable two ports. PMIXFAB_ERR_CONFLICT if one of them has a cable, _INVAL if there is no such port. */
int fab_inventory_link(struct fab_inventory *inv, uint32_t a, uint32_t b);

/*
 * Sort, check, and count n_dangling (ports without a cable that are INIT, ARMED or ACTIVE). Nodes without a
 * subnet get one with the default prefix. The function may be called again. Errors contain the place (and
 * line, if known) and the reason:
 * - PMIXFAB_ERR_CONFLICT: two nodes have one GUID, two ports of a node have one number, or two HCA ports have
 *   one port GUID. Or a port is cabled to itself or to its own node, or peers do not refer to each other.
 * - PMIXFAB_ERR_RANGE: a port number is 0, 255 or beyond the node's ports, a node GUID is zero, or a number
 *   of ports is not 1 to 254. Or a kind, width, speed or state is invalid, or there are too many subnets.
 *   Width 0, speed UNKNOWN and state UNKNOWN are valid.
 * - PMIXFAB_ERR_CORRUPT: an index is invalid, a port has no subnet, or a sibling is not a port.
 * - PMIXFAB_ERR_NOMEM.
 */
int fab_inventory_finish(struct fab_inventory *inv, struct fab_err *err);

/*
 * Merge `from` (finished) into `into`, which is unfinished afterwards. Nodes with one GUID become one node
 * with the ports of both. Values of `into` stay, and `from` fills in unknown values. If only one inventory
 * has a port cabled, its data of the port are used. The other inventory is of a subnet to which the port does
 * not belong, and only shows that the port exists. Subnets are appended. Two
 * subnets are the same if they share a cable or a prefix. PMIXFAB_ERR_CONFLICT: a node has two kinds or two
 * numbers of ports, or a port has two GUIDs or two cables. After an error `into` can only be destroyed.
 */
int fab_inventory_merge(struct fab_inventory *into, const struct fab_inventory *from, struct fab_err *err);

/* Copy a finished inventory with all its data. *to is initialised here. */
int fab_inventory_copy(struct fab_inventory *to, const struct fab_inventory *from);

/*
 * Return whether this port shows that something is missing: it is up without a peer, or it is a switch port
 * that did not answer.
 */
static inline bool fab_port_dangles(const struct fab_inventory *inv, const struct fab_port *port)
{
    return port->peer == FAB_NONE &&
           (fab_state_is_up(port->state) ||
            (port->state == FAB_PORT_UNKNOWN && inv->nodes[port->node].kind == FAB_SWITCH));
}

/* Return the port at the other end of this port's cable, or of its sibling's cable; FAB_NONE: none. */
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

/* Return the name by which people search for a node: for an HCA its host's name. */
static inline const char *fab_node_known_as(const struct fab_inventory *inv, const struct fab_node *node)
{
    return fab_str(inv, node->kind == FAB_HCA ? node->host : node->name);
}

/* Return whether this port's cable, or the node at either end, is no longer seen and keeps its place. */
static inline bool fab_port_is_missing(const struct fab_inventory *inv, const struct fab_port *port)
{
    if (port->missing || inv->nodes[port->node].missing)
        return true;
    const struct fab_port *peer = port->peer == FAB_NONE ? port : &inv->ports[port->peer];
    return peer->missing || inv->nodes[peer->node].missing;
}

/* Find a node by GUID in a finished inventory (binary search); FAB_NONE. */
uint32_t fab_inventory_find(const struct fab_inventory *inv, uint64_t guid);
/* As above, for GUIDs in ascending order: the search continues at *from, 0 at first. */
uint32_t fab_inventory_find_next(const struct fab_inventory *inv, uint64_t guid, uint32_t *from);
/* Find port `num` of a node; FAB_NONE. */
uint32_t fab_inventory_port(const struct fab_inventory *inv, uint32_t node, unsigned num);

/* Set shares_name of each node. fab_inventory_finish() calls it; call it again after naming nodes. */
int fab_inventory_mark_names(struct fab_inventory *inv); /* PMIXFAB_ERR_NOMEM */
/* Return a hash that is equal for two nodes with one name; 0 without a name. */
uint64_t fab_name_hash(enum fab_node_kind kind, const char *host, const char *name);

/* Return whether both have the same values of a node, without its ports. */
bool fab_node_equal(const struct fab_inventory *ia, const struct fab_node *a, const struct fab_inventory *ib,
                    const struct fab_node *b);
/* Return whether both (finished) are equal, without line numbers. */
bool fab_inventory_equal(const struct fab_inventory *a, const struct fab_inventory *b);

#endif
