/*
 * changes.h - what changed from one inventory, report or snapshot to the next, in an operator's words.
 */
#ifndef FAB_TOPO_CHANGES_CHANGES_H
#define FAB_TOPO_CHANGES_CHANGES_H

#include <string.h>

#include "topo/changes/lost_list.h"
#include "topo/model/inventory.h"
#include "topo/model/report.h"

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
    /* of what hosts report (fab_report_changes), which has devices added and lost, names and LIDs as well */
    FAB_CHANGE_REPORT_ADDED, /* a host reports for the first time */
    FAB_CHANGE_REPORT_LOST,  /* its report was forgotten */
    FAB_CHANGE_FIRMWARE,
    FAB_CHANGE_DRIVER,
    FAB_CHANGE_STATE,
    FAB_CHANGE_SPEED,
    FAB_CHANGE_MTU,
    FAB_CHANGE_FACT, /* anything else that is reported */
    /* what several of the above come to (fab_diff_correlate_with) */
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
    /* of a plane (fab_plane_changes) */
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

/* ---- what several changes come to: an HCA replaced, a host moved, a switch replaced ---------------- */

/*
 * fab_diff_compute() tells what is not there any more and what is there now, by GUID. An operator's hand does
 * one thing, which is many such changes: a replaced HCA is a device and a cable lost, and a device and a
 * cable added. Here they are put together again. No change is lost and none is told twice: each is either in
 * the list as it was, or in exactly one change that says more (n_raw counts them).
 *
 * How nodes are recognised, the first that fits:
 *  - the same GUID under the same name, or with one of its cables where it was: the same node;
 *  - HCA: the same host and device name, which no other HCA has on either side: replaced;
 *  - the same GUID: the same node, moved and renamed;
 *  - switch: of the neighbours' ports that led to the old one and lead anywhere now, more than half lead to
 *    the new one, and of the new one's cables whose other ends were there before, more than half are on ports
 *    that led to the old one. However few cables are back. Neighbours that were themselves replaced count
 *    as those in whose place they are. Two switches that change places are two that were replaced;
 *  - HCA: at the same switch port: replaced, whatever its name.
 *
 * What it says then:
 *  hca-replaced     `what` is the host's name and the device's, before and after are the GUIDs (with the
 *                   names where they differ, with the cable's rate where it does)
 *  switch-replaced  `what` is its name; cables that are not back stay link-lost, or go with their host
 *  host-moved       one for each port of an HCA that is at another switch port; before and after are those.
 *                   An HCA can be replaced and moved
 *                   Of a port that was missing and kept where it never was (topo/model/retain.h),
 *                   before is where it was; when it came to be kept there, link-lost is told
 *  cable-moved      `what` is the cable as it was, before and after the end that moved; between two switches
 *                   whose other ports it joins now: both ends
 *  port-down, -up   `what` is the cable; one change for both of its ends
 *  name             of a host: all its HCAs have their GUIDs and another host's name, whatever its devices
 *                   are called now
 *  host-lost, -added, device-lost, -added, switch-lost, -added: with their cables
 *  all others       as they were
 *
 * HCAs of two hosts that swap places: if the hosts' names stay with the GUIDs, two hosts moved; if they stay
 * with the places, two HCAs were replaced; if names alone were swapped, two names. Two HCAs with one host and
 * device name: the one that was there stays what it was, the other is a device added (or lost) of that host,
 * or one of another name now, whose host is not told as lost; and `why` says that two hosts claim the name.
 * Where the devices are called differently they can be one host's, and `why` says that, too.
 */

/*
 * Put *diff, as fab_diff_compute(before, after) has made it, into these words: every change gets `why` and
 * subjects. n_lost stays what it was. Equal inventories and diffs give equal results.
 *
 * What comes is looked for among what was lost before (NULL allowed; finished), by the same rules:
 *  switch-back      the same GUID; cables that are not where they were are told for themselves
 *  switch-replaced  by more than half of the ports around it, as above
 *  host-back        an HCA with the same GUID at its old place, or renamed; else host-moved
 *  hca-replaced     the same host's and device's name, which no other HCA that came or was lost has; or at
 *                   the switch port where one was last
 *  port-back        a cable of an HCA that was there meanwhile
 *  link-back        a cable between the same two ports of switches
 *  cable-moved      of two cables that were lost at its ends the one lost last; none of two lost at once
 * `why` says in which generation it was lost, and last_seen is set. Each raw change is still told once. Marks
 * the cables of `lost` that were found elsewhere as used, and all others as not.
 *
 * PMIXFAB_ERR_NOMEM, PMIXFAB_ERR_INVAL where one is not finished; *diff is then as it was.
 */
