/*
 * join.h - make one inventory of the sweep and the host reports, with the facts of each device.
 *
 * Devices. join_items.c finds the devices of a report. An item that fits several ports gives no facts that
 * each port has for itself (state, speed, LID, MTU, addresses, ...).
 *
 * Ports of the sweep. An RDMA port matches the sweep's port by port GUID, else by node GUID and port number.
 * A report concerns its own host only. For a node of the sweep at most one report is valid:
 * - For a node with a host's name, the report of that host is valid. An equal name goes before a name that is
 *   equal up to its first dot.
 * - For a node that no pattern names, or that is called localhost, the report of the only host with a claim
 *   to it is valid, if the claim is not outdated. The node gets that host's name. If several hosts claim the
 *   node, it belongs to none of them. All of them keep devices of their own, as below.
 *
 * Other claims are not joined and give a remark. The part of the sweep does not change, except names of
 * devices. A device gets the name that its host reports if that name is unique, else the name from the sweep,
 * else the GUID.
 *
 * Other RDMA ports become ports of additional nodes. Such a node has the reported node GUID, else a GUID made
 * of host and name. Some adapters have one GUID for all functions. So ports of one node GUID in a report are
 * several nodes if their devices have different names, or different PCI functions without names. Then only a
 * node of the sweep keeps that GUID. A port with an unknown or used number gets the lowest free number. A
 * port that contradicts the sweep is left out with a remark. It contradicts the sweep if the node does not
 * have such a port, or if the node's port has another GUID. Functions of a swept card that no sweep shows
 * (Socket Direct, multi-host, virtual functions) are such nodes, too. If they are up, join_siblings.c places
 * them with a swept port of their card. New ports are in the subnet FAB_UNATTACHED, unless they are in an
 * Ethernet plane. The same holds for reported ports of the sweep without a cable.
 *
 * Ethernet planes. A device that is not InfiniBand and has an address in a plane's network is in that plane.
 * If it fits several planes, it is in the first plane by name, with a remark. It is cabled to the switch that
 * LLDP names. LLDP may name the switch for another interface of the same host with the same MAC: a bond has
 * the address, and its links have the neighbours. Otherwise the device is cabled to the plane's segment. The
 * segment is a switch made here, to which the switches of LLDP are cabled, too. An interface in no plane is
 * left out. A segment of more than 200 devices is a tree of switches, see join_switches.c. A GUID is
 * FAB_ETHERNET_GUID with the MAC, with a hash of host and interface, or with a hash of the switch's chassis
 * or name. If GUIDs are equal, the first keeps it, and the others get another hash. The name of a switch is
 * the first reported name in natural order.
 *
 * Claims are described in docs/design/join.md. Both facts are in conflict, the fact of the other host is
 * OUTRANKED, and both hosts get a remark. If a device loses the claim to a GUID or MAC, the GUID or MAC
 * remains its fact, because the id of the device is made of these facts.
 *
 * Facts. For each kind a table decides which source is chosen (join_rank.c; fab_join_order). The order of
 * arrival never matters. If a source has several texts, the first in natural order is chosen, or the greatest
 * bandwidth. A fact goes before every estimate. Other values are kept. Two different texts that are no
 * estimates are a conflict, except if one is the sweep's name of a device. If a kind has many values, all are
 * chosen. A provider, protocol or transport that is always reported together with "software" is SOFTWARE. The
 * sweep reports the GUIDs, name, number, type, state, speed and LID of an HCA's port. If a port has no cable
 * and is not up, the sweep only reports that it exists, and its host reports the rest.
 */
#ifndef FAB_TOPO_JOIN_JOIN_H
#define FAB_TOPO_JOIN_JOIN_H

#include "topo/base/cidr.h"
#include "topo/model/details.h"
#include "topo/model/inventory.h"
#include "topo/model/report.h"

/* A configured Ethernet plane. */
struct fab_ethernet_plane {
    const char *name; /* the plane's */
    const char *cidr; /* "10.91.0.0/16" or "fd00::/64" */
};
/*
 * Return the subnet prefix for a plane. It depends on the name only, so the order of lines does not matter.
 */
uint64_t fab_ethernet_prefix(const char *name);

struct fab_joined {
    struct fab_inventory inv; /* finished and named */
    struct fab_details details;
    uint32_t n_refused; /* items that claim a port of another host; each such host has a remark */
    struct fab_joined_host {
        uint32_t devices; /* ports of the inventory that its report contains */
        uint32_t unseen;  /* of them, those that the sweep does not see */
    } * hosts;            /* of each report, by host (fab_natural_cmp) */
    uint32_t n_hosts;
    uint64_t *contested; /* node GUIDs of the sweep that several hosts claim, ascending */
    uint32_t n_contested;
};

typedef void (*fab_remark_fn)(const char *line, void *cbdata);

/*
 * Return the host that had the device with this value in the last published inventory; NULL: none. The value
 * is a FAB_FACT_NODE_GUID, _PORT_GUID, _MAC (a number of 48 bits), or a FAB_FACT_SYSTEM_GUID with the node
 * GUID `node`. `node` is 0 for the other kinds. A system GUID and a node GUID form an id, also of devices
 * that are not known by their node GUID. The function is called only if several hosts claim the value.
 */
struct fab_prior_owners {
    const char *(*holder)(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node);
    void *cbdata;
    /* Return whether this unnamed node of the sweep was found at another place since this host claimed it. */
    bool (*outdated)(void *cbdata, const char *host, uint64_t guid); /* NULL: none was */
    /* Return whether claims to this node of the sweep come and go, so that it belongs to no host for now.
     * NULL: never. */
    bool (*unsettled)(void *cbdata, uint64_t guid);
};

void fab_joined_destroy(struct fab_joined *joined);

/*
 * Data that one join keeps for the next one. The facts of a port are taken over if its host's report and the
 * sweep have the same values for it. The size is that of the facts of the last join and twice their texts; it
 * is empty after a join without reports. One thread at a time may use it.
 */
struct fab_join_cache;
struct fab_join_cache *fab_join_cache_new(void);        /* empty; NULL without memory */
void fab_join_cache_free(struct fab_join_cache *cache); /* NULL is allowed */

/* The input of a join. */
struct fab_join_input {
    const struct fab_inventory *swept;       /* finished and named */
    const struct fab_report *const *reports; /* finished, each host once, in any order */
    const uint64_t *digests;                 /* with a cache: fab_report_digest() of each report */
    uint32_t n_reports;
    const struct fab_ethernet_plane *planes; /* those of one name are one plane of several networks */
    uint32_t n_planes;
    const struct fab_prior_owners *past; /* NULL: nothing was published */
    fab_remark_fn
        remark; /* NULL, or gets one line for each host and kind of problem: the host, ": ", the rest */
    void *cbdata;
};

/*
 * Join. A pure function, for any thread: the result does not depend on the order of items and reports. No
 * content of a report is an error. PMIXFAB_ERR_NOMEM; _RANGE: more subnets than FAB_MAX_SUBNETS, or more than
 * an inventory can hold; _SYNTAX: a plane has no valid network; _INVAL: an input is not finished. *out is
 * initialised here; on error it is empty.
 *
 * With a cache (NULL: none) the result is the same. But texts are at other places of the pool, which also has
 * unused texts. Two reports of one host with one digest count as equal. After an error the cache is empty or
 * unchanged.
 */
int fab_join(struct fab_join_cache *cache, const struct fab_join_input *input, struct fab_joined *out,
             struct fab_err *err);

/* Return the sources of a kind in order of rank, ended by FAB_SOURCES. */
const enum fab_source *fab_join_order(enum fab_fact kind);

#endif
