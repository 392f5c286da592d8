/* bytes.h - a buffer that grows, for a packet of unknown size. */
#ifndef FAB_TOPO_BASE_BYTES_H
#define FAB_TOPO_BASE_BYTES_H

#include <string.h>

#include "topo/base/array.h"
#include "topo/base/frame.h"

struct fab_bytes {
    uint8_t *at; /* to be freed with free() */
    uint32_t n, room;
    bool failed; /* out of memory; later appends do nothing */
};

/* Append room for n bytes and return it; NULL without memory. */
static inline uint8_t *fab_bytes_more(struct fab_bytes *bytes, size_t n)
{
    if (bytes->failed || !FAB_ARRAY_ROOM(&bytes->at, &bytes->room, (uint64_t)bytes->n + n)) {
        bytes->failed = true;
        return NULL;
    }
    bytes->n += (uint32_t)n;
    return bytes->at + bytes->n - n;
}

static inline void fab_bytes_add(struct fab_bytes *bytes, const void *from, size_t n)
{
    uint8_t *to = fab_bytes_more(bytes, n);
    if (to != NULL && n > 0)
        memcpy(to, from, n);
}

/* Append a number of `width` bytes in the form that frame_get() reads. */
static inline void fab_bytes_put(struct fab_bytes *bytes, uint64_t value, unsigned width)
{
    uint8_t *to = fab_bytes_more(bytes, width);
    if (to != NULL)
        frame_put(to, value, width);
}

#endif
