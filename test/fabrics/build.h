/* build.h - what the generators share: add switches and hosts, cable them, finish. */
#ifndef FAB_TEST_FABRICS_BUILD_H
#define FAB_TEST_FABRICS_BUILD_H

#include "test/fabrics/fabrics.h"

#define BUILD_VENDOR     0x2c9
#define BUILD_DEV_SWITCH 0xd2f0
#define BUILD_DEV_HCA    0x101b
#define BUILD_MOST_HCAS  8 /* of a host */

/* One fabric in the making. After the first failure (rc) every call does nothing. */
struct build {
    struct fab_inventory *inv;
    int rc;
    uint64_t next_switch, next_hca; /* GUIDs */
    uint16_t next_lid;
    unsigned hosts;
    uint32_t device_name[BUILD_MOST_HCAS]; /* "HCA-1" ... in the pool, once each */
};

/* Initialises inv. */
void build_begin(struct build *b, struct fab_inventory *inv);

/* Returns the node's index. */
uint32_t build_switch(struct build *b, unsigned num_ports, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The next host's number (from 1); then its HCAs one after the other, `hca` of `of`. Returns the node's
 * index. */
unsigned build_host(struct build *b);
uint32_t build_hca(struct build *b, unsigned host, unsigned hca, unsigned of, unsigned num_ports);

/* Cable two ports of two nodes at lanes x speed. */
void build_cable(struct build *b, uint32_t node_a, unsigned port_a, uint32_t node_b, unsigned port_b,
                 unsigned width, enum fab_speed speed);

/* One host with one HCA on a port of a switch, at 4xHDR. */
void build_simple_host(struct build *b, uint32_t sw, unsigned port);

/* Finish the inventory; on failure it is destroyed. Returns the outcome of everything. */
int build_end(struct build *b);

#endif
