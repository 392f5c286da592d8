/* own.h - the fabric's keys for PMIx_Get in a scheduler's own process. */
#ifndef FAB_MCA_PMDL_OWN_H
#define FAB_MCA_PMDL_OWN_H

#include "pmix/rundir/snapshots.h"

/*
 * Put the default plane into the information of this process's own namespace: at once, on the library's
 * thread or in its initialization, ...
 */
void pmdl_own_put(struct rundir_snapshots *snapshots);

/* ... or soon, on the library's thread. Any thread. */
void pmdl_own_tell(struct rundir_snapshots *snapshots);

#endif
