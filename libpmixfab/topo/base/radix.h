/* radix.h - sort many elements by a number: the indices are moved, the elements stay in place. */
#ifndef FAB_TOPO_BASE_RADIX_H
#define FAB_TOPO_BASE_RADIX_H

#include <stdbool.h>
#include <stdint.h>

/* The index of an element and its sort key. */
struct fab_key {
    uint64_t value;
    uint32_t index;
};

/*
 * Sort n keys by value; equal values keep their order. `scratch` has room for n. Linear time; sorted input,
 * which probes mostly deliver, costs one pass. Return whether the order has changed.
 */
bool fab_radix_sort(struct fab_key *keys, struct fab_key *scratch, uint32_t n);

/* Return the first position of this value in sorted keys; UINT32_MAX if there is none. */
uint32_t fab_radix_find(const struct fab_key *keys, uint32_t n, uint64_t value);

#endif
