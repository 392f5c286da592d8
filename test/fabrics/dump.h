/*
 * dump.h - an inventory as lines, for comparing and for expected output: a line a subnet, a node, a port.
 */
#ifndef FAB_TEST_DUMP_H
#define FAB_TEST_DUMP_H

#include <stdio.h>

#include "topo/model/inventory.h"

/* inv must be finished. What it says, all of it, lines aside; equal inventories print equal text. */
void fabric_dump(const struct fab_inventory *inv, FILE *out);

#endif
