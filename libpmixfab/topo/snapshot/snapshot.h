/*
 * snapshot.h - one plane, computed, as one flat run of bytes that can be mapped and used as it is. The room
 * snapshot reads, checks and stamps such bytes; how they are computed is above it.
 *
 * Immutable, position-independent, checksummed (XXH3), little-endian; a version and a size in its head. The
 * content (everything but generation, time and checksums) has a hash of its own: two snapshots with equal
 * content hashes tell their readers the same.
 *
 * A file is checked when it is mapped and believed from then on. That holds because nobody writes into a
 * published file: a publisher writes a new one beside it and renames that over the old one, whose readers
 * keep the old pages. A file that is cut off or overwritten in place takes its readers down (SIGBUS) or lies
 * to them.
 *
 * A device is UP while its port is ACTIVE, DOWN in every other known state (a port that is INIT or ARMED
 * carries no traffic), UNKNOWN where the state is. LIDs are not in a snapshot.
 */
#ifndef FAB_TOPO_SNAPSHOT_SNAPSHOT_H
#define FAB_TOPO_SNAPSHOT_SNAPSHOT_H

#include "topo/base/error.h"
#include "topo/snapshot/cost_view.h"

/* Where a host's fabricd publishes, and the file that is there while what it serves is stale. */
#define FAB_DEFAULT_RUNDIR "/run/fabricd"
#define FAB_RUNDIR_STALE   "stale"

/* Content hash of a built or opened snapshot's bytes (trusted: no checks). */
uint64_t fab_snapshot_content(const void *bytes);

/* Write generation and time into a built snapshot and renew its checksum; the content hash stays. */
void fab_snapshot_stamp(void *bytes, uint64_t generation, int64_t published);

/* Give a built snapshot another plane's number; the content hash becomes another one. */
void fab_snapshot_number(void *bytes, uint32_t number);

/* The generation that the first FAB_SNAPSHOT_HEAD bytes (at a multiple of 8) tell; 0: they are no whole head.
 */
#define FAB_SNAPSHOT_HEAD 64
uint64_t fab_snapshot_generation(const void *head);

/*
 * Check everything: head, size, checksum, each section's bounds and alignment, each index and string. What
 * passes can be read without further checks. PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER, _CORRUPT;
 * _INVAL for NULL and for an address that is no multiple of 8.
 */
int fab_snapshot_check(const void *bytes, size_t size, struct fab_err *err);

/* A public handle on bytes that the caller keeps for longer than the handle. They are checked here as above.
 * pmixfab_close() does not free them. */
int fab_snapshot_borrow(const void *bytes, size_t size, struct pmixfab **out, struct fab_err *err);

#endif
