/* oracle.h - is what is served right? By plain means, some rows of each matrix at a time. */
#ifndef FAB_TEST_SIM_ORACLE_H
#define FAB_TEST_SIM_ORACLE_H

#include "topo/model/inventory.h"

/* The costs from so many random HCAs of the fabric, as it was swept, to all others. False: why says what
 * differs. */
bool oracle_costs(const struct fab_inventory *inv, unsigned rows, char *why, size_t size);
bool oracle_order(char *why, size_t size);

#endif
