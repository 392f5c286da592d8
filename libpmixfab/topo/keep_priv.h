/* keep_priv.h - what the files of keeping share. */
#ifndef FAB_TOPO_KEEP_PRIV_H
#define FAB_TOPO_KEEP_PRIV_H

#include "topo/keep.h"

/* A keeping on its way. Arrays run over the elements of `before`. */
struct keeping {
    const struct fab_inventory *before, *swept;
    struct fab_inventory *out;
    uint32_t *there; /* the node of swept that it is, FAB_NONE */
    uint8_t *kept;   /* nodes that are not seen, or without a cable: it keeps its place */
    uint8_t *may;    /* ports of HCAs: it may keep its place */
    uint8_t *cable;  /* ports: its cable stays, down */
    uint8_t *anchor; /* nodes: a kept switch from which something that is seen can be reached */
    uint32_t *port;  /* the port of out that it became */
    uint8_t subnet[FAB_MAX_SUBNETS];
};

/* keep_write.c: what was chosen, into out, which is a copy of swept; unfinished afterwards. */
int keep_write(struct keeping *k);

#endif
