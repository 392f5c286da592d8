/* snapshot.h - snapshots of generated fabrics, with all parts that are computed for them. */
#ifndef FAB_TEST_FABRICS_SNAPSHOT_H
#define FAB_TEST_FABRICS_SNAPSHOT_H

#include "topo/compile/compile.h"
#include "topo/snapshot/snapshot.h"

/* Of a plane; groups are leaves. details may be NULL. free(*bytes). */
int fabric_plane_snapshot(const struct fab_plane *plane, const struct fab_details *details,
                          const struct fab_snapshot_meta *meta, void **bytes, size_t *size);

/* Of the first plane of a fabric, which is given by text (fabric_parse()). */
int fabric_snapshot(const char *kind, const struct fab_snapshot_meta *meta, void **bytes, size_t *size);

#endif
