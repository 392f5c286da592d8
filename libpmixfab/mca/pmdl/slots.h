/*
 * slots.h - fill empty functions of this process's host: fabric requests and queries of its clients, and of
 * its own, are answered from the mapped snapshots; changes are sent to the clients as events.
 */
#ifndef FAB_MCA_PMDL_SLOTS_H
#define FAB_MCA_PMDL_SLOTS_H

#include <stdbool.h>

#include "pmix/rundir/snapshots.h"

/*
 * Put our functions in, if the host has no fabric function: a host with one answers for the fabric itself.
 * fabric: there. query: for keys of a fabric; all other and unknown keys go to the host's own function, or
 * are answered as without ours. hosts_jobs: fill a scheduler's fabric slot, too. The functions stay until
 * they are removed.
 */
void pmdl_slots_take(struct rundir_snapshots *snapshots, bool fabric, bool query, bool hosts_jobs);

/* Restore the host's functions. */
void pmdl_slots_give_back(void);

/* Return whether the host's fabric function is ours. */
bool pmdl_slots_have_fabric(void);

#endif
