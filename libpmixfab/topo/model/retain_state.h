/* retain_state.h - what the files of retain share. */
#ifndef FAB_TOPO_MODEL_RETAIN_STATE_H
#define FAB_TOPO_MODEL_RETAIN_STATE_H

#include "topo/model/pairing.h"
#include "topo/model/retain.h"

/* A keeping on its way. Arrays run over the elements of `before`. */
struct retaining {
    const struct fab_inventory *before, *swept;
    struct fab_inventory *out;
    uint32_t *there; /* the node of swept that it is, or of a switch what stands in its place; FAB_NONE */
    uint32_t *was;   /* back: of each node of swept */
    struct pairing pairs; /* both */
    uint8_t *kept;        /* nodes that are not seen, or without a cable: it keeps its place */
    uint8_t *may;         /* ports of HCAs: it may keep its place */
    uint8_t *cable;       /* ports: its cable stays, down */
    uint8_t *anchor;      /* nodes: a kept switch from which something that is seen can be reached */
    uint32_t *port;       /* the port of out that it became */
    uint32_t *away;       /* ports of HCAs whose place another cable has: a switch of swept, else FAB_NONE, */
    uint8_t *num;         /* and its port where they are kept instead */
    uint8_t subnet[FAB_MAX_SUBNETS];
};

/* Has this node of before no cable in swept? */
static inline bool retain_is_unseen(const struct retaining *k, uint32_t node)
{
    return k->there[node] == FAB_NONE || !fab_node_is_cabled(k->swept, &k->swept->nodes[k->there[node]]);
}

/* relocate.c: the ports that may stay, and whose switch is there but has no room for them where they were.
 * After all others: cable is set for them, and not for the port where they were. PMIXFAB_ERR_NOMEM. */
int retain_elsewhere(struct retaining *k);

/* retain_write.c: what was chosen, into out, which is a copy of swept; unfinished afterwards. */
int retain_write(struct retaining *k);

#endif
