/* radix.c - sort by a number, byte by byte from the lowest. */
#include "topo/base/radix.h"

#include <string.h>

#include "topo/base/search.h"

static bool is_sorted(const struct fab_key *keys, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (keys[i - 1].value > keys[i].value)
            return false;
    }
    return true;
}

bool fab_radix_sort(struct fab_key *keys, struct fab_key *scratch, uint32_t n)
{
    struct fab_key *from = keys, *to = scratch;
    uint64_t differ = 0; /* bits in which any two differ */

    if (is_sorted(keys, n))
        return false;
    for (uint32_t i = 1; i < n; i++)
        differ |= keys[i].value ^ keys[0].value;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        uint32_t start[257] = {0};
        if ((differ >> shift & 0xff) == 0)
            continue;
        for (uint32_t i = 0; i < n; i++)
            start[(from[i].value >> shift & 0xff) + 1]++;
        for (unsigned b = 0; b < 256; b++)
            start[b + 1] += start[b];
        for (uint32_t i = 0; i < n; i++)
            to[start[from[i].value >> shift & 0xff]++] = from[i];
        struct fab_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof(*keys));
    return true;
}

uint32_t fab_radix_find(const struct fab_key *keys, uint32_t n, uint64_t value)
{
    uint32_t at = FAB_LOWER_BOUND(0, n, i, keys[i].value < value);
    return at < n && keys[at].value == value ? keys[at].index : UINT32_MAX;
}
