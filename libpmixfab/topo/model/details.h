/* details.h - the facts of the ports of an inventory: their sources, and which are chosen. */
#ifndef FAB_TOPO_MODEL_DETAILS_H
#define FAB_TOPO_MODEL_DETAILS_H

#include <stdint.h>

/*
 * The place of a device in its host. The numbers identify parts within one host and have no other meaning.
 * 0: unknown.
 */
struct fab_locality {
    uint16_t card;    /* PCI card: the functions of one device */
    uint16_t sw;      /* PCI switch */
    uint16_t numa;    /* NUMA node */
    uint16_t package; /* processor package */
};

/* One text of a kind, from some sources. */
struct fab_detail {
    uint32_t text;    /* in the pool of struct fab_details */
    uint16_t sources; /* bits 1 << enum fab_source */
    uint8_t kind;     /* enum fab_fact */
    uint8_t flags;    /* FAB_DETAIL_* */
};
#define FAB_DETAIL_CHOSEN    1u /* in use (of a kind with many: all without conflict) */
#define FAB_DETAIL_CONFLICT  2u /* sources disagree about this kind */
#define FAB_DETAIL_ESTIMATE  4u
#define FAB_DETAIL_SOFTWARE  8u  /* a software path that does not use the hardware, such as TCP */
#define FAB_DETAIL_OUTRANKED 16u /* a GUID or MAC that its device does not go by: another host claims it */

/*
 * Sources that saw a port. If a port has no cable and is not up, the sweep only reports that it exists. Such
 * a port counts as seen by its host only, once the host reports it. The switches made for Ethernet planes
 * count as seen by the nodes.
 */
#define FAB_SEEN_SUBNET  1u
#define FAB_SEEN_NODE    2u
#define FAB_SEEN_MISSING 4u /* with SUBNET: its node was not seen recently and keeps its place */

/* The facts of every port of a joined inventory; only ports of HCAs have facts. */
struct fab_details {
    uint32_t n_ports;
    uint32_t *first;          /* n_ports + 1: facts of port p are first[p] .. first[p+1]-1 */
    struct fab_detail *facts; /* of a port: by kind, the chosen one first, then text */
    /*
     * n_ports places in the host, from the chosen PCI address, switch, NUMA node and package. Ports of one
     * node are on one card. All zero: unknown
     */
    struct fab_locality *places;
    uint8_t *seen; /* n_ports: FAB_SEEN_* */
    char *pool;    /* each text once */
    uint32_t pool_size;
};

#endif
