/*
 * correlate.h - what several changes come to: an HCA replaced, a host moved, a switch replaced.
 *
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
 * are called now host-lost, -added, device-lost, -added, switch-lost, -added: with their cables all others as
 * they were
 *
 * HCAs of two hosts that swap places: if the hosts' names stay with the GUIDs, two hosts moved; if they stay
 * with the places, two HCAs were replaced; if names alone were swapped, two names. Two HCAs with one host and
 * device name: the one that was there stays what it was, the other is a device added (or lost) of that host,
 * or one of another name now, whose host is not told as lost; and `why` says that two hosts claim the name.
 * Where the devices are called differently they can be one host's, and `why` says that, too.
 */
#ifndef FAB_TOPO_CHANGES_CORRELATE_H
#define FAB_TOPO_CHANGES_CORRELATE_H

#include "topo/changes/diff.h"
#include "topo/changes/retired.h"

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
                            struct fab_retired *lost, struct fab_diff *diff);

/* While no subnet manager answers: what is back, and is not active, is told as inactive instead. When it is
 * made active later, that is port-up. `after`: that of the correlation. */
void fab_diff_mark_inactive(const struct fab_inventory *after, struct fab_diff *diff);

#endif
