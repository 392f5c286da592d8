/*
 * slots.h - the functions of this process's host that it has left empty: fabric requests and queries of its
 * clients, and of its own, are answered from the mapped snapshots; changes go to the clients as events.
 */
#ifndef FAB_MCA_PMDL_SLOTS_H
#define FAB_MCA_PMDL_SLOTS_H

#include <stdbool.h>

#include "pmix/rundir/snapshots.h"

/*
 * Put ours in, where the host has no fabric function: a host that has one answers for the fabric itself.
 * fabric: there. query: for keys of a fabric; all others, and those that we do not know, go to the host's own
 * function, or get what they would have got. hosts_jobs: a scheduler's fabric slot, too. What was put in
 * stays, until it is given back.
 */
void pmdl_slots_take(struct rundir_snapshots *snapshots, bool fabric, bool query, bool hosts_jobs);

/* As they were. */
void pmdl_slots_give_back(void);

/* Is the host's fabric function ours? */
bool pmdl_slots_have_fabric(void);

#endif
