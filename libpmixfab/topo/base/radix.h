/*
 * radix.h - sorting many elements by a number: indices are moved, the elements stay.
 */
#ifndef FAB_TOPO_BASE_RADIX_H
#define FAB_TOPO_BASE_RADIX_H

#include <stdbool.h>
#include <stdint.h>

/* An element and what it is sorted by. */
struct fab_key {
    uint64_t value;
    uint32_t index;
};

/* Sort n keys by value; of two alike, the one that came first stays first. `scratch` has room for n. Linear;
 * sorted input, which is what a probe mostly brings, costs one walk. True where the order was changed. */
bool fab_radix_sort(struct fab_key *keys, struct fab_key *scratch, uint32_t n);

/* The first element with this value in sorted keys, UINT32_MAX: none. */
uint32_t fab_radix_find(const struct fab_key *keys, uint32_t n, uint64_t value);

#endif
