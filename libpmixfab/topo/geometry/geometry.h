/*
 * geometry.h - what kind of network a plane is, and where each device stands in it.
 *
 * Recognised from the switch graph alone, never from names. Every cable must be explained: nothing
 * below is claimed where a cable or a device stands where that kind has none.
 *   unattached: a plane of ports that no cable joins (topo/graph/graph.h); nothing is recognised here.
 *   single-switch: at most one switch.
 *   fat-tree-2: devices on leaves only, each cable from a leaf to a spine.
 *   fat-tree-3: the same with a core above; pods are what stays connected without the core, at least
 *     two. A single pod with a core above it is other. Trees may lack cables and spines, so that
 *     pulling one moves nobody's coordinates. A leaf whose devices are all off is still a leaf where it
 *     is cabled to more than half of its pod's spines (so the core of a one-pod tree counts as leaves
 *     where it is cabled like them).
 *   dragonfly: at least two groups of at least three routers (groups of three: at least four of them),
 *     cabled all to all inside, with global cables spread evenly over all pairs of groups, from one
 *     cable a pair up to a quarter of the pairs of their routers. A group may lack one cable for every
 *     four routers (none in a group of three), the whole one in 16 of the global ones. Not recognised:
 *     groups of one or two, groups that are not cabled all to all (dragonfly+). A single group cabled
 *     all to all is other. Where the routers at one place of each group are cabled all to all as well
 *     (a two-dimensional HyperX), the larger ones are the groups, and with equal sides it is other.
 *   mesh, torus: two or three dimensions of at least 2, every cable in place and none beside; of a
 *     torus every dimension longer than 2 closes. One pulled cable makes it other. Chains and rings are
 *     other, and so is what closes in some of its longer dimensions only. A ring of 4 is a square, so 2
 *     x 2 and 2 x 2 x 2 are meshes; beyond that as many dimensions of 4 as possible are seen (2 x 2 x 2
 *     x 2 is the torus 4 x 4). A mesh with devices on every second switch only, all of one colour of a
 *     chessboard, is a fat tree.
 *
 * Logical coordinates, unique per device in a plane:
 *   trees: pod, leaf within the pod, switch port less one. Dragonfly: group, router within the group,
 *     switch port less one. Single switch and other: 0, switch among those with devices, switch port
 *     less one. Switches are numbered by natural order of their names, then GUID; pods and groups by
 *     their first leaf or router.
 *   meshes and tori: position along each dimension, and one number more (the switch port less one) when
 *     any switch carries more than one device. The longest dimension comes first, equal ones by GUID;
 *     the origin is the corner (of a torus: the switch) with the lowest GUID, and coordinates grow
 *     towards its lowest neighbour.
 *
 * Physical: (chassis, switch within the chassis, port as printed on it), always three. Leaves, routers,
 * switches of meshes and tori, and of other planes those with devices, are numbered: in a chassis by
 * slot, those without (chassis 0) by GUID.
 *
 * That is the numbering from nothing, as a new store has it. Once a plane has been published its numbers stay
 * (fab_geometry_settle()), so they depend on what was there before. A pod, group or chassis has the number of
 * the one with which it shares the most switches, a switch keeps its number while it stays in its pod. What
 * is new has the lowest free number, in the order from nothing; numbers that nobody has are holes. A mesh or
 * torus keeps the order of its dimensions, its origin and its directions, as most of its switches say, and
 * the number for the port once it has one.
 *
 * A switch is known by its GUID, or by what it carries: one that has most of the devices of one that is gone
 * has that one's number. Only numbers of switches with devices are remembered. So a device that stays on its
 * port keeps its coordinates, unless its pod was cut apart or joined to a larger one, or a mesh or torus has
 * grown anywhere but at its far end. Logical numbers begin anew when the plane becomes one of another kind,
 * and again when it returns; physical ones do not depend on the kind.
 *
 * In both views a device without a switch stands on a switch of its own, and its own port counts.
 * shape[d] is the largest value in dimension d plus one, or the length of that dimension of a mesh or
 * torus; of an empty plane 0.
 */
#ifndef FAB_TOPO_GEOMETRY_GEOMETRY_H
#define FAB_TOPO_GEOMETRY_GEOMETRY_H

#include "topo/geometry/kind.h"
#include "topo/graph/graph.h"

struct fab_geometry {
    enum fab_kind kind;
    uint32_t dims, shape[PMIXFAB_MAX_DIMS];
    uint32_t physical_dims, physical_shape[PMIXFAB_MAX_DIMS];
    uint32_t *logical;  /* n_devices x dims */
    uint32_t *physical; /* n_devices x physical_dims */
    uint8_t *level;     /* per switch: cables to the nearest switch with devices; 0 for those themselves */
    uint32_t *pod;      /* per switch: pod or dragonfly group; FAB_NONE: a tree's core, in no pod */
};

/* With the numbers of the plane as it was; NULL: from nothing. */
int fab_geometry_settle(const struct fab_plane *plane, const struct pmixfab *before,
                        struct fab_geometry *out);
void fab_geometry_destroy(struct fab_geometry *geometry);

#endif
