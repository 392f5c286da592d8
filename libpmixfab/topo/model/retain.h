/*
 * retain.h - things that a sweep no longer sees keep their places for a while: missing, not lost.
 *
 * A host that restarts, whose leaf switch restarts, or whose cable is pulled, comes back unchanged. Removing
 * it would shift every later index and coordinate, and shift it back when the host returns. So the ports of
 * its HCAs stay with their cables, both ends DOWN, if nothing else is cabled to these switch ports now. This
 * is decided for each port: an HCA is missing if it has no other cable.
 */
#ifndef FAB_TOPO_MODEL_RETAIN_H
#define FAB_TOPO_MODEL_RETAIN_H

#include "topo/model/inventory.h"

/* Return whether this port (of an HCA of `before`, with a cable that is not seen) may keep its place. */
typedef bool (*fab_retain_fn)(const struct fab_inventory *before, uint32_t port, void *cbdata);

/*
 * Make the inventory of `swept` and of the things of `before` that keep their places.
 *
 * A port of an HCA is kept if it had a cable to a switch and has none now, may() agrees, and
 * - its switch or the replacement of its switch is seen, or the switch is missing, too;
 * - its port GUID is at no other port now.
 * If the HCA is seen with another cable, fab_port.missing is set. Otherwise the HCA is missing:
 * fab_node.missing is set, fab_port.missing is not, and the HCA is kept with all of its ports if one of its
 * cables is kept, and
 * - none of its port GUIDs is another HCA's now;
 * - no HCA of a new GUID replaced it: at the same switch port, or anywhere under the same host's name. Of
 *   several missing HCAs of one host, each new HCA ends the retention of one: the one with its own
 *   description, else the one with the lowest GUID.
 * A switch that is not seen is kept if a port is kept on it, with its free cables to switches that are
 * present or kept, and to kept ports. If kept switches would not reach a seen node, the missing switches
 * between are kept as well: a whole pod stays in its plane. Kept switches that still cannot reach a seen node
 * are dropped, with everything cabled to them.
 *
 * A new switch replaces a missing one if both hold: of the ports around the missing switch that lead anywhere
 * now, more than half lead to the new one; and of the new one's cables whose other ends existed before, more
 * than half are in ports that led to the missing one. Everything kept on the missing switch is kept on the
 * new one, at ports of the same numbers; the missing one is removed.
 *
 * A port without a place (another cable is at its switch port, the new switch has fewer ports, or its switch
 * reaches no seen node) is kept at the former place of the HCA that has its place now, if that is free.
 * Otherwise it is kept at an unlisted port of its switch (or of the switch to which more than half of its
 * switch's cables lead now), with the same number or the first one; otherwise it is lost. There was never a
 * cable at such a place.
 *
 * Both inputs are finished and named (before may have its old names; *out must be named again); *out is
 * initialised here and finished. PMIXFAB_ERR_INVAL, _NOMEM; _RANGE: more than an inventory can hold.
 */
int fab_retain(const struct fab_inventory *before, const struct fab_inventory *swept, fab_retain_fn may,
               void *cbdata, struct fab_inventory *out, struct fab_err *err);

/*
 * Return whether anything could be kept: a port of an HCA of `before` had a cable to a switch and has none
 * now.
 */
bool fab_inventory_lacks_port(const struct fab_inventory *before, const struct fab_inventory *swept);

/* The reverse: copy without missing things, as a sweep would see the fabric. */
int fab_inventory_seen(const struct fab_inventory *inv, struct fab_inventory *out, struct fab_err *err);

/* Return whether this cable (given by either port) is to be removed. */
typedef bool (*fab_cut_fn)(const struct fab_inventory *inv, uint32_t port, void *cbdata);

/*
 * Copy the inventory without the cables for which cut() returns true at one end, as if they were pulled: a
 * switch no longer lists such a port, an HCA's port is DOWN, and an HCA without another cable is removed.
 * Nodes that become unreachable are removed, too: of a divided set of switches the part with most HCAs
 * remains. *out is initialised here and finished.
 */
int fab_inventory_cut(const struct fab_inventory *inv, fab_cut_fn cut, void *cbdata,
                      struct fab_inventory *out, struct fab_err *err);

/* Return whether it contains anything missing. */
bool fab_inventory_has_missing(const struct fab_inventory *inv);

#endif
