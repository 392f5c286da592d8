/*
 * pnet_inventory.h - the two calls of PMIx about inventory: what this node has, and what nodes have.
 */
#ifndef FAB_MCA_PNET_PNET_INVENTORY_H
#define FAB_MCA_PNET_PNET_INVENTORY_H

#include <src/include/pmix_config.h>

#include <src/class/pmix_list.h>
#include <src/include/pmix_globals.h>

#include "mca/pnet/inventory_child.h"

#define PNET_INVENTORY_SECONDS 10

/* The component's parameters; the library's memory. */
extern struct pnet_inventory_params pnet_inventory_params;

/*
 * In every server: nodes collect, and whoever gets what they collected delivers.
 * Both run on the library's thread. Anything but PMIX_SUCCESS would be the caller's status instead of what
 * other components have to say, so there is nothing else: why there is no inventory is in the log.
 */
pmix_status_t pnet_inventory_collect(pmix_info_t directives[], size_t ndirs, pmix_list_t *inventory);
pmix_status_t pnet_inventory_deliver(pmix_info_t info[], size_t ninfo, pmix_info_t directives[],
                                     size_t ndirs);

/* The end: what fabricd has not taken is dropped. */
void pnet_inventory_stop(void);

#endif
