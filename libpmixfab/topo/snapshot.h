/*
 * snapshot.h - one plane, computed, as one flat run of bytes that can be mapped and used as it is.
 *
 * Immutable, position-independent, checksummed (XXH3), little-endian; a version and a size in its head. The
 * content (everything but generation, time and checksums) has a hash of its own: two snapshots with equal
 * content hashes tell their readers the same.
 */
#ifndef FAB_TOPO_SNAPSHOT_H
#define FAB_TOPO_SNAPSHOT_H

#include "topo/cost.h"
#include "topo/geometry.h"
#include "topo/groups.h"

struct fab_snapshot_meta {
    uint64_t generation;
    int64_t published; /* microseconds since 1970, UTC */
    uint32_t index;    /* the plane's number */
    uint32_t is_default;
    const char *name, *vendor, *identifier;
};

/* Build into memory of its own; free(*bytes). */
int fab_snapshot_build(const struct fab_plane *plane, const struct fab_costs *costs,
                       const struct fab_geometry *geometry, const struct fab_groups *groups,
                       const struct fab_snapshot_meta *meta, void **bytes, size_t *size);

/* Content hash of a built or opened snapshot's bytes (trusted: no checks). */
uint64_t fab_snapshot_content(const void *bytes);

/* Write generation and time into a built snapshot and renew its checksum; the content hash stays. */
void fab_snapshot_stamp(void *bytes, uint64_t generation, int64_t published);

/*
 * Check everything: head, size, checksum, each section's bounds and alignment, each index and string. What
 * passes can be read without further checks. PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER, _CORRUPT.
 */
int fab_snapshot_check(const void *bytes, size_t size, struct fab_err *err);

/* The cost arrays inside checked bytes. */
void fab_snapshot_costs(const void *bytes, struct fab_cost_view *view);

/* A public handle on checked bytes that the caller keeps for longer than the handle. pmixfab_close() does not
 * free the bytes. */
int fab_snapshot_borrow(const void *bytes, size_t size, struct pmixfab **out, struct fab_err *err);

#endif