int fab_diff_correlate_with(const struct fab_inventory *before, const struct fab_inventory *after,
                            struct fab_lost *lost, struct fab_diff *diff);

/* While no subnet manager answers: what is back, and is not active, is told as inactive instead. When it is
 * made active later, that is port-up. `after`: that of the correlation. */
void fab_diff_mark_inactive(const struct fab_inventory *after, struct fab_diff *diff);

/* ---- reports of a host ---------------------------------------------------------------------- */

/*
 * Append to *diff (zeroed, or made by fab_diff_compute()) what changed, and put it in order again. Both
 * reports are finished and of one host. before NULL: the host reports for the first time, one change; after
 * NULL: its report was forgotten, one change.
 *
 * A change is about a device, "node017 mlx5_0[1]" or "node017 eth0", however many sources tell of it: device
 * added or lost, called otherwise (the same port GUID or MAC under another name), firmware, driver, state,
 * speed, MTU, LID, else "fact", and then `what` ends with its kind: "node017 eth0: address". Where sources
 * disagree, all that they say is listed. Estimates, bandwidths and latencies are not told. n_lost is left
 * alone: it counts what the fabric lost. PMIXFAB_ERR_NOMEM (*diff is as it was), PMIXFAB_ERR_INVAL.
 */
int fab_report_changes(const struct fab_report *before, const struct fab_report *after,
                       struct fab_diff *diff);

/* ---- planes ---------------------------------------------------------------------------------- */

/* Devices come and go, and those behind them in the order of names get another index: whoever keeps indices
 * must know which. That is told, not which devices came and went. */

/*
 * Append to *diff (zeroed, or made by fab_diff_compute()) one change of kind "index", where a device that
 * both snapshots (trusted: no checks) have has another index. A device is known by its host's name, its own
 * and its port's number. `what` is the plane's name, `before` and `after` are the ranges of indices that
 * moved and where they are now, "17-39, 52" and "16-38, 50"; ranges that do not fit are counted: "and 7
 * more". *diff is in order again. PMIXFAB_ERR_NOMEM: *diff is as it was.
 */
int fab_index_changes(const void *before, const void *after, struct fab_diff *diff);

/* The same for the kind and the shape ("2x4x8") of a plane, one change for each that is another one now. */
int fab_plane_changes(const void *before, const void *after, struct fab_diff *diff);

/* Another plane is the default, and why. As above. */
int fab_default_change(const char *before, const char *after, const char *why, struct fab_diff *diff);

/* ---- names that a host has not said yet ----------------------------------------------------------------
 *
 * A host names its HCAs late while it boots: until then they say what their firmware or driver says
 * ("MT4129 ConnectX7   Mellanox Technologies", "Intel Infiniband HCA (none)"), or "localhost mlx5_0". Would
 * they go by their GUIDs meanwhile, every index behind them would move twice.
 */

/* What is known beside the inventory that is to be named. */
struct fab_names_known {
    const struct fab_inventory *before; /* finished and named */
    const struct fab_lost *lost;        /* finished; NULL: nothing is known of it */
    /* Told of each HCA of inv that had a name and does not say it: "node1 mlx5_0", and a sentence. NULL
     * allowed. */
    void (*told)(const struct fab_node *node, const char *what, const char *text, bool kept, void *cbdata);
    void *cbdata;
};

/*
 * Of inv (finished and named): an HCA that no pattern and no map names, or whose host is localhost, or that
 * says of what its GUID said before no more than the beginning ("node1" of "node1 hfi1_0"), gets the
 * description that its GUID had, where one of its cables is where it was: at the same port of the same
 * switch, or of the one that is in that one's place (topo/model/pairing.h).
 * What was lost meanwhile (lost_list.h) has its name back by the same rules; its description is made of both.
 * An HCA that is elsewhere may be another host's by now: it stays as it is. *n_kept have another description
 * now, and are to be named again. PMIXFAB_ERR_NOMEM.
 */
int fab_keep_names(const struct fab_names_known *known, struct fab_inventory *inv, uint32_t *n_kept);

#endif
