/*
 * join.h - one inventory from what the sweep saw and what the hosts report, with the facts of each device.
 *
 * An item of a report belongs to a port by port GUID, else by RDMA device name and port, else by PCI address,
 * else by network interface. A port that the sweep saw keeps its place in the fabric; what its host says of
 * it is added. RDMA ports that only their host sees, and network interfaces that stand in a configured
 * Ethernet plane, become ports of the inventory as well:
 *
 *   Ethernet planes: an interface (or RoCE port) with an address in a plane's network is cabled to the switch
 *   that LLDP names, or else to the plane's segment, a switch made up here, to which those switches are
 *   cabled too. A switch of LLDP's has for its GUID FAB_ETHERNET_GUID and its MAC, or a hash of its name.
 *   Anything else that has no cable stands in the subnet FAB_UNATTACHED.
 *
 * Which source is believed is decided per kind by one table (fab_join_order), never by which came first; what
 * the others say otherwise is kept as a conflict. A host's report is only about itself: a port that the sweep
 * gives to another host is not joined, whatever the report says, and that is a remark.
 */
#ifndef FAB_TOPO_JOIN_H
#define FAB_TOPO_JOIN_H

#include "topo/cidr.h"
#include "topo/cost.h"
#include "topo/inventory.h"
#include "topo/report.h"

/* GUIDs made up for what has a MAC and no GUID: no vendor's number begins like that. */
#define FAB_ETHERNET_GUID         (UINT64_C(0xffff) << 48)
#define FAB_GUID_IS_MADE_UP(guid) ((guid) >> 48 == 0xffff)
/* Prefixes of subnets that are no InfiniBand subnets. */
#define FAB_UNATTACHED UINT64_MAX /* ports without a cable that only their host knows */
bool fab_prefix_is_ethernet(uint64_t prefix);

/* A configured Ethernet plane. */
struct fab_ethernet_plane {
    const char *name; /* the plane's */
    const char *cidr; /* "10.91.0.0/16", "fd00::/64" */
};
/* The subnet prefix that stands for a plane: by its name, so that an order of lines means nothing. */
uint64_t fab_ethernet_prefix(const char *name);

/* What is known of one kind from some sources: one text. */
struct fab_detail {
    uint32_t text;    /* in the pool of struct fab_details */
    uint16_t sources; /* bit 1 << enum fab_source: who says so */
    uint8_t kind;     /* enum fab_fact */
    uint8_t flags;    /* FAB_DETAIL_* */
};
#define FAB_DETAIL_CHOSEN   1u /* believed (of a kind with many: all that nobody contradicts) */
#define FAB_DETAIL_CONFLICT 2u /* sources contradict each other about this kind */
#define FAB_DETAIL_ESTIMATE 4u

/* Seen by whom. */
#define FAB_SEEN_SUBNET 1u
#define FAB_SEEN_NODE   2u

/* Facts of every port of a joined inventory; empty for switches' ports. */
struct fab_details {
    uint32_t n_ports;
    uint32_t *first;             /* n_ports + 1: facts of port p are first[p] .. first[p+1]-1 */
    struct fab_detail *facts;    /* of a port: by kind, the chosen one first, then text */
    struct fab_locality *places; /* n_ports: where in its host; all zero: not known */
    uint8_t *seen;               /* n_ports: FAB_SEEN_* */
    char *pool;                  /* equal texts stand once */
    uint32_t pool_size;
};

struct fab_joined {
    struct fab_inventory inv; /* finished and named */
    struct fab_details details;
    uint32_t n_refused; /* items that claim a port of another host */
};

typedef void (*fab_remark_fn)(const char *line, void *cbdata);

/*
 * swept: finished and named. reports: finished, each host once, in any order. remark (may be NULL)
 * gets a line for each host whose claim is not joined. Pure: the same input gives the same output, whatever
 * the order of items was. *out is initialised here; on error it is empty.
 */
int fab_join(const struct fab_inventory *swept, const struct fab_report *const *reports, uint32_t n_reports,
             const struct fab_ethernet_plane *planes, uint32_t n_planes, fab_remark_fn remark, void *cbdata,
             struct fab_joined *out, struct fab_err *err);
void fab_joined_destroy(struct fab_joined *joined);

/* Sources of a kind, the most believed first, ended by FAB_SOURCES. */
const enum fab_source *fab_join_order(enum fab_fact kind);

/* Are these one host: equal, or equal up to the first dot? */
bool fab_same_host(const char *a, const char *b);

#endif
