/* best_fit.h - a job's hosts as schedulers choose them in a tree of switches: the plain way that placements
 * are held against. */
#ifndef FAB_TEST_BEST_FIT_H
#define FAB_TEST_BEST_FIT_H

#include "pmixfab.h"

/*
 * n of the free hosts of a tree (kinds fat-tree-2 and fat-tree-3) into hosts. The pod with fewest free hosts
 * of those that have enough, or all pods; there the leaf with fewest of those that have enough for the rest,
 * or else the leaf with most, and so on. PMIXFAB_ERR_NOMEM; PMIXFAB_ERR_NOTFOUND: there are not so many.
 */
int fabric_best_fit(const struct pmixfab *fab, const uint32_t *from, uint32_t n_from, uint32_t n,
                    uint32_t *hosts);

#endif
