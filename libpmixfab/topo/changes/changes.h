/* changes.h - differences between two inventories, reports or snapshots, and their texts for an operator. */
#ifndef FAB_TOPO_CHANGES_CHANGES_H
#define FAB_TOPO_CHANGES_CHANGES_H

#include <string.h>

#include "topo/changes/lost_list.h"
#include "topo/model/inventory.h"
#include "topo/model/report.h"

enum fab_change_kind {
    FAB_CHANGE_HOST_ADDED = 1, /* the first device of a host appeared */
    FAB_CHANGE_HOST_LOST,
    FAB_CHANGE_DEVICE_ADDED, /* a cabled HCA port */
    FAB_CHANGE_DEVICE_LOST,
    FAB_CHANGE_SWITCH_ADDED,
    FAB_CHANGE_SWITCH_LOST,
    FAB_CHANGE_LINK_ADDED, /* a cable between two ports */
    FAB_CHANGE_LINK_LOST,
    FAB_CHANGE_LINK_RATE,  /* same cable, another width or speed */
    FAB_CHANGE_PORT_STATE, /* of a cabled port, as far as published: ACTIVE or not */
    FAB_CHANGE_NAME,       /* a node has another name */
    FAB_CHANGE_LID,
    /* any other published value: chassis, vendor, number of ports, uncabled ports, prefixes */
    FAB_CHANGE_OTHER,
    /* of host reports (fab_report_changes); devices added and lost, names and LIDs are also used */
    FAB_CHANGE_REPORT_ADDED, /* a host reports for the first time */
    FAB_CHANGE_REPORT_LOST,  /* its report was forgotten */
    FAB_CHANGE_FIRMWARE,
    FAB_CHANGE_DRIVER,
    FAB_CHANGE_STATE,
    FAB_CHANGE_SPEED,
    FAB_CHANGE_MTU,
    FAB_CHANGE_FACT, /* any other reported fact */
    /* conclusions from several of the above (fab_diff_correlate_with) */
    FAB_CHANGE_HCA_REPLACED,    /* another GUID in the same place */
    FAB_CHANGE_HOST_MOVED,      /* an HCA's port is at another switch port */
    FAB_CHANGE_CABLE_MOVED,     /* between switches */
    FAB_CHANGE_SWITCH_REPLACED, /* another GUID in the same place of the wiring */
    FAB_CHANGE_PORT_DOWN,       /* the cable is there, the port is no longer ACTIVE */
    FAB_CHANGE_PORT_UP,
    FAB_CHANGE_INDEX, /* device indices of a plane changed */
    /* of a retained place (retain.h) */
    FAB_CHANGE_HOST_MISSING, /* an HCA is no longer seen, or has no cable */
    FAB_CHANGE_HOST_BACK,    /* the HCA is seen again as it was */
    FAB_CHANGE_SWITCH_MISSING,
    FAB_CHANGE_SWITCH_BACK,
    FAB_CHANGE_PORT_MISSING, /* of an HCA that is seen: the cable in one of its ports is not seen */
    FAB_CHANGE_PORT_BACK,
    FAB_CHANGE_LINK_BACK, /* a lost cable between switches is seen again */
    FAB_CHANGE_FLAPPING,  /* a cable comes and goes, and is suppressed for a while */
    FAB_CHANGE_INACTIVE,  /* seen again, but not active while no subnet manager answers */
    /* of a plane (fab_plane_changes) */
    FAB_CHANGE_PLANE_KIND,
    FAB_CHANGE_PLANE_SHAPE,
    FAB_CHANGE_DEFAULT_PLANE, /* another plane is the default */
    FAB_CHANGE_KINDS          /* number of kinds + 1 */
};

/*
 * One change. Texts are complete and clean (UTF-8, no control characters): `what` is "leaf1[8] - node001
 * HCA-1[1]", `before` is "4xHDR", ... An added thing has an empty `before`, a lost one an empty `after`.
 */
