/*
 * plane_memory.h - which plane each requestor was given.
 *
 * The stock library leaves 0 in a tool's pmix_fabric_t whatever the answer said, and an update asks for that.
 * No plane has that number. A requestor that was given one plane means that one. Of one that was given
 * several nobody knows which object it updates: costs of another plane would be wrong without anybody
 * noticing.
 *
 * Not locked: on the PMIx library's thread only, or one caller at a time.
 */
#ifndef FAB_PMIX_ANSWERS_PLANE_MEMORY_H
#define FAB_PMIX_ANSWERS_PLANE_MEMORY_H

#include <pmix_common.h>
#include <stdint.h>

#define PLANE_MEMORY_MAX     16384 /* the latest requestors are remembered; one forgotten was given nothing */
#define PLANE_MEMORY_NOTHING UINT32_MAX /* it was given no plane */
#define PLANE_MEMORY_SEVERAL 0          /* it was given more than one */

/* A requestor by a hash of its name. */
struct plane_memory_key {
    uint64_t high, low;
};

/* Told of each that is noted and was not yet, or is several now. NULL: nobody is. */
void plane_memory_on_note(void (*fn)(const struct plane_memory_key *who, uint32_t meant));

/* What was noted elsewhere: this index, PLANE_MEMORY_SEVERAL. */
void plane_memory_set(const struct plane_memory_key *who, uint32_t meant);

/* Remember that this requestor was given the plane of this index. */
void plane_memory_note(const pmix_proc_t *requestor, uint32_t index);

/*
 * Which plane the requestor means by index 0: the index of the only one that it was ever given; or
 * PLANE_MEMORY_NOTHING, PLANE_MEMORY_SEVERAL.
 */
uint32_t plane_memory_meant_by_zero(const pmix_proc_t *requestor);

#endif
