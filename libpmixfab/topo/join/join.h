/*
 * join.h - one inventory from what the sweep saw and what the hosts report, with the facts of each device.
 *
 * Devices of a report. An item with a port GUID, or with an RDMA device name and a port, is of that RDMA
 * port. Another belongs to ports by RDMA device name, else by PCI address (only those of its port number and
 * interface, where it has them), else by network interface; the first key that leads to a port counts, and
 * one that leads to more than 8 leads to none. What fits several ports says nothing of what each has for
 * itself (state, speed, LID, MTU, addresses, ...). What is left and has an interface is an Ethernet device,
 * by interface, else by PCI address. Other items belong to nothing.
 *
 * Ports of the sweep. An RDMA port is the sweep's by port GUID, else by node GUID and port number. A report
 * is only about its own host: a node of the sweep has one report that may speak of it, that of the host that
 * the sweep names (the same name before one that is alike up to the first dot). Of a node that no pattern
 * names, or that is called localhost, it is that of the host whose it was before, else the first one in
 * natural order that claims it, and gives it its host; the others keep devices of their own, as below. Other
 * claims are not joined, and that is a remark. The sweep's part stays as it is, but for the
 * names of devices: theirs are what their host calls them where that tells them apart, else the sweep's, else
 * the GUID.
 *
 * Other RDMA ports become ports of nodes of their own: by the node GUID that is said, else one made up of
 * host and name. In a report, ports of one node GUID whose device has another name, or another PCI function
 * where one has no name, are several nodes (there are adapters with one GUID for all): then none goes by that
 * GUID but what is the sweep's. Numbers that are not known, or taken, are the lowest free ones. What
 * contradicts the sweep (a port that the node has not, another GUID for its port) is left out, with a remark.
 * New ports, and ports of the sweep without a cable of which a report speaks, stand in the subnet
 * FAB_UNATTACHED, unless they stand in an Ethernet plane.
 *
 * Ethernet planes. A device that is not InfiniBand, and has an address in a plane's network, stands in that
 * plane, in the first by name where it has several (a remark). It is cabled to the switch that LLDP names (or
 * that an interface of the same host with the same MAC hears: a bond has the address, its links the
 * neighbours), or else to the plane's segment, a switch made up here, to which those switches are cabled,
 * too. An interface in no plane is left
 * out. A segment of more than 200 is a tree of switches, see join_switches.c. GUIDs: FAB_ETHERNET_GUID with
 * the MAC, or with a hash of host and interface, of the switch's chassis or name; where two would be equal,
 * of the first one, the others have another hash. The name of a switch is the first in natural order that is
 * said.
 *
 * Claims. No host can take another's device away: two hosts that say one node GUID, port GUID or MAC of
 * devices of theirs both keep them. One goes by it: that of the host whose it was before (struct
 * fab_prior_owners), else of the first in natural order; the other has a GUID made up of its host and name.
 * Both facts are in conflict, the other's is YIELDED, and both hosts have a remark. What a device is not
 * known by is still its fact: its id is made of those.
 *
 * Facts. Which source is believed is decided per kind by one table (join_order.c; fab_join_order), never by
 * which came first; of one source's texts the first in natural order is (of bandwidths the greatest). A fact
 * that is not estimated goes before every estimate. What the others say otherwise is kept; two texts that are
 * no estimates are a conflict, but for the sweep's name of a device. Of a kind with many, all are believed.
 * A provider, protocol or transport that is said together with "software", and never without, is SOFTWARE.
 * The sweep says the GUIDs, name, number, type, state, speed and LID of an HCA's port; of a port without a
 * cable that is not up only what it is, for the rest its host is asked.
 */
#ifndef FAB_TOPO_JOIN_H
#define FAB_TOPO_JOIN_H

#include "topo/base/cidr.h"
#include "topo/cost/cost.h"
#include "topo/inventory/inventory.h"
#include "topo/report/report.h"

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
#define FAB_DETAIL_CHOSEN    1u /* believed (of a kind with many: all that nobody contradicts) */
#define FAB_DETAIL_CONFLICT  2u /* sources contradict each other about this kind */
#define FAB_DETAIL_ESTIMATE  4u
#define FAB_DETAIL_SOFTWARE  8u  /* a way of using the device that its hardware has no part in (TCP) */
#define FAB_DETAIL_OUTRANKED 16u /* a GUID or MAC that another host's device goes by */

/* Seen by whom. A port without a cable that is not up is its host's alone once that speaks of it: the sweep
 * has no word of it but that it is there. What is made up for Ethernet planes is nodes' word. */
