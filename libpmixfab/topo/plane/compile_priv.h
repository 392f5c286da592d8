/* compile_priv.h - between the files that write a snapshot. */
#ifndef FAB_TOPO_PLANE_COMPILE_PRIV_H
#define FAB_TOPO_PLANE_COMPILE_PRIV_H

#include "topo/join/join.h"
#include "topo/plane/compile.h"
#include "topo/snapshot/format.h"
#include "topo/snapshot/snapshot.h"
#include "topo/snapshot/string_table.h"

struct snap_build {
    const struct fab_plane *plane;
    const struct fab_costs *costs;
    const struct fab_geometry *geometry;
    const struct fab_groups *groups;
    const struct fab_details *details; /* NULL: nothing is known */
    const struct pmixfab *before; /* the plane's last snapshot, NULL: none, or its strings are not kept */
    uint32_t *was;                /* each device's index in there, FAB_NONE; NULL with it */
    struct snap_meta meta;
    struct snap_entry table[SNAP_SECTIONS];
    char *bytes;                 /* everything but the strings */
    struct snap_strings strings; /* they come last, so they may grow while the rest is written */
    uint32_t *end_of_port;       /* per port of the inventory: what a cable end there is, FAB_NONE nothing */
};

static inline void *fab_snapshot_section(struct snap_build *b, enum snap_section which)
{
    return b->bytes + b->table[which].offset;
}

/* Find `was`; memory alone can be missing. */
int fab_snapshot_find_reusable(struct snap_build *b);
/* Where the name of a device, of its host, of a switch stood; 0: nobody knows. *at: where to go on looking.
 */
uint32_t fab_snapshot_reuse_device(const struct snap_build *b, uint32_t device);
uint32_t fab_snapshot_reuse_host(const struct snap_build *b, uint32_t device);
uint32_t fab_snapshot_reuse_switch(const struct snap_build *b, uint64_t guid, uint32_t *at);
/* The facts of a device there; *n of them. */
const struct snap_fact *fab_snapshot_reuse_facts(const struct snap_build *b, uint32_t device, uint32_t *n);

/* Names of groups, units and rails; hosts and switches are written. */
void fab_snapshot_write_groups(struct snap_build *b);

/* How much meta has to announce of b->details, and writing it once there is room. */
void fab_snapshot_count_facts(struct snap_build *b);
void fab_snapshot_write_facts(struct snap_build *b);

#endif
