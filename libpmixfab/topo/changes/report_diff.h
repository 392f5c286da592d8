/*
 * report_diff.h - what changed from one report of a host to the next, in an operator's words.
 */
#ifndef FAB_TOPO_CHANGES_REPORT_DIFF_H
#define FAB_TOPO_CHANGES_REPORT_DIFF_H

#include "topo/changes/diff.h"
#include "topo/model/report.h"

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

#endif
