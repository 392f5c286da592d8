/*
 * index_diff.h - what changed about a plane as a whole from one of its snapshots to the next: its kind, its
 * shape, and which device indices moved.
 *
 * Devices come and go, and those behind them in the order of names get another index: whoever keeps indices
 * must know which. That is told, not which devices came and went.
 */
#ifndef FAB_TOPO_CHANGES_INDEX_DIFF_H
#define FAB_TOPO_CHANGES_INDEX_DIFF_H

#include "topo/changes/diff.h"

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

#endif
