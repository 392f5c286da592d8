/*
 * join_state.h - private to the files of join.
 *
 * Steps: items of a report -> its devices (join_devices.c) -> ports of the sweep, or additional nodes
 * (join_claims.c) -> Ethernet planes (join_ethernet.c) -> the inventory (join_build.c) -> names
 * (join_names.c) -> facts and places (join_facts.c).
 */
#ifndef FAB_TOPO_JOIN_JOIN_STATE_H
#define FAB_TOPO_JOIN_JOIN_STATE_H

#include "topo/base/radix.h"
#include "topo/base/string_table.h"
#include "topo/join/join.h"

/* An item that describes a device. */
struct join_link {
    uint32_t item;
    uint32_t shared; /* 1: it fits several ports, so its values for a single port are ignored */
};

/* The items of one device, RDMA port or network interface: links[first .. first+n-1]. */
struct join_group {
    uint32_t report;
    uint32_t first, n;
    bool rdma;
};

struct join_groups {
    struct join_group *groups; /* of one report: neighbours, ports before interfaces */
    struct join_link *links;
    uint32_t n, cap, n_links, cap_links;
};

/* A key that fits more ports than this leads to none: no device has so many. */
#define JOIN_MAX_SHARED 8u

/* Append the devices of a finished report. The memory of `scratch` (zero at first) is reused. */
struct join_scratch;
int join_group_report(const struct fab_report *report, uint32_t number, struct join_groups *out,
                      struct join_scratch **scratch);
void join_scratch_free(struct join_scratch *scratch);
void join_groups_free(struct join_groups *groups);

/* A fact with its source. */
struct join_fact {
    const char *text; /* NULL: none */
    uint8_t source, kind, estimate, software;
};

/* Return whether each port of a device has its own fact of this kind. */
bool join_per_port(enum fab_fact kind);
/*
 * Return whether a ranks before b, a fact of the same kind: facts before estimates, then by source, then by
 * text.
 */
bool join_better(const struct join_fact *a, const struct join_fact *b);

/* The result of the join for a device. */
enum join_fate {
    JOIN_OPEN = 0,
    JOIN_SWEPT,   /* it is a port of the sweep */
    JOIN_NEW,     /* an RDMA port that is not in the sweep */
    JOIN_PLAIN,   /* an interface in an Ethernet plane */
    JOIN_REFUSED, /* it belongs to another host */
    JOIN_ODD,     /* it contradicts the fabric, or another device of its report */
    JOIN_UNUSED   /* an interface in no plane */
};

/* Values that a device may go by. */
#define JOIN_NODE_GUID 1u
#define JOIN_PORT_GUID 2u
#define JOIN_MAC       4u

/* A device of a report with its reported values (texts are in its report's pool; NULL: unknown). */
struct join_dev {
    uint64_t port_guid, node_guid, system_guid, mac; /* 0: unknown, or not what it goes by */
    uint64_t said_node;                              /* the node GUID that it does not go by; 0: none */
    const char *name, *interface, *pci;
    const char *node_name; /* of the RDMA device that its port belongs to; NULL: unknown */
    const char *switch_id, *switch_name, *switch_port;
    uint64_t mbps;
    uint32_t group;
    uint32_t report;
    uint32_t before;                 /* the same device in the cache; FAB_NONE */
    uint32_t swept_port, swept_node; /* in the sweep; FAB_NONE */
    uint32_t node;                   /* JOIN_NEW, JOIN_PLAIN: index in the new nodes; FAB_NONE: a swept one */
    uint32_t plane;                  /* index in the planes; FAB_NONE */
    uint32_t port;                   /* in the inventory under construction */
    uint32_t sibling;                /* JOIN_NEW: the swept port of the same card whose cable it uses */
    uint16_t lid;
    uint8_t num;   /* 0: unknown */
    uint8_t state; /* enum fab_port_state */
    uint8_t fate;
    bool infiniband; /* its link layer, if known */
    bool rdma;
    bool silent;      /* JOIN_SWEPT: the sweep only reports that it exists */
    bool parted;      /* it claims a node of the sweep that it is not */
    bool apart;       /* one of several nodes of its report that share a node GUID */
    uint8_t disputed; /* JOIN_...: values that another node reports, too */
    uint8_t yielded;  /* of those, the ones that another host's device goes by */
};

