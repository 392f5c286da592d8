/*
 * give.h - fill a caller's struct that may be of an earlier or a later version than ours (pmixfab.h,
 * "Structs").
 */
#ifndef FAB_TOPO_BASE_GIVE_H
#define FAB_TOPO_BASE_GIVE_H

#include <stddef.h>
#include <string.h>

/* `known` bytes were made, the caller has room for `size`. */
static inline void fab_give(void *out, size_t size, const void *made, size_t known)
{
    memcpy(out, made, size < known ? size : known);
    if (size > known)
        memset((char *)out + known, 0, size - known);
}

#endif
