/* site.h - the fabric as it stands there, for the files that read it. */
#ifndef FAB_TEST_SIM_SITE_H
#define FAB_TEST_SIM_SITE_H

#include "topo/inventory/inventory.h"

#define SITE_PORTS 66 /* one more than the highest port */

struct site_node {
    struct fab_node node;
    struct fab_port ports[SITE_PORTS]; /* by number: what they are without a cable */
    char name[64], description[64];
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
    uint64_t prefixes[FAB_MAX_SUBNETS];
    uint64_t version;
    struct fab_inventory swept; /* what a sweep of everything saw last, at that version */
    uint64_t swept_version;
    bool swept_once;
};

uint32_t site_find(const struct site *site, const char *name); /* FAB_NONE */

#endif
