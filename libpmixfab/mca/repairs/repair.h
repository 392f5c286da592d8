/*
 * repair.h - repairs of the stock library, for a server program that answers fabric requests of others.
 *
 * Not called: a program that has repair_*.c among its own sources, and exports the symbols in it, gets the
 * calls that the library makes to itself, because those go through its table of dynamic symbols. Each repair
 * names the versions that it was read and tried with; with any other it hands the call to the library
 * unchanged.
 *
 * FABRICD_NO_REPAIR=1 in the environment switches them off: the tests show the holes that way.
 */
#ifndef FAB_MCA_REPAIRS_REPAIR_H
#define FAB_MCA_REPAIRS_REPAIR_H

#include <stdbool.h>

/* The running library is of a version that has the holes, and the repairs are not switched off. */
bool fab_repair_wanted(void);

/* The library's own function of that name; NULL where it has none. */
void *fab_repair_original(const char *name);

#endif
