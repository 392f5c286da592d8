/*
 * diff.h - what changed from one inventory to the next, in an operator's words.
 */
#ifndef FAB_TOPO_CHANGES_DIFF_H
#define FAB_TOPO_CHANGES_DIFF_H

#include <string.h>

#include "topo/model/inventory.h"

enum fab_change_kind {
    FAB_CHANGE_HOST_ADDED = 1, /* first device of a host appeared */
    FAB_CHANGE_HOST_LOST,
    FAB_CHANGE_DEVICE_ADDED, /* a cabled HCA port */
    FAB_CHANGE_DEVICE_LOST,
    FAB_CHANGE_SWITCH_ADDED,
    FAB_CHANGE_SWITCH_LOST,
    FAB_CHANGE_LINK_ADDED, /* a cable between two ports */
    FAB_CHANGE_LINK_LOST,
    FAB_CHANGE_LINK_RATE,  /* same cable, another width or speed */
    FAB_CHANGE_PORT_STATE, /* of a cabled port, as far as served: ACTIVE or not */
    FAB_CHANGE_NAME,       /* a node is called otherwise */
    FAB_CHANGE_LID,
    FAB_CHANGE_OTHER, /* anything else that is kept: chassis, vendor, number of ports, uncabled ports,
                       * prefixes
                       */
    /* of what hosts report (report_diff.h), which has devices added and lost, names and LIDs as well */
    FAB_CHANGE_REPORT_ADDED, /* a host reports for the first time */
    FAB_CHANGE_REPORT_LOST,  /* its report was forgotten */
    FAB_CHANGE_FIRMWARE,
    FAB_CHANGE_DRIVER,
    FAB_CHANGE_STATE,
    FAB_CHANGE_SPEED,
    FAB_CHANGE_MTU,
    FAB_CHANGE_FACT, /* anything else that is reported */
    /* what several of the above come to (correlate.h) */
    FAB_CHANGE_HCA_REPLACED,    /* another GUID in the same place */
    FAB_CHANGE_HOST_MOVED,      /* an HCA's port is at another switch port */
    FAB_CHANGE_CABLE_MOVED,     /* between switches */
    FAB_CHANGE_SWITCH_REPLACED, /* another GUID in the same place of the wiring */
    FAB_CHANGE_PORT_DOWN,       /* the cable is there, the port not ACTIVE any more */
    FAB_CHANGE_PORT_UP,
    FAB_CHANGE_INDEX, /* device indices of a plane moved */
    /* of what keeps its place (retain.h) */
    FAB_CHANGE_HOST_MISSING, /* an HCA is not seen any more, or without a cable */
    FAB_CHANGE_HOST_BACK,    /* it is seen again, as it was */
    FAB_CHANGE_SWITCH_MISSING,
    FAB_CHANGE_SWITCH_BACK,
    FAB_CHANGE_PORT_MISSING, /* of an HCA that is seen: the cable in one of its ports is not */
    FAB_CHANGE_PORT_BACK,
    FAB_CHANGE_LINK_BACK, /* a cable between switches that was lost is there again */
    FAB_CHANGE_FLAPPING,  /* a cable comes and goes, and is suppressed for a while */
    FAB_CHANGE_INACTIVE,  /* what is back, but not active: there is no subnet manager that would see to it */
    /* of a plane (index_diff.h) */
    FAB_CHANGE_PLANE_KIND,
    FAB_CHANGE_PLANE_SHAPE,
    FAB_CHANGE_DEFAULT_PLANE, /* another plane is the default */
    FAB_CHANGE_KINDS          /* one more than the last */
};

/* One change. Texts are complete and clean (UTF-8, no control characters): `what` "leaf1[8] - node001
 * HCA-1[1]", `before` "4xHDR", ... What came has an empty `before`, what went an empty `after`. */
struct fab_change {
    enum fab_change_kind kind;
    uint64_t guid; /* node that it is about (of a link: the end with the lower GUID; of a host: its lowest) */
    uint32_t port; /* 0: the whole node */
    char *what, *before, *after; /* never NULL; one piece of memory, `what`, as the next two */
    const char *why;             /* how it was concluded: one short sentence, or empty */
    /* The hosts and switches that it is about, by name: each with its end, an empty one behind the last. */
    const char *subjects;
    uint32_t n_raw;  /* how many changes of fab_diff_compute() are in it */
    bool planned;    /* the operator had announced it */
    bool was_lost;   /* of what is back: it had lost its place, and its index with it */
    bool renamed;    /* the first of the subjects is called as the second one now, and nobody as the first */
    uint64_t former; /* of what was replaced: its GUID; 0: nothing was */
    /* Microseconds since 1970: when what is now was first seen, and what was before last seen; 0: not known.
     * Set by whoever publishes; last_seen of what was lost before is known already. */
    int64_t first_seen, last_seen;
};

/* The name behind one in a list of subjects; empty: that was the last. */
static inline const char *fab_subject_next(const char *subject)
{
    return subject + strlen(subject) + 1;
}

struct fab_diff {
    struct fab_change *changes; /* ordered by kind, then natural order of what */
    uint32_t n, cap;
    uint32_t n_lost; /* hosts, devices, switches and links lost: does the fabric shrink? */
};

/* Word for a kind: "host-added", "link-rate", ..., "unknown". */
const char *fab_change_name(enum fab_change_kind kind);

/*
 * Both finished and named. `before` may be empty. *diff is initialised here. Nodes are matched by GUID, ports
 * by node and number, cables by their two ends. The diff of two inventories is empty exactly where they are
 * equal. A host is the HCAs of one name that have a cabled port: renaming its last one is host-lost and
 * host-added beside the change of name. PMIXFAB_ERR_NOMEM, PMIXFAB_ERR_INVAL where one is not finished.
 */
int fab_diff_compute(const struct fab_inventory *before, const struct fab_inventory *after,
                     struct fab_diff *diff);
void fab_diff_destroy(struct fab_diff *diff);

/* One end of a cable; port 0: the node itself. */
struct fab_told_end {
    uint64_t guid;
    uint32_t port;
};

/*
 * Add a change that is about a cable, or about a node (far.guid 0): `what` and the subjects are those of its
 * ends, a switch first, with the names in the first of the inventories that has the node, else its GUID. diff
 * stays in order. PMIXFAB_ERR_NOMEM.
 */
int fab_diff_tell(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *const *invs,
                  uint32_t n_invs, struct fab_told_end end, struct fab_told_end far, const char *before,
                  const char *after, const char *why);
/* The same for many: diff is out of order until fab_diff_sort(). */
int fab_diff_append(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *const *invs,
                    uint32_t n_invs, struct fab_told_end end, struct fab_told_end far, const char *before,
                    const char *after, const char *why);

/* Add the changes of `from` once more. diff stays in order. PMIXFAB_ERR_NOMEM. */
int fab_diff_repeat(struct fab_diff *diff, const struct fab_diff *from);

/* Move the changes of `from` (empty afterwards) behind those of `to`, which is out of order until it is
 * sorted. PMIXFAB_ERR_NOMEM: nothing was moved. */
int fab_diff_move(struct fab_diff *to, struct fab_diff *from);
void fab_diff_sort(struct fab_diff *diff);

#endif
