/* site.h - the fabric as it stands there, for the files that read it. */
#ifndef FAB_TEST_SIM_SITE_H
#define FAB_TEST_SIM_SITE_H

#include "topo/model/inventory.h"

#define SITE_PORTS 66 /* one more than the highest port */

struct site_node {
    struct fab_node node;
    struct fab_port ports[SITE_PORTS]; /* by number: what they are without a cable */
    bool disabled[SITE_PORTS];
    uint64_t *counters; /* of port 0, 1, ...: PROBE_COUNTERS of each; NULL: nothing was counted */
    char name[64], description[64];
    uint32_t island; /* the nodes that cables between switches connected at first have the same one */
    bool there;
};

struct site_cable {
    uint32_t node[2];
    uint8_t port[2];
    uint8_t width, speed, state;
    bool plugged;
};

struct site {
    struct site_node *nodes;
    struct site_cable *cables;
    uint32_t n_nodes, n_cables, n_subnets;
    uint32_t home; /* sweeps are made from this node; FAB_NONE: from where most of the fabric is reached */
    uint64_t prefixes[FAB_MAX_SUBNETS];
    uint64_t version;
    struct fab_inventory swept; /* what a sweep of everything saw last, at that version */
    uint64_t swept_version;
    bool swept_once;
};

uint32_t site_find(const struct site *site, const char *name);   /* FAB_NONE */
uint32_t site_find_guid(const struct site *site, uint64_t guid); /* FAB_NONE */
struct site *site_of(const struct fab_inventory *inv);
/* Each switch has so many ports, or as many as had a cable. */
void site_room(struct site *site, unsigned ports);
/* Plugged, with both ends there and enabled. */
bool site_cable_is_up(const struct site *site, const struct site_cable *cable);
void site_add_cable(struct site *site, const struct site_cable *cable);
/* What this node of another site is, in the place of the one with its GUID, or as another one; its index. */
uint32_t site_renew_node(struct site *site, const struct site_node *node);

#endif
