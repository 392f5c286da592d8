/*
 * plane_memory.h - remember the plane that each requestor was given.
 *
 * The PMIx library leaves 0 in a tool's pmix_fabric_t whatever the answer contains, and an update sends this
 * 0. No plane has that number. A requestor that was given one plane means that one. With several planes it is
 * unknown which object is updated, and costs of another plane would be wrong without notice.
 *
 * No locks: on the PMIx library's thread only, or one caller at a time.
 */
#ifndef FAB_PMIX_ANSWERS_PLANE_MEMORY_H
#define FAB_PMIX_ANSWERS_PLANE_MEMORY_H

#include <pmix_common.h>
#include <stdint.h>

#define PLANE_MEMORY_MAX     16384 /* the latest requestors are remembered; a forgotten one counts as new */
#define PLANE_MEMORY_NOTHING UINT32_MAX /* it was given no plane */
#define PLANE_MEMORY_SEVERAL 0          /* it was given more than one */

/* A requestor by a hash of its name. */
struct plane_memory_key {
    uint64_t high, low;
};

/* Set a function that is called for each requestor that is new, or now has several planes. NULL: none. */
void plane_memory_on_note(void (*fn)(const struct plane_memory_key *who, uint32_t meant));

/* Restore a recorded requestor: with this index, or PLANE_MEMORY_SEVERAL. */
void plane_memory_set(const struct plane_memory_key *who, uint32_t meant);

/* Record that this requestor was given the plane with this index. */
void plane_memory_note(const pmix_proc_t *requestor, uint32_t index);

/*
 * Return the plane that the requestor means by index 0. If the requestor was ever given one plane only, this
 * is the index of that plane. Otherwise return PLANE_MEMORY_NOTHING or PLANE_MEMORY_SEVERAL.
 */
uint32_t plane_memory_meant_by_zero(const pmix_proc_t *requestor);

#endif