struct fab_change {
    enum fab_change_kind kind;
    uint64_t guid; /* its node (of a link: the end with the lower GUID; of a host: its lowest) */
    uint32_t port; /* 0: the whole node */
    char *what, *before,
        *after;      /* never NULL; the three texts share one piece of memory, which `what` points at */
    const char *why; /* the reason for the conclusion: one short sentence, or empty */
    /* Names of the hosts and switches concerned: each with its terminating 0, an empty one after the last. */
    const char *subjects;
    uint32_t n_raw;  /* number of changes of fab_diff_compute() in it */
    bool planned;    /* announced by the operator */
    bool was_lost;   /* of a thing that is back: it had lost its place and its index */
    bool renamed;    /* the first subject now has the name of the second, and no node has the first name */
    uint64_t former; /* GUID of the replaced node; 0: none was replaced */
    /* Microseconds since 1970: the first sight of the new state, the last sight of the old one; 0:
     * unknown. The publisher sets them; last_seen of an earlier loss is set already. */
    int64_t first_seen, last_seen;
};

/* Return the next name in a list of subjects; an empty name ends the list. */
static inline const char *fab_subject_next(const char *subject)
{
    return subject + strlen(subject) + 1;
}

struct fab_diff {
    struct fab_change *changes; /* in order of kind, then natural order of `what` */
    uint32_t n, cap;
    uint32_t n_lost; /* hosts, devices, switches and links lost: more than 0 means that the fabric shrinks */
};

/* Return the word for a kind: "host-added", "link-rate", ..., "unknown". */
const char *fab_change_name(enum fab_change_kind kind);

/*
 * Compare two inventories, both finished and named. `before` may be empty. *diff is initialised here. Nodes
 * are matched by GUID, ports by node and number, cables by their two ends. The result is empty exactly if the
 * inventories are equal. A host is the set of HCAs of one name with a cabled port. If the last HCA of a host
 * is renamed, host-lost and host-added are reported in addition to the change of name. PMIXFAB_ERR_NOMEM;
 * PMIXFAB_ERR_INVAL if one is not finished.
 */
int fab_diff_compute(const struct fab_inventory *before, const struct fab_inventory *after,
                     struct fab_diff *diff);
void fab_diff_destroy(struct fab_diff *diff);

/* One end of a cable, or a node if port is 0. */
struct fab_told_end {
    uint64_t guid;
    uint32_t port;
};

/*
 * Add a change of a cable, or of a node (far.guid 0). `what` and the subjects name the ends of the cable, a
 * switch first. The name of a node is from the first inventory that has the node, else the name is the GUID.
 * diff stays in order. PMIXFAB_ERR_NOMEM.
 */
int fab_diff_tell(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *const *invs,
                  uint32_t n_invs, struct fab_told_end end, struct fab_told_end far, const char *before,
                  const char *after, const char *why);
/* As above, for many changes: diff is out of order until fab_diff_sort(). */
int fab_diff_append(struct fab_diff *diff, enum fab_change_kind kind, const struct fab_inventory *const *invs,
                    uint32_t n_invs, struct fab_told_end end, struct fab_told_end far, const char *before,
                    const char *after, const char *why);

/* Add copies of the changes of `from`. diff stays in order. PMIXFAB_ERR_NOMEM. */
int fab_diff_repeat(struct fab_diff *diff, const struct fab_diff *from);

/*
 * Move the changes of `from`, which becomes empty, to the end of `to`, which is out of order until it is
 * sorted. PMIXFAB_ERR_NOMEM: nothing was moved.
 */
int fab_diff_move(struct fab_diff *to, struct fab_diff *from);
void fab_diff_sort(struct fab_diff *diff);

/* ---- conclusions from several changes: HCA replaced, host moved, switch replaced -------------------- */

