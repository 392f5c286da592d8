/* scratch.h - temporary arrays of one computation, freed together. */
#ifndef FAB_TOPO_BASE_SCRATCH_H
#define FAB_TOPO_BASE_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define FAB_SCRATCH_MOST 16

/* All zero: empty. */
struct fab_scratch {
    void *arrays[FAB_SCRATCH_MOST];
    unsigned n;
    bool failed; /* one of them could not be allocated */
};

/* Return a zeroed array of n + 1 elements of `size` bytes; NULL if this or an earlier allocation failed. */
static inline void *fab_scratch_array(struct fab_scratch *scratch, size_t n, size_t size)
{
    void *array = scratch->failed || scratch->n == FAB_SCRATCH_MOST ? NULL : calloc(n + 1, size);
    scratch->failed |= array == NULL;
    if (array != NULL)
        scratch->arrays[scratch->n++] = array;
    return array;
}

/* Set a pointer to a new array of n elements of its type. */
#define FAB_SCRATCH(scratch, pointer, n) (*(pointer) = fab_scratch_array(scratch, n, sizeof(**(pointer))))

static inline void fab_scratch_free(struct fab_scratch *scratch)
{
    while (scratch->n > 0)
        free(scratch->arrays[--scratch->n]);
    scratch->failed = false;
}

#endif
