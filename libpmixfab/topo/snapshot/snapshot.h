/*
 * snapshot.h - one computed plane as a flat run of bytes that can be mapped and used directly. The room
 * snapshot reads, checks and stamps such bytes; the rooms above compute them.
 *
 * A snapshot is immutable, position-independent, checksummed (XXH3) and little-endian. Its head has a version
 * and a size. The content (everything except generation, time and checksums) has a hash of its own. Snapshots
 * with equal content hashes have equal contents.
 *
 * A file is checked when it is mapped and trusted from then on. This is safe because published files are
 * never modified. A publisher writes a new file and renames it over the old file. Readers of the old file
 * keep the old pages. Truncating a file or writing into it crashes its readers (SIGBUS) or gives them wrong
 * data.
 *
 * A device is UP while its port is ACTIVE, and UNKNOWN if the state of the port is unknown. In every other
 * state it is DOWN, because a port that is INIT or ARMED carries no traffic. LIDs are not in a snapshot.
 */
#ifndef FAB_TOPO_SNAPSHOT_SNAPSHOT_H
#define FAB_TOPO_SNAPSHOT_SNAPSHOT_H

#include "topo/base/error.h"
#include "topo/snapshot/cost_view.h"

/* The default run directory, and the file that exists in it while its snapshots are stale. */
#define FAB_DEFAULT_RUNDIR "/run/fabricd"
#define FAB_RUNDIR_STALE   "stale"

/* Return the content hash that is stored in a built or opened snapshot. It is not checked against the bytes.
 */
uint64_t fab_snapshot_content(const void *bytes);

/* Write generation and time into a built snapshot and renew its checksum; the content hash stays. */
void fab_snapshot_stamp(void *bytes, uint64_t generation, int64_t published);

/* Give a built snapshot another plane's number, which changes the content hash. */
void fab_snapshot_number(void *bytes, uint32_t number);

/*
 * Return the generation in the first FAB_SNAPSHOT_HEAD bytes (at a multiple of 8). Return 0 if they are not a
 * valid head.
 */
#define FAB_SNAPSHOT_HEAD 64
uint64_t fab_snapshot_generation(const void *head);

/*
 * Check everything: head, size, checksum, each section's bounds and alignment, each index and string. After
 * that, the bytes can be read without further checks. PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER,
 * _CORRUPT; _INVAL for NULL and for an address that is not a multiple of 8.
 */
int fab_snapshot_check(const void *bytes, size_t size, struct fab_err *err);

/*
 * Make a public handle for bytes that the caller keeps for longer than the handle. They are checked as above.
 * pmixfab_close() does not free them.
 */
int fab_snapshot_borrow(const void *bytes, size_t size, struct pmixfab **out, struct fab_err *err);

#endif
