/*
 * handed.h - who was given a plane of index 0.
 *
 * The stock library leaves 0 in a tool's pmix_fabric_t whatever the answer said, and an update asks for it.
 * From one who was given index 0 it means that plane, gone or not; from anybody else it means nothing.
 *
 * Called on the PMIx library's thread only.
 */
#ifndef FABRICD_HANDED_H
#define FABRICD_HANDED_H

#include <pmix_common.h>
#include <stdbool.h>

/* Remember. The latest HANDED_MAX requestors are known; one forgotten is taken for one who was given nothing.
 */
#define HANDED_MAX 16384
void handed_zero(const pmix_proc_t *requestor);
bool handed_was_zero(const pmix_proc_t *requestor);

#endif
