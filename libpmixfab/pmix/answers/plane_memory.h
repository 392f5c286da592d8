/*
 * plane_memory.h - which plane each requestor was given.
 *
 * The stock library leaves 0 in a tool's pmix_fabric_t whatever the answer said, and an update asks for that.
 * What a requestor was given before says which plane it means: costs of another one would be wrong without
 * anybody noticing.
 *
 * Not locked: on the PMIx library's thread only, or one caller at a time.
 */
#ifndef FAB_PMIX_ANSWERS_PLANE_MEMORY_H
#define FAB_PMIX_ANSWERS_PLANE_MEMORY_H

#include <pmix_common.h>
#include <stdint.h>

#define PLANE_MEMORY_MAX     16384 /* the latest requestors are remembered; one forgotten was given nothing */
#define PLANE_MEMORY_NOTHING UINT32_MAX /* it was given no plane */

/* Remember that this requestor was given the plane of this index. */
void plane_memory_note(const pmix_proc_t *requestor, uint32_t index);

/*
 * Which plane the requestor means by index 0: plane 0 where it was ever given that; else the one that it was
 * given last; PLANE_MEMORY_NOTHING where there is none.
 */
uint32_t plane_memory_meant_by_zero(const pmix_proc_t *requestor);

#endif