/*
 * fab_diff_compute() reports by GUID which things are gone and which are new. One act of an operator causes
 * many such changes. For example, after the swap of an HCA a device and a cable are lost, and a device and a
 * cable are added. The correlation puts these changes together again. Each raw change is reported once, alone
 * or within one conclusion. n_raw counts the raw changes.
 *
 * Two nodes are recognised as the same, or one as the replacement of the other, by the first rule that fits:
 * - same GUID, and the same name or one of its cables in its former place: the same node;
 * - HCA with the same host and device name, which no other HCA has on either side: replaced;
 * - same GUID: the same node, moved and renamed;
 * - switch: replaced if two conditions hold. Of the neighbours' ports that led to the old switch and lead
 *   anywhere now, more than half lead to the new switch. Of the new switch's cables whose other ends existed
 *   before, more than half are in ports that led to the old switch. The number of cables that are back does
 *   not matter. A replaced neighbour counts as the switch in its place. Two switches that swap places are two
 *   replaced switches;
 * - HCA at the same switch port: replaced, with any name.
 *
 * The conclusions:
 *   hca-replaced     `what` is the host's and the device's name; before and after are the GUIDs, with
 *                    the names and the cable's rate if they differ
 *   switch-replaced  `what` is its name; cables that are not back stay link-lost, or go with their host
 *   host-moved       one for each port of an HCA that is at another switch port; before and after are
 *                    those ports. An HCA can be replaced and moved. For a missing port kept at a place where
 *                    it never was (topo/model/retain.h), before is its real place; when the port is put
 *                    there, link-lost is reported
 *   cable-moved      `what` is the former cable, before and after are the end that moved; between two
 *                    switches that it now joins at other ports: both ends
 *   port-down, -up   `what` is the cable; one change for both of its ends
 *   name             of a host: all its HCAs keep their GUIDs and have another host's name, whatever the
 *                    names of its devices
 *   host-lost, -added, device-lost, -added, switch-lost, -added: with their cables
 *   all others       unchanged
 *
 * If HCAs of two hosts swap places, there are three cases:
 * - The names stay with the GUIDs: the hosts have moved.
 * - The names stay with the places: the HCAs were replaced.
 * - Only the names changed: the names were swapped.
 *
 * If two HCAs get the same host and device name, the HCA that had the name keeps its identity. The other HCA
 * is a device added to (or lost from) that host, or a renamed device. Its former host is not reported as
 * lost, and `why` says that two hosts claim the name. If the device names differ, both HCAs can belong to one
 * host, and `why` says so.
 */

/*
 * Draw these conclusions from *diff, the result of fab_diff_compute(before, after). Every change gets `why`
 * and subjects. n_lost does not change. Equal inventories and diffs give equal results.
 *
 * Added things are compared with those lost earlier (`lost`, finished; NULL is allowed) by the same rules:
 *   switch-back      the same GUID; cables at other places are reported separately
 *   switch-replaced  by more than half of the ports around it, as above
 *   host-back        an HCA with the same GUID at its old place, or renamed; else host-moved
 *   hca-replaced     the same host and device name, which no other HCA that was added or lost has; or at
 *                    the switch port of the lost one
 *   port-back        a cable of an HCA that was present meanwhile
 *   link-back        a cable between the same two ports of switches
 *   cable-moved      of two cables lost at its ends the one lost last; neither if both were lost at once
 * `why` gives the generation of the loss, and last_seen is set. Each raw change is still reported once. The
 * call marks the cables of `lost` that were found elsewhere as used, and all others as unused.
 *
 * PMIXFAB_ERR_NOMEM; PMIXFAB_ERR_INVAL if one is not finished; *diff is then unchanged.
 */
int fab_diff_correlate_with(const struct fab_inventory *before, const struct fab_inventory *after,
                            struct fab_lost *lost, struct fab_diff *diff);

/*
 * While no subnet manager answers, turn things that are back but not active into changes of kind inactive.
 * Their later activation is port-up. `after` is that of the correlation.
 */
