/* give.h - fill a caller's struct that may be of an earlier or later version (pmixfab.h, "Structs"). */
#ifndef FAB_TOPO_BASE_GIVE_H
#define FAB_TOPO_BASE_GIVE_H

#include <stddef.h>
#include <string.h>

/* Copy `known` bytes into a struct of `size` bytes; set the rest to zero. */
static inline void fab_give(void *out, size_t size, const void *made, size_t known)
{
    memcpy(out, made, size < known ? size : known);
    if (size > known)
        memset((char *)out + known, 0, size - known);
}

#endif
