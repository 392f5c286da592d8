/* scratch.h - the arrays of one computation, which are freed together. */
#ifndef FAB_TOPO_BASE_SCRATCH_H
#define FAB_TOPO_BASE_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define FAB_SCRATCH_MOST 16

/* Zeroed: empty. */
struct fab_scratch {
    void *arrays[FAB_SCRATCH_MOST];
    unsigned n;
    bool failed; /* there was no memory for one of them */
};

/* n elements of `size` bytes, zeroed, and one more; NULL: there is no memory, or there was none before. */
static inline void *fab_scratch_array(struct fab_scratch *scratch, size_t n, size_t size)
{
    void *array = scratch->failed || scratch->n == FAB_SCRATCH_MOST ? NULL : calloc(n + 1, size);
    scratch->failed |= array == NULL;
    if (array != NULL)
        scratch->arrays[scratch->n++] = array;
    return array;
}

/* Set a pointer to an array of what it points to. */
#define FAB_SCRATCH(scratch, pointer, n) (*(pointer) = fab_scratch_array(scratch, n, sizeof(**(pointer))))

static inline void fab_scratch_free(struct fab_scratch *scratch)
{
    while (scratch->n > 0)
        free(scratch->arrays[--scratch->n]);
    scratch->failed = false;
}

#endif
