/*
 * model.h - the observed parts of a fabric: nodes, ports, cables.
 *
 * Probes report them, and everything else is computed from them. They are facts, not conclusions.
 */
#ifndef FAB_TOPO_MODEL_MODEL_H
#define FAB_TOPO_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/base/error.h"

#define FAB_NONE UINT32_MAX /* no index */

enum fab_node_kind {
    FAB_SWITCH = 1,
    FAB_HCA = 2,
    FAB_ROUTER = 3,
    FAB_AGGREGATOR = 4 /* a SHARP aggregation node: answers like an HCA, is part of a switch */
};

/* Logical state of a port. */
enum fab_port_state {
    FAB_PORT_UNKNOWN = 0,
    FAB_PORT_DOWN = 1,
    FAB_PORT_INIT = 2, /* cabled, not yet configured by a subnet manager */
    FAB_PORT_ARMED = 3,
    FAB_PORT_ACTIVE = 4,
    FAB_PORT_DISABLED = 5, /* down because it was switched off (its physical state is Disabled) */
    FAB_PORT_LOOPED = 6    /* its cable leads to its own node, and is not a cable here */
};

/* Return whether the port has a link. */
static inline bool fab_state_is_up(unsigned state)
{
    return state >= FAB_PORT_INIT && state <= FAB_PORT_ACTIVE;
}
static inline bool fab_state_is_down(unsigned state)
{
    return state == FAB_PORT_DOWN || state == FAB_PORT_DISABLED;
}

/*
 * Speed of one lane. InfiniBand's are in order of rate; the numbers are stored, so later ones follow at the
 * end.
 */
enum fab_speed {
    FAB_SPEED_UNKNOWN = 0,
    FAB_SDR,
    FAB_DDR,
    FAB_QDR,
    FAB_FDR10,
    FAB_FDR,
    FAB_EDR,
    FAB_HDR,
    FAB_NDR,
    FAB_XDR,
    FAB_1GE,   /* Ethernet of 1 Gbit/s; faster Ethernet has a lane's rate that is above */
    FAB_SPEEDS /* number of speeds + 1 */
};

/*
 * Return the nominal rate in megabits per second: lanes (1, 2, 4, 8, 12) times the lane's rate; 0 if unknown.
 */
uint32_t fab_rate_mbps(unsigned width, enum fab_speed speed);

/*
 * Return lanes and lane speed of an Ethernet rate, as it is usually built: 1x below 40 Gbit/s, else 4x if
 * that fits. Return true for exactly this rate; else the next lower one, or the slowest, is used. 0 gives
 * width 0, unknown.
 */
bool fab_rate_parse(uint64_t mbps, unsigned *width, enum fab_speed *speed);

/* Return "SDR" ... "XDR", "1GE", "?"; and the reverse (FAB_SPEED_UNKNOWN for another text). */
const char *fab_speed_name(enum fab_speed speed);
enum fab_speed fab_speed_parse(const char *text, size_t len);

/* A node. Strings are offsets in the inventory's pool; 0 is the empty string. */
struct fab_node {
    uint64_t guid;
    uint64_t system_guid;
    uint32_t vendor_id;
    uint32_t device_id;
    uint32_t desc;       /* node description, the bytes that the node sends */
    uint32_t host;       /* HCA: host name (set by fab_names_apply) */
    uint32_t name;       /* HCA: device name on that host; else: the name to show */
    uint32_t first_port; /* the node's ports in the inventory: set by fab_inventory_finish */
    uint32_t n_ports;
    uint32_t line;     /* line of the capture, 0 for live ones; not compared */
    uint16_t lid;      /* switch: of port 0 */
    uint16_t chassis;  /* chassis number, 0: none known */
    uint8_t slot_type; /* 0 none, 1 line card, 2 spine, 3 switch router (ibnetdisc's numbers) */
    uint8_t slot;
    uint8_t chip;
    uint8_t kind; /* enum fab_node_kind */
    uint8_t lmc;
    uint8_t num_ports;   /* physical ports, 1..254 */
    uint8_t enhanced;    /* switch: enhanced port 0 */
    uint8_t unnamed;     /* HCA: no pattern matches it, its host name is its GUID */
    uint8_t missing;     /* no sweep sees it now, its place is kept (topo/model/retain.h): no probe sets it */
    uint8_t shares_name; /* another node has the same name (fab_inventory_mark_names); not compared */
};

/*
 * A port. An inventory holds every HCA port that was seen, and the switch ports that are cabled, up without a
 * peer, or disabled. A switch's other empty ports are not listed.
 */
struct fab_port {
    uint64_t guid; /* HCA and router: port GUID. Switch: 0 */
    uint32_t node;
    uint32_t peer; /* the port at the other end, FAB_NONE: none */
    /*
     * only in a joined inventory: a function of a card without a cable has here the swept port of that card
     * whose cable it uses, + 1; 0: none. No probe sets it
     */
    uint32_t sibling;
    uint32_t line; /* as in fab_node */
    uint16_t lid;  /* HCA and router; switch ports: 0 */
    uint8_t num;   /* 1..254 */
    uint8_t lmc;
    uint8_t state;  /* enum fab_port_state */
    uint8_t width;  /* lanes */
    uint8_t speed;  /* enum fab_speed */
    uint8_t subnet; /* index of its subnet */
    /*
     * the HCA is seen, but this cable is not, and its place is kept (topo/model/retain.h). No probe sets it
     */
    uint8_t missing;
};

/* A subnet: everything that one run of one probe reaches. */
#define FAB_VIEW_NAME 64
struct fab_subnet {
    uint64_t prefix; /* GID prefix; 0xfe80000000000000 unless configured by the subnet manager */
    /*
     * A file can have several topologies of the same hosts. Then this is the name of the topology, in the
     * form of a plane's name, and whether it is the default. Otherwise the name is empty. Neither is stored
     * or compared by fab_inventory_equal().
     */
    char view[FAB_VIEW_NAME];
    bool is_default;
};

#define FAB_DEFAULT_PREFIX 0xfe80000000000000ull
#define FAB_MAX_SUBNETS    32

/* Prefixes of subnets that are not InfiniBand. */
#define FAB_UNATTACHED UINT64_MAX /* ports without a cable that only their host reports */
bool fab_prefix_is_ethernet(uint64_t prefix);

/*
 * GUIDs made of names in a file (probes/import/wiring.h), with the number from 0 of one of several topologies
 * of the same hosts in the file. No vendor's switch has such a GUID.
 */
#define FAB_GUID_OF_NAME(view)    (UINT64_C(2) << 56 | (uint64_t)(view) << 48)
#define FAB_GUID_IS_OF_NAME(guid) ((guid) >> 56 == 2)
#define FAB_GUID_VIEW(guid)       ((unsigned)((guid) >> 48 & 0xff))

/* GUIDs made for things with a MAC and no GUID: no vendor's number begins like this. */
#define FAB_ETHERNET_GUID         (UINT64_C(0xffff) << 48)
#define FAB_GUID_IS_MADE_UP(guid) ((guid) >> 48 == 0xffff)

#endif