/* A node known from reports only. */
struct join_node {
    uint64_t guid, system_guid;
    uint32_t report;
    uint32_t index;   /* in the inventory under construction */
    uint64_t used[4]; /* numbers of its ports in use */
    uint8_t most;     /* the highest one */
    bool plain;       /* a network interface */
    uint32_t first;   /* the device that it is made for */
};

struct join_plane {
    const char *name;
    uint32_t subnet; /* in the inventory; FAB_NONE: it is empty */
    bool used;
};

struct join_network {
    struct fab_cidr cidr;
    const char *name;
    uint32_t plane;
};

/* A switch of an Ethernet plane. */
struct join_switch {
    uint64_t guid;
    uint64_t used[4]; /* numbers of its ports in use */
    const char *name; /* LLDP's; NULL: made of the plane's name, level and number */
    uint32_t plane, level, number;
    uint32_t index;   /* its node in the inventory under construction */
    uint32_t above;   /* the segment's switch above it; FAB_NONE: none */
    uint8_t up, down; /* port numbers of the cable to that switch: its own, and the other end's */
};

/* A port of a switch that is used by a device. */
struct join_cable {
    uint32_t dev, sw;
    uint8_t num;
};

/* Problems with a host's report; each kind is reported once. */
struct join_trouble {
    uint32_t refused, odd;         /* items */
    uint32_t two_planes, same_mac; /* devices */
    const char *other;             /* the first host whose devices were claimed */
    struct join_dispute {
        uint32_t n; /* GUIDs and MACs of devices */
        const char *of, *host;
        enum fab_fact kind;
    } kept, yielded, open; /* values shared with devices of other hosts: kept, given up, or without owner */
    const char *two_planes_of, *first_plane, *second_plane;
    const char *mac_of, *mac_host, *mac_plane;
};

/* Reported texts of a device, independent of its place in a report: facts of the report, FAB_NONE. */
enum { JOIN_NAME, JOIN_INTERFACE, JOIN_PCI, JOIN_SWITCH_ID, JOIN_SWITCH_NAME, JOIN_SWITCH_PORT, JOIN_WORDS };
struct join_words {
    uint64_t port_guid, node_guid, system_guid, mac, mbps;
    uint32_t text[JOIN_WORDS];
    uint16_t lid;
    uint8_t num, state;
    bool infiniband;
};

struct join {
    struct join_block *kept, *temporary; /* memory of join_alloc() and join_temp() */
    bool no_memory;                      /* one of the two has failed */
    const struct fab_inventory *swept;
    const struct fab_report *const *reports; /* by host */
    uint32_t n_reports;
    const struct fab_prior_owners *past;
    struct fab_join_cache *cache; /* NULL: none */
    const uint64_t *digests;      /* of the reports, in the caller's order, then by host */
    uint32_t *before;             /* of each report: its number in the cache; FAB_NONE */
    struct join_words *words;     /* of each device */
    uint32_t *from;               /* of each port: the cache's port with the same facts; FAB_NONE */
    struct join_source *sources;  /* of each port, for the next join */
    struct fab_err *err;
    struct join_groups groups;
    struct join_dev *devs; /* by report, as groups */
    uint32_t n_devs;
    uint32_t *first_dev; /* n_reports + 1: the devices of report r are first_dev[r] .. first_dev[r+1]-1 */
    struct join_node *nodes;
    uint32_t n_nodes;
    const char **host;    /* of each report: the final name of its host */
    uint32_t *host_group; /* of each report: the first report of the same host */
    bool *alone;          /* of each report: it is the only one of its host */
    uint32_t *owner;      /* of each swept node: the report that is valid for it; FAB_NONE */
    struct join_plane *planes;
    struct join_network *networks;
    uint32_t n_planes, n_networks;
    struct join_switch *switches;
    uint32_t n_switches, cap_switches;
    struct join_cable *cables;
    uint32_t n_cables;
    uint32_t n_contested;         /* swept nodes that several hosts claim */
    struct join_trouble *trouble; /* of each report */
    uint32_t n_refused;
    uint32_t unattached; /* a subnet; FAB_NONE: not needed */
    struct fab_joined *out;
};

/* The passes, in this order. Each returns PMIXFAB_ERR_NOMEM or _RANGE on error. */
int join_read(struct join *j); /* groups -> devs */
int join_hosts(struct join *j);
int join_match(struct join *j);
int join_planes_read(struct join *j, const struct fab_ethernet_plane *planes, uint32_t n);
int join_ethernet(struct join *j);
int join_nodes(struct join *j);
int join_switches(struct join *j);
int join_number_guids(struct join *j);
int join_build(struct join *j);
int join_names(struct join *j);
int join_details(struct join *j);

