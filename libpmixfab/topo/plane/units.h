/*
 * units.h - rail-optimised fabrics: leaves that serve the same hosts, and their rails.
 *
 * If each host has a device on several leaves, those leaves form a unit (NVIDIA's scalable unit). Each leaf
 * carries one rail of the unit. A rail is the set of leaves, one of each unit, to which the devices at the
 * same place in their hosts are attached. docs/design/geometry.md has the rules.
 */
#ifndef FAB_TOPO_PLANE_UNITS_H
#define FAB_TOPO_PLANE_UNITS_H

#include "topo/plane/graph.h"

/* A device that is cabled to another leaf than the devices of its name in its unit. */
struct fab_stray {
    uint32_t device;
    uint32_t sw;   /* the leaf of those; FAB_NONE: no common one */
    uint32_t unit; /* the home unit of its host */
};

struct fab_units {
    uint32_t n;     /* units, in the natural order of their leaves' names */
    uint32_t *unit; /* per switch; FAB_NONE: in none */
    uint32_t *rail; /* per switch; FAB_NONE: of none */
    uint32_t
        *label; /* per unit: its number, which stays (fab_geometry_settle); without history the own index */
    uint32_t n_strays;
    struct fab_stray *strays; /* in order of devices */
};

/*
 * A pure function without history: units and rails are numbered from 0. A plane without units uses memory for
 * the two arrays only. PMIXFAB_ERR_NOMEM: *out is empty.
 */
int fab_units_find(const struct fab_plane *plane, struct fab_units *out);
void fab_units_destroy(struct fab_units *units);

#endif
