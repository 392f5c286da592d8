/*
 * graph.h - an inventory divided into planes, each with its switches, cables and devices in index order.
 *
 * A plane is one connected part of the fabric, in which devices and switches reach each other. Only switches
 * connect ports. HCAs, routers and aggregation nodes forward nothing, so each of their ports is an end of its
 * own. A port without a cable is in no plane, unless it has a sibling (fab_port.sibling). If the whole
 * inventory has no cable, the first HCA port is a plane. Without an HCA port, each switch is a plane. Planes
 * are ordered by number of devices (most first), then switches, then lowest GUID.
 *
 * HCA ports without a cable in the subnet FAB_UNATTACHED (topo/model/model.h) have no known connection. They
 * form one plane, the last, without connections.
 */
#ifndef FAB_TOPO_PLANE_GRAPH_H
#define FAB_TOPO_PLANE_GRAPH_H

#include "topo/model/inventory.h"

/* Computation of a link's cost. */
enum fab_cost_model {
    FAB_COST_RATE = 0, /* 10 at the plane's fastest rate, ceil(10 * fastest / rate) when slower */
    FAB_COST_HOPS = 1  /* 1 */
};

struct fab_device {
    uint32_t port;   /* in the inventory */
    uint32_t host;   /* index into hosts */
    uint32_t sw;     /* index in the switches of the plane; FAB_NONE: cabled to a device, or without cable */
    uint16_t access; /* cost of its own cable; 0 without one */
    /*
     * the site selected this device for jobs. If it is false for all devices of a host, jobs use all of
     * them
     */
    bool compute;
};

struct fab_host {
    const char *name;  /* in the inventory's pool */
    uint32_t first, n; /* its devices, neighbours in index order */
};

/*
 * A switch. Its neighbours are adj[adj_first .. adj_first+n_adj-1], each other switch once.
 *
 * A missing switch (fab_node.missing) stays in the plane to keep its devices' indices. It carries their
 * traffic only: a path may begin or end at it, none leads through it. So a change of `missing` changes paths
 * like the removal or addition of all of its adjacencies.
 */
struct fab_vertex {
    uint32_t node; /* in the inventory */
    uint32_t adj_first, n_adj;
    uint32_t n_devices; /* devices cabled to it */
    bool missing;
};

struct fab_edge {
    uint32_t to;     /* index into switches */
    uint16_t cost;   /* the cheapest of parallel cables */
    uint16_t cables; /* number of parallel cables (saturating) */
};

/* One cable of the plane, by its two ports in the inventory. */
struct fab_cable {
    uint32_t a, b;
    uint32_t mbps;
    uint16_t cost;
};

struct fab_plane {
    const struct fab_inventory *inv; /* must outlive the plane */
    struct fab_device *devices;      /* by host (natural order), device name (natural), port, GUID */
    struct fab_host *hosts;          /* natural order */
    struct fab_vertex *switches;     /* by node GUID */
    struct fab_edge *adj;            /* of one switch: by `to` */
    struct fab_cable *cables;        /* by port a, where a < b */
    uint32_t n_devices, n_hosts, n_switches, n_adj, n_cables;
    uint32_t n_missing; /* of the switches */
    /*
     * rate of its cables, except cables of routers, gateways and aggregation nodes; 0: no cable, or no rate
     * known
     */
    uint32_t fastest_mbps;
    uint32_t subnet; /* of its lowest port */
    uint64_t prefix; /* of that subnet */
    bool unattached; /* no cable, no switch: its devices reach no other */
    enum fab_cost_model model;
};

struct fab_planes {
    struct fab_plane *planes;
    uint32_t n;
};

/* Make the planes; inv finished and named. A cable of unknown rate counts as the fastest. */
int fab_planes_build(const struct fab_inventory *inv, enum fab_cost_model model, struct fab_planes *out,
                     struct fab_err *err);
void fab_planes_destroy(struct fab_planes *planes);

#endif
