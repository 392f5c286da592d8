/* snapshot_build.h - between the files that write a snapshot. */
#ifndef FAB_TOPO_SNAPSHOT_BUILD_H
#define FAB_TOPO_SNAPSHOT_BUILD_H

#include "topo/join.h"
#include "topo/snapshot.h"
#include "topo/snapshot_format.h"
#include "topo/snapshot_strings.h"

struct snap_build {
    const struct fab_plane *plane;
    const struct fab_costs *costs;
    const struct fab_geometry *geometry;
    const struct fab_groups *groups;
    const struct fab_details *details; /* NULL: nothing is known */
    struct snap_meta meta;
    struct snap_entry table[SNAP_SECTIONS];
    char *bytes;                 /* everything but the strings */
    struct snap_strings strings; /* they come last, so they may grow while the rest is written */
    uint32_t *end_of_port;       /* per port of the inventory: what a cable end there is, FAB_NONE nothing */
    uint32_t *switch_of;         /* per node of the inventory, FAB_NONE */
};

static inline void *fab_snapshot_section(struct snap_build *b, enum snap_section which)
{
    return b->bytes + b->table[which].offset;
}

/* How much meta has to announce of b->details, and writing it once there is room. */
void fab_snapshot_count_facts(struct snap_build *b);
void fab_snapshot_write_facts(struct snap_build *b);

#endif
