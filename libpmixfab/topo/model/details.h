/*
 * details.h - the facts of the ports of an inventory: who says what, and what is believed.
 */
#ifndef FAB_TOPO_MODEL_DETAILS_H
#define FAB_TOPO_MODEL_DETAILS_H

#include <stdint.h>

/*
 * Where in its host a device is. Numbers are per host and mean nothing else; 0: not known.
 */
struct fab_locality {
    uint16_t card;    /* PCI card: the functions of one device */
    uint16_t sw;      /* PCI switch */
    uint16_t numa;    /* NUMA node */
    uint16_t package; /* processor package */
};

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
#define FAB_DETAIL_OUTRANKED 16u /* a GUID or MAC that its device does not go by: another host claims it */

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

#endif
