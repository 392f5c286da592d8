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
 * A port of an HCA is kept if all of these hold:
 * - The port had a cable to a switch and has none now.
 * - may() returns true.
 * - The switch or its replacement is seen, or the switch is missing, too.
 * - No other port has the port's GUID now.
 *
 * If the HCA is seen with another cable, fab_port.missing is set.
 *
 * Otherwise the HCA is missing: fab_node.missing is set, and fab_port.missing is not. The HCA is kept with
 * all of its ports if all of these hold:
 * - One of its cables is kept.
 * - No other HCA has one of its port GUIDs now.
 * - No HCA with a new GUID has replaced it, at the same switch port or anywhere under the same host name.
 *
 * A new HCA ends the retention of the HCA that had its switch port. If no HCA had the port, the new HCA ends
 * the retention of one missing HCA of its host: the HCA with the same description, else the HCA with the
 * lowest GUID.
 *
 * A switch that is not seen is kept if a port is kept on it. Its free cables to present or kept switches, and
 * to kept ports, are kept with it. If kept switches would not reach a seen node, the missing switches between
 * them are kept as well. So a whole pod stays in its plane. Kept switches that still cannot reach a seen node
 * are dropped, with everything cabled to them.
 *
 * A new switch replaces a missing one if both of these hold:
 * - Take the ports around the missing switch that lead anywhere now. More than half of them lead to the new
 *   switch.
 * - Take the cables of the new switch whose other ends existed before. More than half of them are in ports
 *   that led to the missing switch.
 *
 * Everything kept on the missing switch is kept on the new switch, at ports of the same numbers. The missing
 * switch is removed.
 *
 * A port can lose its place. Then another cable is at its switch port, the new switch has fewer ports, or its
 * switch reaches no seen node. Another HCA may have taken the place. Then the port is kept at the former
 * place of that HCA, if that place is free. Otherwise the port is kept at an unlisted port of its switch,
 * with the same number or the lowest free number. If its switch is gone, the switch to which more than half
 * of the cables lead now is used instead. If no port is free, the port is lost. There was never a cable at
 * such a place.
 *
 * Both inputs are finished and named. `before` may have its old names. *out is initialised here and finished,
 * and must be named again. PMIXFAB_ERR_INVAL, _NOMEM; _RANGE: more than an inventory can hold.
 */
int fab_retain(const struct fab_inventory *before, const struct fab_inventory *swept, fab_retain_fn may,
               void *cbdata, struct fab_inventory *out, struct fab_err *err);

/*
 * Return true if a port of an HCA in `before` had a cable to a switch and has none now.
 */
bool fab_inventory_lacks_port(const struct fab_inventory *before, const struct fab_inventory *swept);

/* The reverse: copy without missing things, as a sweep would see the fabric. */
int fab_inventory_seen(const struct fab_inventory *inv, struct fab_inventory *out, struct fab_err *err);

/* Return whether this cable (given by either port) is to be removed. */
typedef bool (*fab_cut_fn)(const struct fab_inventory *inv, uint32_t port, void *cbdata);

/*
 * Copy the inventory without the cables for which cut() returns true at one end, as if they were pulled:
 * - A switch no longer lists such a port.
 * - The port of an HCA is DOWN. An HCA without another cable is removed.
 * - Nodes that become unreachable are removed. If the cut divides the switches, the part with most HCAs
 *   remains.
 *
 * *out is initialised here and finished.
 */
int fab_inventory_cut(const struct fab_inventory *inv, fab_cut_fn cut, void *cbdata,
                      struct fab_inventory *out, struct fab_err *err);

/* Return true if a node or port of the inventory is missing. */
bool fab_inventory_has_missing(const struct fab_inventory *inv);

#endif