#define FAB_SEEN_SUBNET  1u
#define FAB_SEEN_NODE    2u
#define FAB_SEEN_MISSING 4u /* beside SUBNET: its node was not seen of late, and keeps its place */

/* Facts of every port of a joined inventory; of ports that are no HCA's there are none. */
struct fab_details {
    uint32_t n_ports;
    uint32_t *first;          /* n_ports + 1: facts of port p are first[p] .. first[p+1]-1 */
    struct fab_detail *facts; /* of a port: by kind, the chosen one first, then text */
    struct fab_locality
        *places;   /* n_ports: where in its host, from PCI address, switch, NUMA node and package that
                    * are believed; the ports of one node are one card. All zero: not known */
    uint8_t *seen; /* n_ports: FAB_SEEN_* */
    char *pool;    /* equal texts stand once */
    uint32_t pool_size;
};

struct fab_joined {
    struct fab_inventory inv; /* finished and named */
    struct fab_details details;
    uint32_t n_refused; /* items that claim a port of another host; of each such host's a remark */
    struct fab_joined_host {
        uint32_t devices; /* ports of the inventory that its report tells of */
        uint32_t unseen;  /* of them, that the sweep does not see */
    } * hosts;            /* of each report, by host (fab_natural_cmp) */
    uint32_t n_hosts;
};

typedef void (*fab_remark_fn)(const char *line, void *cbdata);

/* What was published last: which host had the device with this FAB_FACT_NODE_GUID, _PORT_GUID or _MAC (a
 * number of 48 bits), or with this FAB_FACT_SYSTEM_GUID and, of this kind alone, that node GUID (0 of the
 * others): the two are an id, also of devices that do not go by their node GUID. NULL: none. Asked for where
 * several hosts claim it, and then only. */
struct fab_prior_owners {
    const char *(*holder)(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node);
    void *cbdata;
};

/*
 * swept: finished and named. reports: finished, each host once, in any order. Planes of one name are one
 * plane of several networks. past: NULL: nothing was published. remark (may be NULL) gets a line for each
 * host and sort of trouble, which begins with the report's host, a colon and a blank. Pure: the same input
 * gives the same output, whatever the order of items and reports was; any thread. Nothing that a report says
 * is an error. PMIXFAB_ERR_NOMEM; _RANGE: more than FAB_MAX_SUBNETS, or than an inventory can hold; _SYNTAX:
 * a plane's network is none; _INVAL: not finished. *out is initialised here; on error it is empty.
 */
int fab_join(const struct fab_inventory *swept, const struct fab_report *const *reports, uint32_t n_reports,
             const struct fab_ethernet_plane *planes, uint32_t n_planes, const struct fab_prior_owners *past,
             fab_remark_fn remark, void *cbdata, struct fab_joined *out, struct fab_err *err);
void fab_joined_destroy(struct fab_joined *joined);

/*
 * What one join leaves for the next, which then is about what differs: facts of ports whose host says what it
 * said, and of which the sweep says what it said, are taken over. As large as the facts of the last join and
 * twice their texts; empty after a join without reports. Used by one thread at a time.
 */
struct fab_join_cache;
struct fab_join_cache *fab_join_cache_new(void);        /* empty; NULL: out of memory */
void fab_join_cache_free(struct fab_join_cache *cache); /* NULL allowed */

/*
 * Like fab_join(), and with the same result, but that texts stand elsewhere in the pool, beside some that no
 * fact has. digests: fab_report_digest() of each report; two of one host with one digest are taken for equal.
 * After an error the cache is empty, or what it was. cache NULL: fab_join().
 */
int fab_join_revised(struct fab_join_cache *cache, const struct fab_inventory *swept,
                     const struct fab_report *const *reports, const uint64_t *digests, uint32_t n_reports,
                     const struct fab_ethernet_plane *planes, uint32_t n_planes,
                     const struct fab_prior_owners *past, fab_remark_fn remark, void *cbdata,
                     struct fab_joined *out, struct fab_err *err);

/* Sources of a kind, the most believed first, ended by FAB_SOURCES. */
const enum fab_source *fab_join_order(enum fab_fact kind);

/* Are these one host: equal, or one of them without a dot and the other equal up to its first dot? */
bool fab_same_host(const char *a, const char *b);

/*
 * Which of several hosts is meant by a name: the one that is called so, else, by name, the first of those
 * that are fab_same_host(). Begin with zeros, then offer each; once more does no harm.
 */
struct fab_host_choice {
    const char *host; /* as it was offered; NULL: none of them */
    bool exact;
    bool several; /* none is called so, and more than one could be meant */
};
void fab_choose_host(struct fab_host_choice *choice, const char *name, const char *host);

#endif
