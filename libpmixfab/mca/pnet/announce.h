/*
 * announce.h - fabric events to the handlers of this process, and the moment when the last of them has
 * finished.
 */
#ifndef FAB_MCA_PNET_ANNOUNCE_H
#define FAB_MCA_PNET_ANNOUNCE_H

#include <stdbool.h>

#include "mca/pnet/plane_registry.h"

/*
 * Raise PMIX_FABRIC_UPDATE_PENDING or PMIX_FABRIC_UPDATED and wait for the handlers. Not on the library's
 * thread. A pnet_announce_fn.
 */
void pnet_announce(bool pending, const struct order_change *change, void *cbdata);

/* Announcements may be made from here on; or none is waited for any more. */
void pnet_announce_allow(bool allowed);

#endif
