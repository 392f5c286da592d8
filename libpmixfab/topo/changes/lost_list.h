/*
 * lost_list.h - remember lost things, so that they are recognised when they are back or replaced.
 *
 * Repairs take time: a switch is gone for minutes before the new one is in its place, a host's board for
 * hours. The sweeps between see a loss first, then something new. This list keeps each lost thing with its
 * GUIDs, names and cables until it is back or replaced. Things that the operator has forgotten are also
 * removed when their generation leaves the history. fab_diff_correlate_with() compares additions with this
 * list; fab_check_lost() makes findings from it.
 */
#ifndef FAB_TOPO_CHANGES_LOST_LIST_H
#define FAB_TOPO_CHANGES_LOST_LIST_H

#include "topo/model/inventory.h"

struct fab_diff;

/* Maximum number of nodes and of cables; those lost last are kept. */
#define FAB_LOST_MAX 65536

/* A switch, or an HCA that had a cable; or a cable, also one of a lost node. */
struct fab_lost_item {
    union {
        struct {
            uint64_t guid; /* of its node, or of the node that has replaced that since */
            uint32_t num;
        } end[2];      /* of a cable, the lower GUID first */
        uint64_t guid; /* of a node: end[0].guid only */
    };
    uint64_t generation; /* in which it was lost */
    int64_t seen;        /* last sight, microseconds since 1970; 0: unknown */
    union {              /* one piece of memory, at text[0] */
        char *text[2];   /* of a cable, the texts of its ends: "leaf1[8]" */
        struct {
            char *host, *name; /* of a node, as in fab_node */
        };
    };
    uint8_t kind; /* FAB_SWITCH or FAB_HCA; 0: a cable */
    uint8_t width, speed;
    bool used;      /* a cable that fab_diff_correlate_with() has found elsewhere */
    bool forgotten; /* the operator does not wait for it; its return is still reported */
};

struct fab_lost_list {
    struct fab_lost_item *items; /* in order, each once */
    uint32_t n, cap;
};

struct fab_lost {
    struct fab_lost_list nodes, cables;
};

void fab_lost_destroy(struct fab_lost *lost); /* leaves it empty */

/*
 * Append to the nodes or the cables; the order is undefined until fab_lost_finish(). Texts are copied.
 * PMIXFAB_ERR_NOMEM.
 */
int fab_lost_add(struct fab_lost *lost, const struct fab_lost_item *item);
/* Sort the list; keep the one lost last of equal items, and at most FAB_LOST_MAX of either kind. */
void fab_lost_finish(struct fab_lost *lost);

/* Find a node by its GUID (binary search); FAB_NONE if there is none. */
uint32_t fab_lost_find(const struct fab_lost *lost, uint64_t guid);

/*
 * Make the list after a generation:
 * - Remove the things that are back or used.
 * - Add the things that `told` (correlated, in order, with last_seen set) reports as lost from `before` to
 *   `after`.
 * - Replace the GUIDs of replaced nodes at the ends of cables.
 *
 * A forgotten thing is removed if it was lost up to generation `trimmed`. *next is initialised here.
 * PMIXFAB_ERR_NOMEM.
 */
int fab_lost_update(const struct fab_lost *lost, const struct fab_inventory *before,
                    const struct fab_inventory *after, const struct fab_diff *told, uint64_t generation,
                    uint64_t trimmed, struct fab_lost *next);

/* Compare by GUIDs and ports, as strcmp(). 0: the same node or cable. */
int fab_lost_order(const struct fab_lost_item *a, const struct fab_lost_item *b);

#endif
