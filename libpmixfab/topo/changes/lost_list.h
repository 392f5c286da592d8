/*
 * lost_list.h - what is lost is remembered, so that what comes later can be told as what it is.
 *
 * A hand takes its time: a switch is gone for minutes before another one is in its place, a host's board for
 * hours. The sweeps between see first a loss, then something new. What was lost, with its GUIDs, names and
 * cables, stands in this list until it is back or something took its place; what the operator has forgotten
 * also goes when its generation leaves the history. fab_diff_correlate_with() looks there for what came, and
 * fab_check_lost() for what looks wrong.
 */
#ifndef FAB_TOPO_CHANGES_LOST_LIST_H
#define FAB_TOPO_CHANGES_LOST_LIST_H

#include "topo/model/inventory.h"

struct fab_diff;

/* So many nodes and so many cables at most: those lost last. */
#define FAB_LOST_MAX 65536

/* A node, which is a switch or an HCA that had a cable; or a cable, also those of lost nodes. */
struct fab_lost_item {
    union {
        struct {
            uint64_t guid; /* of its node; of what took the node's place, if something did since */
            uint32_t num;
        } end[2];      /* of a cable, the lower GUID first */
        uint64_t guid; /* of a node: end[0].guid, and nothing else */
    };
    uint64_t generation; /* in which it was lost */
    int64_t seen;        /* when it was last seen, microseconds since 1970; 0: not known */
    union {              /* one piece of memory, text[0] */
        char *text[2];   /* of a cable "leaf1[8]": the ends, as people knew them */
        struct {
            char *host, *name; /* of a node, as in fab_node */
        };
    };
    uint8_t kind; /* FAB_SWITCH or FAB_HCA; 0: a cable */
    uint8_t width, speed;
    bool used;      /* a cable that was found again, elsewhere: fab_diff_correlate_with() says so */
    bool forgotten; /* the operator does not wait for it; when it is back, that is still told */
};

struct fab_lost_list {
    struct fab_lost_item *items; /* in order, each once */
    uint32_t n, cap;
};

struct fab_lost {
    struct fab_lost_list nodes, cables;
};

void fab_lost_destroy(struct fab_lost *lost); /* leaves it empty */

/* Append to the nodes or the cables; in no order until fab_lost_finish(). Texts are copied.
 * PMIXFAB_ERR_NOMEM. */
int fab_lost_add(struct fab_lost *lost, const struct fab_lost_item *item);
/* In order; of those that are there twice the one lost last; not more than FAB_LOST_MAX of either. */
void fab_lost_finish(struct fab_lost *lost);

/* A node by its GUID (binary search); FAB_NONE. */
uint32_t fab_lost_find(const struct fab_lost *lost, uint64_t guid);

/*
 * The list after a generation: without what is there (again), or was used; with what `told` (understood, in
 * order, and stamped with last_seen) says is lost from `before` to `after`; ends at what was replaced are at
 * what is in its place. What is forgotten goes if it was lost up to generation `trimmed`. *next is
 * initialised here. PMIXFAB_ERR_NOMEM.
 */
int fab_lost_update(const struct fab_lost *lost, const struct fab_inventory *before,
                    const struct fab_inventory *after, const struct fab_diff *told, uint64_t generation,
                    uint64_t trimmed, struct fab_lost *next);

/* The order of a list, by GUIDs and ports: as strcmp. 0: the same node or cable. */
int fab_lost_order(const struct fab_lost_item *a, const struct fab_lost_item *b);

#endif
