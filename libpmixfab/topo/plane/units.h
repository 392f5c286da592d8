/*
 * units.h - rail-optimised fabrics: which leaves serve the same hosts, and which of them are one rail.
 *
 * Where each host has a device on several leaves, those leaves make a unit (NVIDIA's scalable unit), and each
 * of them carries one rail of it. A rail is the set of those leaves, one a unit, that the devices of the same
 * place in their hosts attach to. docs/design/geometry.md has the rules.
 */
#ifndef FAB_TOPO_PLANE_UNITS_H
#define FAB_TOPO_PLANE_UNITS_H

#include "topo/plane/graph.h"

/* A device that is cabled to another leaf than those of its name in its unit. */
struct fab_stray {
    uint32_t device;
    uint32_t sw;   /* the leaf where those are; FAB_NONE: they have no common one */
    uint32_t unit; /* where its host is at home */
};

struct fab_units {
    uint32_t n;      /* units: by the natural order of their leaves' names */
    uint32_t *unit;  /* per switch; FAB_NONE: in none */
    uint32_t *rail;  /* per switch; FAB_NONE: of none */
    uint32_t *label; /* per unit: its number, which stays (fab_geometry_settle); from nothing its own */
    uint32_t n_strays;
    struct fab_stray *strays; /* in order of devices */
};

/* Pure and from nothing: units and rails are numbered from 0 as if there had never been others. A plane
 * without units has no memory but for the two arrays. PMIXFAB_ERR_NOMEM: *out is empty. */
int fab_units_find(const struct fab_plane *plane, struct fab_units *out);
void fab_units_destroy(struct fab_units *units);

#endif
