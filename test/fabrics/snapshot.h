/* snapshot.h - snapshots of generated fabrics, with all parts that are computed for them. */
#ifndef FAB_TEST_FABRICS_SNAPSHOT_H
#define FAB_TEST_FABRICS_SNAPSHOT_H

#include <stdbool.h>

#include "topo/plane/compile.h"
#include "topo/snapshot/snapshot.h"

/* Of a plane; groups are leaves. details may be NULL. free(*bytes). */
int fabric_plane_snapshot(const struct fab_plane *plane, const struct fab_details *details,
                          const struct fab_snapshot_meta *meta, void **bytes, size_t *size);

/* Of the first plane of a fabric, which is given by text (fabric_parse()). */
int fabric_snapshot(const char *kind, const struct fab_snapshot_meta *meta, void **bytes, size_t *size);

/* The same in a file DIR/NAME.snap, as the daemon writes it into its run directory. name NULL: "ib0", the
 * default plane, index 1, generation 3; another plane's GUIDs are shifted by its index. facts: with what
 * hosts would say of their devices. */
int fabric_snapshot_file(const char *kind, bool facts, const char *dir, const char *name, uint32_t index,
                         uint64_t generation, struct fab_err *err);

#endif
