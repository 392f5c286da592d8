/* array.h - arrays that grow. */
#ifndef FAB_TOPO_BASE_ARRAY_H
#define FAB_TOPO_BASE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Make room for `need` elements of `size` bytes in *array, which is NULL or from malloc() and has room for
 * *room. The room at least doubles, so n appends cost O(n). Return false, and change nothing, without memory
 * or for more than UINT32_MAX elements.
 */
static inline bool fab_array_room(void **array, uint32_t *room, uint64_t need, size_t size)
{
    if (need <= *room)
        return true;
    uint64_t want = *room < 8 ? 16 : 2 * (uint64_t)*room;
    if (want < need)
        want = need;
    if (want > UINT32_MAX)
        want = UINT32_MAX;
    void *larger = need > UINT32_MAX ? NULL : reallocarray(*array, want, size);
    if (larger == NULL)
        return false;
    *array = larger;
    *room = (uint32_t)want;
    return true;
}

/* As fab_array_room(), for a typed array: FAB_ARRAY_ROOM(&list->items, &list->room, list->n + 1). */
#define FAB_ARRAY_ROOM(array, room, need)                                                                    \
    __extension__({                                                                                          \
        void *array_ = *(array);                                                                             \
        const bool has_room_ = fab_array_room(&array_, room, need, sizeof(**(array)));                       \
        *(array) = array_; /* NOLINT(clang-analyzer-unix.Malloc): the caller's */                            \
        has_room_;                                                                                           \
    })

#endif
