/*
 * compile.h - one computed plane becomes a snapshot. The room compile writes what the room snapshot reads,
 * with the strings of the plane's last snapshot where they stood.
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
    const struct pmixfab *before;    /* the plane's last snapshot, which is built from; NULL: from nothing */
};

/*
 * Build into memory of its own; free(*bytes). Everything but the places of strings is the same whatever was
 * before: those that stood in `before` stand where they stood, so that a small change is a change of few
 * bytes, and what says the same as `before` has the same bytes. details: what the hosts say of the
 * inventory's ports; NULL: nothing is known beside what the subnet shows. PMIXFAB_ERR_INVAL for another null
 * argument, a name that is none, parts that do not belong together.
 */
int fab_snapshot_build(const struct fab_plane *plane, const struct fab_costs *costs,
                       const struct fab_geometry *geometry, const struct fab_groups *groups,
                       const struct fab_details *details, const struct fab_snapshot_meta *meta, void **bytes,
                       size_t *size);

#endif
