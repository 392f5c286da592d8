/*
 * retain.h - what a sweep does not see any more keeps its place for a while: missing, not lost.
 *
 * A host that restarts, or whose leaf switch does, or one of whose cables is pulled, comes back as what it
 * was. Would it leave the inventory meanwhile, every index and coordinate behind it would move twice. So the
 * ports of its HCAs stay, and their cables, with both ends DOWN, where nothing else is cabled to these switch
 * ports now. Each port for itself: an HCA is missing when it has no other.
 */
#ifndef FAB_TOPO_MODEL_RETAIN_H
#define FAB_TOPO_MODEL_RETAIN_H

#include "topo/model/inventory.h"

/* May this port (of an HCA of `before`, with a cable that is not seen) keep its place? */
typedef bool (*fab_retain_fn)(const struct fab_inventory *before, uint32_t port, void *cbdata);

/*
 * What `swept` sees, and what of `before` keeps its place. A port of an HCA is kept when it had a cable to a
 * switch and has none now, may() agrees, and
 * - its switch is seen, or another one in its place, or it is missing, too;
 * - its port GUID is at no other port now.
 * Where the HCA is seen with another cable, that is all, and fab_port.missing is set. Else the HCA is
 * missing, fab_node.missing is set and fab_port.missing is not, and it is kept, with all of its ports, when
 * one of its cables is, and
 * - none of its port GUIDs is another HCA's now;
 * - no HCA of a new GUID took its place: at the same switch port, or anywhere under the same host's name (of
 *   several of one host that are missing, each new HCA ends the keeping of one: that of its own description,
 *   else the one with the lowest GUID).
 * A switch that is not seen is kept when a port is kept on it, with its cables to switches that are there or
 * kept and have no other, and to kept ports. Kept switches that would reach nothing that is seen bring the
 * missing switches between: a whole pod stays in its plane. Those that cannot reach it even so are not kept,
 * nor is what hangs on them.
 *
 * A new switch is in the place of a missing one when of the ports around that one which lead anywhere now
 * more than half lead to the new one, and of the new one's cables whose other ends were there before more
 * than half are on ports that led to the missing one. What was kept on that is kept on the new one, at ports
 * of the same numbers; the missing one is no more.
 *
 * A port that has no place (another cable is at its switch port, the new switch has fewer ports, its switch
 * reaches nothing any more) is kept where the HCA was that has its place now, if that is free; else at a port
 * of its switch that is not listed (of the switch that more than half of its switch's cables lead to now),
 * the same number or the first one; else it is lost. No cable was ever there.
 *
 * both finished and named (before may be named as it was; *out is to be named anew); *out is initialised
 * here and finished. PMIXFAB_ERR_INVAL, _NOMEM; _RANGE: more than an inventory can hold.
 */
int fab_retain(const struct fab_inventory *before, const struct fab_inventory *swept, fab_retain_fn may,
               void *cbdata, struct fab_inventory *out, struct fab_err *err);

/* Is there anything to keep: a port of an HCA of `before` that had a cable to a switch and has none now? */
bool fab_inventory_lacks_port(const struct fab_inventory *before, const struct fab_inventory *swept);

/* The opposite: without what is missing, as a sweep would see it. */
int fab_inventory_seen(const struct fab_inventory *inv, struct fab_inventory *out, struct fab_err *err);

/* Is this cable (by either port) to be left out? */
typedef bool (*fab_cut_fn)(const struct fab_inventory *inv, uint32_t port, void *cbdata);

/*
 * The inventory without the cables for which cut() says so for one of their ends, as if they were pulled: a
 * switch does not list such a port any more, an HCA's is DOWN, and an HCA without any other cable is not seen
 * at all. Nor is what cannot be reached any more: where switches that were connected fall apart, the part
 * with most HCAs is seen, and the others are not. *out is initialised here and finished.
 */
int fab_inventory_cut(const struct fab_inventory *inv, fab_cut_fn cut, void *cbdata,
                      struct fab_inventory *out, struct fab_err *err);

/* Is anything in it missing? */
bool fab_inventory_has_missing(const struct fab_inventory *inv);

#endif
