/*
 * disjoint.h - disjoint sets of numbers: parent[x] leads to the lowest number of the set, which represents
 * it.
 */
#ifndef FAB_TOPO_BASE_DISJOINT_H
#define FAB_TOPO_BASE_DISJOINT_H

#include <stdint.h>

/* Return the lowest number of the set that contains x. */
static inline uint32_t fab_set_root(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x)
        x = parent[x] = parent[parent[x]];
    return x;
}

static inline void fab_set_join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = fab_set_root(parent, a);
    b = fab_set_root(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

#endif
