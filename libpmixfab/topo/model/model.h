/*
 * model.h - the things a fabric is made of, as observed: nodes, ports, cables.
 *
 * This is what probes report and what everything else is computed from. It holds facts, no conclusions.
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
    FAB_PORT_DISABLED = 5, /* down because somebody switched it off (its physical state is Disabled) */
    FAB_PORT_LOOPED = 6    /* its cable leads to its own node, and is no cable here */
};

/* Has the port a link? */
static inline bool fab_state_is_up(unsigned state)
{
    return state >= FAB_PORT_INIT && state <= FAB_PORT_ACTIVE;
}
static inline bool fab_state_is_down(unsigned state)
{
    return state == FAB_PORT_DOWN || state == FAB_PORT_DISABLED;
}

/* Speed of one lane. InfiniBand's in the order of their rates; the numbers stand in stores, so what came
 * later is behind them. */
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
    FAB_1GE,   /* Ethernet of 1 Gbit/s; its faster ones have a lane's rate that is above */
    FAB_SPEEDS /* one more than the last */
};

/* Nominal rate in megabits per second: lanes (1, 2, 4, 8, 12) times the lane's rate; 0 where unknown. */
uint32_t fab_rate_mbps(unsigned width, enum fab_speed speed);

/* Lanes and lane's speed of an Ethernet rate, as it is mostly built: 1x below 40 Gbit/s, else 4x where that
 * fits. True: exactly this rate. Else the next one below, or the slowest of all; 0 is width 0, not known. */
bool fab_rate_parse(uint64_t mbps, unsigned *width, enum fab_speed *speed);

/* "SDR" ... "XDR", "1GE", "?" ; and back (FAB_SPEED_UNKNOWN where the text is none of them). */
const char *fab_speed_name(enum fab_speed speed);
enum fab_speed fab_speed_parse(const char *text, size_t len);

/* A switch, an HCA, a router. Strings are offsets into the inventory's pool; 0 is the empty string. */
struct fab_node {
    uint64_t guid;
    uint64_t system_guid;
    uint32_t vendor_id;
    uint32_t device_id;
    uint32_t desc;       /* node description, bytes as the node says it */
    uint32_t host;       /* HCA: host name (set by fab_names_apply) */
    uint32_t name;       /* HCA: device name on that host; else: the name to show */
    uint32_t first_port; /* the node's ports in the inventory: set by fab_inventory_finish */
    uint32_t n_ports;
    uint32_t line;     /* line of the capture it stands in, 0 for live ones; not compared */
    uint16_t lid;      /* switch: of port 0 */
    uint16_t chassis;  /* chassis number, 0: none known */
    uint8_t slot_type; /* 0 none, 1 line card, 2 spine, 3 switch router (ibnetdisc's numbers) */
    uint8_t slot;
    uint8_t chip;
    uint8_t kind; /* enum fab_node_kind */
    uint8_t lmc;
    uint8_t num_ports; /* physical ports, 1..254 */
    uint8_t enhanced;  /* switch: enhanced port 0 */
    uint8_t unnamed;   /* HCA: no pattern names it, its host name is its GUID */
    uint8_t
        missing; /* no sweep sees it any more, its place is kept (topo/model/retain.h): no probe sets it */
    uint8_t shares_name; /* another node has its name, too (fab_inventory_mark_names); not compared */
};

/*
 * A port. An inventory holds every HCA port that was seen, and those switch ports that are cabled (or up and
 * lead nowhere), or disabled. A switch's other empty ports are not listed.
 */
struct fab_port {
    uint64_t guid; /* HCA and router: port GUID. Switch: 0 */
    uint32_t node;
    uint32_t peer;    /* the port at the other end, FAB_NONE: none */
    uint32_t sibling; /* a joined one without a cable, of a function of a card: one more than the swept port
                         of that card whose cable it uses; 0: none. No probe sets it */
    uint32_t line;    /* as in fab_node */
    uint16_t lid;     /* HCA and router; switch ports: 0 */
    uint8_t num;      /* 1..254 */
    uint8_t lmc;
    uint8_t state;   /* enum fab_port_state */
    uint8_t width;   /* lanes */
    uint8_t speed;   /* enum fab_speed */
    uint8_t subnet;  /* index of its subnet */
    uint8_t missing; /* HCA that is seen: the cable is not, its place is kept (topo/model/retain.h): no probe
                        sets it */
};

/* A subnet: what one run of one probe reaches. */
#define FAB_VIEW_NAME 64
struct fab_subnet {
    uint64_t prefix; /* GID prefix; 0xfe80000000000000 unless configured by the subnet manager */
    /* Of a file with several topologies of the same hosts: what it calls this one, as planes are called, else
     * empty; and whether it says that this one is the default. In no store; fab_inventory_equal() does not
     * compare it. */
    char view[FAB_VIEW_NAME];
    bool is_default;
};

#define FAB_DEFAULT_PREFIX 0xfe80000000000000ull
#define FAB_MAX_SUBNETS    32

/* Prefixes of subnets that are no InfiniBand subnets. */
#define FAB_UNATTACHED UINT64_MAX /* ports without a cable that only their host knows */
bool fab_prefix_is_ethernet(uint64_t prefix);

/* GUIDs made of names that somebody wrote down (probes/import/wiring.h), and which of several topologies of
 * the same hosts in one file it is, from 0. No switch has such a GUID of its vendor. */
#define FAB_GUID_OF_NAME(view)    (UINT64_C(2) << 56 | (uint64_t)(view) << 48)
#define FAB_GUID_IS_OF_NAME(guid) ((guid) >> 56 == 2)
#define FAB_GUID_VIEW(guid)       ((unsigned)((guid) >> 48 & 0xff))

/* GUIDs made up for what has a MAC and no GUID: no vendor's number begins like that. */
#define FAB_ETHERNET_GUID         (UINT64_C(0xffff) << 48)
#define FAB_GUID_IS_MADE_UP(guid) ((guid) >> 48 == 0xffff)

#endif