/* All values that the facts of a port depend on, except its device's report. */
struct join_source {
    uint64_t node_guid, system_guid, port_guid;
    uint32_t mbps;
    uint16_t lid;
    uint8_t num, state;
    uint8_t disputed, yielded; /* as in struct join_dev */
    bool swept, silent;        /* swept: an HCA's port that the sweep knows */
    uint32_t dev;              /* number of the device; FAB_NONE */
    uint32_t name;             /* the sweep's, in the pool; 0: none */
};

/* A report of the last join. */
struct join_cached_report {
    const char *host; /* in the cache's hosts */
    uint64_t digest;
    uint32_t first, n; /* its devices */
    uint32_t n_joined; /* of them, those that are a port */
    bool alone;        /* no other report was of its host */
};

/* The last join. Its texts stay at their places; some may be unused. */
struct fab_join_cache {
    struct join_cached_report *reports; /* by host */
    char *hosts;
    uint32_t n_reports;
    struct join_groups groups; /* of all its devices */
    struct join_words *words;
    struct join_source *sources; /* of each port, by node GUID and number */
    uint32_t *first;             /* as in struct fab_details */
    struct fab_detail *facts;
    struct fab_locality *places;
    uint32_t n_ports;
    struct fab_strings texts;
    uint32_t tidy;  /* size of the pool when all of it was in use */
    uint32_t taken; /* ports that this join took over from the one before */
};
void join_cache_clear(struct fab_join_cache *cache); /* make it empty as when new */
/* Find `before`; the only error is missing memory. */
int join_cache_pair(struct join *j);
/*
 * After a join, make the cache that of this join, or empty without memory. Takes over the memory that it
 * keeps.
 */
void join_cache_keep(struct join *j);

/* The facts of one port, collected, then chosen. */
struct join_said {
    struct join_fact fact; /* the best one with this text */
    uint16_t sources;
    uint8_t flags; /* FAB_DETAIL_* */
    bool software; /* all sources of it report it as software */
    bool disputes; /* a fact, not an estimate, of a source that means the same thing as the others */
};
struct join_heap {
    struct join_fact *facts, *sorted;
    struct join_said *said;
    uint32_t n_facts, cap_facts, n_said, cap_said, cap_sorted;
};
int join_heap_add(struct join_heap *heap, const struct join_fact *fact);
/* Move the collected facts to `said`, in the order of struct fab_details. */
int join_choose(struct join_heap *heap);
void join_heap_free(struct join_heap *heap);

/*
 * Return zeroed memory for n elements until the end of the join, or of the pass. NULL without memory;
 * no_memory is set.
 */
struct join_block {
    struct join_block *next;
    max_align_t memory[];
};
void *join_alloc(struct join *j, size_t n, size_t size);
void *join_temp(struct join *j, size_t n, size_t size);
void join_free_blocks(struct join_block **list);
/* Return 48 bits of a hash of texts (any may be NULL) and a number, as a generated GUID. */
uint64_t join_made_up(const char *kind, const char *a, const char *b, uint64_t number);
/* Return whether this swept node has no name. */
bool join_unnamed(const struct fab_inventory *inv, const struct fab_node *node);
/*
 * Leave a device out that contradicts the fabric or another device of its report; it counts for its report.
 */
void join_inconsistent(struct join *j, struct join_dev *dev);
int join_cmp_text(const char *a, const char *b); /* NULL, for unknown, is last */

/*
 * Decide about claims of several devices to one value. The n sorted keys begin with `first`. Devices of one
 * report may share the value. If they may not, all devices but the first contradict the report. If two
 * reports are of one host, one is chosen, and the devices of the other are rejected (for a MAC, they are in
 * no plane). If several hosts claim the value, all keep their devices, and one device gets the value. For a
 * port GUID this is the port of the sweep. Otherwise it is the device of the former owner in the last
 * published inventory, else the first device. chosen: zeros for each report, restored afterwards.
 */
void join_settle(struct join *j, enum fab_fact kind, const struct fab_key *keys, uint32_t n, bool shared,
                 uint32_t *chosen);

uint64_t join_mac_value(const char *text); /* of a MAC; 0: another text */
/* Take the number, or the lowest free one up to `most` if it is used or 0; 0: none is free. */
unsigned join_take_number(uint64_t used[4], unsigned wanted, unsigned most);

#endif
