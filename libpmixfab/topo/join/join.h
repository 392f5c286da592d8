/*
 * join.h - one inventory from what the sweep saw and what the hosts report, with the facts of each device.
 *
 * Devices of a report: join_items.c. What fits several ports says nothing of what each has for itself (state,
 * speed, LID, MTU, addresses, ...).
 *
 * Ports of the sweep. An RDMA port is the sweep's by port GUID, else by node GUID and port number. A report
 * is only about its own host: a node of the sweep has one report that may speak of it, that of the host that
 * the sweep names (the same name before one that is alike up to the first dot). Of a node that no pattern
 * names, or that is called localhost, it is that of the only host that claims it and is not outdated about
 * it, and gives it its host. Where several hosts do so it is nobody's, and all of them keep devices of their
 * own, as below. Other claims are not joined, and that is a remark. The sweep's part stays as it is, but for
 * the names of devices: theirs are what their host calls them where that tells them apart, else the sweep's,
 * else the GUID.
 *
 * Other RDMA ports become ports of nodes of their own: by the node GUID that is said, else one made up of
 * host and name. In a report, ports of one node GUID whose device has another name, or another PCI function
 * where one has no name, are several nodes (there are adapters with one GUID for all): then none goes by that
 * GUID but what is the sweep's. Numbers that are not known, or taken, are the lowest free ones. What
 * contradicts the sweep (a port that the node has not, another GUID for its port) is left out, with a remark.
 * Functions of a swept card that no sweep shows (Socket Direct, multi-host, virtual functions) are such
 * nodes, too. If they are up, they stand where a swept port of their card does: join_siblings.c. New ports,
 * and ports of the sweep without a cable of which a report speaks, stand in the subnet FAB_UNATTACHED, unless
 * they stand in an Ethernet plane.
 *
 * Ethernet planes. A device that is not InfiniBand, and has an address in a plane's network, stands in that
 * plane, in the first by name where it has several (a remark). It is cabled to the switch that LLDP names (or
 * that an interface of the same host with the same MAC hears: a bond has the address, its links the
 * neighbours), or else to the plane's segment, a switch made up here, to which those switches are cabled,
 * too. An interface in no plane is left out. A segment of more than 200 is a tree of switches, see
 * join_switches.c. GUIDs: FAB_ETHERNET_GUID with
 * the MAC, or with a hash of host and interface, of the switch's chassis or name; where two would be equal,
 * of the first one, the others have another hash. The name of a switch is the first in natural order that is
 * said.
 *
 * Claims: docs/design/join.md. Both facts are in conflict, the other's is OUTRANKED, and both hosts have a
 * remark. What a device is not known by is still its fact: its id is made of those.
 *
 * Facts. Which source is believed is decided per kind by one table (join_rank.c; fab_join_order), never by
 * which came first; of one source's texts the first in natural order is (of bandwidths the greatest). A fact
 * that is not estimated goes before every estimate. What the others say otherwise is kept; two texts that are
 * no estimates are a conflict, but for the sweep's name of a device. Of a kind with many, all are believed.
 * A provider, protocol or transport that is said together with "software", and never without, is SOFTWARE.
 * The sweep says the GUIDs, name, number, type, state, speed and LID of an HCA's port; of a port without a
 * cable that is not up only what it is, for the rest its host is asked.
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
    const char *cidr; /* "10.91.0.0/16", "fd00::/64" */
};
/* The subnet prefix that stands for a plane: by its name, so that an order of lines means nothing. */
uint64_t fab_ethernet_prefix(const char *name);

struct fab_joined {
    struct fab_inventory inv; /* finished and named */
    struct fab_details details;
    uint32_t n_refused; /* items that claim a port of another host; of each such host's a remark */
    struct fab_joined_host {
        uint32_t devices; /* ports of the inventory that its report tells of */
        uint32_t unseen;  /* of them, that the sweep does not see */
    } * hosts;            /* of each report, by host (fab_natural_cmp) */
    uint32_t n_hosts;
    uint64_t *contested; /* node GUIDs of the sweep's, ascending, that several hosts claim */
    uint32_t n_contested;
};

typedef void (*fab_remark_fn)(const char *line, void *cbdata);

/* What was published last: which host had the device with this FAB_FACT_NODE_GUID, _PORT_GUID or _MAC (a
 * number of 48 bits), or with this FAB_FACT_SYSTEM_GUID and, of this kind alone, that node GUID (0 of the
 * others): the two are an id, also of devices that do not go by their node GUID. NULL: none. Asked for where
 * several hosts claim it, and then only. */
struct fab_prior_owners {
    const char *(*holder)(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node);
    void *cbdata;
    /* Was this node of the sweep, which nobody named, found elsewhere since this host said that it has it? */
    bool (*outdated)(void *cbdata, const char *host, uint64_t guid); /* NULL: none was */
    /* Did claims to this node of the sweep come and go, so that it is nobody's for now? NULL: none did. */
    bool (*unsettled)(void *cbdata, uint64_t guid);
};

void fab_joined_destroy(struct fab_joined *joined);

/*
 * What one join leaves for the next, which then is about what differs: facts of ports whose host says what it
 * said, and of which the sweep says what it said, are taken over. As large as the facts of the last join and
 * twice their texts; empty after a join without reports. Used by one thread at a time.
 */
struct fab_join_cache;
struct fab_join_cache *fab_join_cache_new(void);        /* empty; NULL: out of memory */
void fab_join_cache_free(struct fab_join_cache *cache); /* NULL allowed */

/* What is joined. */
struct fab_join_input {
    const struct fab_inventory *swept;       /* finished and named */
    const struct fab_report *const *reports; /* finished, each host once, in any order */
    const uint64_t *digests;                 /* with a cache: fab_report_digest() of each report */
    uint32_t n_reports;
    const struct fab_ethernet_plane *planes; /* those of one name are one plane of several networks */
    uint32_t n_planes;
    const struct fab_prior_owners *past; /* NULL: nothing was published */
    fab_remark_fn
        remark; /* NULL, or gets a line for each host and sort of trouble: the host, ": ", the rest */
    void *cbdata;
};

/*
 * Pure: the same input gives the same output, whatever the order of items and reports was; any thread.
 * Nothing that a report says is an error. PMIXFAB_ERR_NOMEM; _RANGE: more than FAB_MAX_SUBNETS, or than an
 * inventory can hold; _SYNTAX: a plane's network is none; _INVAL: not finished. *out is initialised here; on
 * error it is empty.
 *
 * With a cache (NULL: none) the result is the same, but that texts stand elsewhere in the pool, beside some
 * that no fact has. Two reports of one host with one digest are taken for equal. After an error the cache is
 * empty, or what it was.
 */
int fab_join(struct fab_join_cache *cache, const struct fab_join_input *input, struct fab_joined *out,
             struct fab_err *err);

/* Sources of a kind, the most believed first, ended by FAB_SOURCES. */
const enum fab_source *fab_join_order(enum fab_fact kind);

#endif
