/*
 * slots.h - fill empty function slots in the server module of this process. The functions answer fabric
 * requests and queries of the clients, and of the process itself, from the mapped snapshots. They send
 * changes to the clients as events.
 */
#ifndef FAB_MCA_PMDL_SLOTS_H
#define FAB_MCA_PMDL_SLOTS_H

#include <stdbool.h>

#include "pmix/rundir/snapshots.h"

/*
 * Put our functions in if the host program has no fabric function. A host program with such a function
 * answers for the fabric itself.
 * - The fabric function is put in as it is.
 * - The query function answers keys of a fabric. All other keys and unknown keys go to the host program's own
 *   function, or are answered as without ours.
 *
 * With hosts_jobs, a scheduler's fabric slot is filled, too. The functions stay until they are removed.
 */
void pmdl_slots_take(struct rundir_snapshots *snapshots, bool fabric, bool query, bool hosts_jobs);

/* Restore the host's functions. */
void pmdl_slots_give_back(void);

/* Return whether the host's fabric function is ours. */
bool pmdl_slots_have_fabric(void);

#endif
