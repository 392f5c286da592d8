/*
 * compile.h - write one computed plane as a snapshot. The room compile writes the snapshots that the room
 * snapshot reads; strings keep their places from the plane's last snapshot.
 */
#ifndef FAB_TOPO_PLANE_COMPILE_H
#define FAB_TOPO_PLANE_COMPILE_H

#include "topo/plane/cost.h"
#include "topo/plane/geometry.h"
#include "topo/plane/groups.h"

struct fab_details; /* topo/model/details.h */

struct fab_snapshot_meta {
    uint64_t generation;
    int64_t published; /* microseconds since 1970, UTC */
    uint32_t index;    /* the plane's number */
    uint32_t is_default;
    const char *name; /* 1 to 63 of A-Z a-z 0-9 . _ - and no leading dot: it is the file's name, too */
    const char *vendor, *identifier; /* NULL: empty */
    const struct pmixfab *before;    /* the plane's last snapshot, which is reused; NULL: none */
};

/*
 * Build into new memory; free *bytes with free(). The result does not depend on `before`, except for the
 * places of strings. Strings of `before` keep their places, so that a small change changes few bytes, and an
 * unchanged plane has the same bytes. details: the facts of the inventory's ports. With NULL, only data of
 * the subnet are known. PMIXFAB_ERR_INVAL: another argument is NULL, a name is invalid, or the parts do not
 * belong together.
 */
int fab_snapshot_build(const struct fab_plane *plane, const struct fab_costs *costs,
                       const struct fab_geometry *geometry, const struct fab_groups *groups,
                       const struct fab_details *details, const struct fab_snapshot_meta *meta, void **bytes,
                       size_t *size);

#endif