void fab_diff_mark_inactive(const struct fab_inventory *after, struct fab_diff *diff);

/* ---- reports of a host ---------------------------------------------------------------------- */

/*
 * Append the differences of two reports of one host, both finished, to *diff (zeroed, or from
 * fab_diff_compute()) and sort it. If `before` is NULL, the only change is that the host reports for the
 * first time. If `after` is NULL, the only change is that its report was forgotten.
 *
 * A change concerns one device, "node017 mlx5_0[1]" or "node017 eth0", and is reported once for all sources.
 * These kinds of changes exist:
 * - device added, lost or renamed (the same port GUID or MAC under another name)
 * - firmware, driver, state, speed, MTU, LID
 * - "fact" for all others; `what` then ends with the kind of the fact: "node017 eth0: address".
 *
 * If sources disagree, all their values are listed. Estimates, bandwidths and latencies are not compared.
 * n_lost stays, because the fabric lost nothing. PMIXFAB_ERR_NOMEM (*diff is unchanged), PMIXFAB_ERR_INVAL.
 */
int fab_report_changes(const struct fab_report *before, const struct fab_report *after,
                       struct fab_diff *diff);

/* ---- planes ---------------------------------------------------------------------------------- */

/*
 * When devices come and go, all later devices in the order of names get another index. Users of indices must
 * know the indices that changed; the devices themselves are reported elsewhere.
 */

/*
 * Append one change of kind "index" to *diff (zeroed, or from fab_diff_compute()) if a device of both
 * snapshots has another index. The snapshots are trusted and not checked. A device is identified by its
 * host's name, its name and its port number. `what` is the plane's name. `before` and `after` are the ranges
 * of old and new indices, for example "17-39, 52" and "16-38, 50". Ranges that do not fit are counted: "and 7
 * more". *diff is in order again. PMIXFAB_ERR_NOMEM: *diff is unchanged.
 */
int fab_index_changes(const void *before, const void *after, struct fab_diff *diff);

/* As above, for a new kind or a new shape ("2x4x8") of a plane, one change each. */
int fab_plane_changes(const void *before, const void *after, struct fab_diff *diff);

/* As above, for a new default plane, with the reason. */
int fab_default_change(const char *before, const char *after, const char *why, struct fab_diff *diff);

/*
 * ---- names of hosts that boot -----------------------------------------------------------------------------
 *
 * While a host boots, its HCAs have the description of their firmware or driver ("MT4129 ConnectX7   Mellanox
 * Technologies", "Intel Infiniband HCA (none)"), or "localhost mlx5_0". Naming them by their GUIDs meanwhile
 * would shift every later index twice.
 */

/* Data besides the inventory to be named. */
struct fab_names_known {
    const struct fab_inventory *before; /* finished and named */
    const struct fab_lost *lost;        /* finished; NULL: nothing was lost */
    /* Called for each HCA of inv that had a name and does not send it: "node1 mlx5_0", and a sentence. May
     * be NULL. */
    void (*told)(const struct fab_node *node, const char *what, const char *text, bool kept, void *cbdata);
    void *cbdata;
};

/*
 * Give HCAs of inv (finished and named) the description that their GUID had before. The HCA must have no name
 * by a pattern or map, or its host must be localhost, or its description must be only the beginning of the
 * former one ("node1" of "node1 hfi1_0"). One of its cables must be in its former place. This is the same
 * port of the same switch, or of the switch that replaced it (topo/model/pairing.h). An HCA lost meanwhile
 * (lost_list.h) gets its name back by the same rules. Its description is then made of its host and device
 * name. An HCA at another place may belong to another host by now, so its description stays. *n_kept becomes
 * the number of HCAs with a changed description, which must be named again. PMIXFAB_ERR_NOMEM.
 */
int fab_keep_names(const struct fab_names_known *known, struct fab_inventory *inv, uint32_t *n_kept);

#endif
