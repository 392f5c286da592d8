/*
 * frame.h - a frame: bytes with a head that contains their kind, their number and a checksum.
 *
 * Head (32 bytes): magic[8], version u32, 0 u32, total size u64, XXH3-64 of all other bytes u64; all
 * little-endian. The content follows.
 */
#ifndef FAB_TOPO_BASE_FRAME_H
#define FAB_TOPO_BASE_FRAME_H

#include <stdbool.h>

#include "topo/base/error.h"

#define FRAME_HEAD 32

/* A kind of frame. */
struct frame_kind {
    char magic[8];
    uint32_t version;
    size_t max;       /* maximum size of the whole frame, bytes */
    const char *what; /* for messages: "the report" */
};

/* Write a number and return the address after it. */
uint8_t *frame_put(uint8_t *at, uint64_t value, unsigned bytes);
/* Write the head of a frame whose content is complete. */
void frame_seal(const struct frame_kind *kind, uint8_t *start, size_t total);

/* A frame that is being read. A read past its end returns zeros and sets a flag. */
struct frame {
    const uint8_t *at, *end;
    bool overrun;
};

/*
 * Check head, size and checksum; the content is read next. PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER,
 * _CORRUPT.
 */
int frame_open(const struct frame_kind *kind, const void *bytes, size_t size, struct frame *in,
               struct fab_err *err);
uint64_t frame_get(struct frame *in, unsigned bytes);
/* Return the next n bytes; NULL if fewer are left. */
const uint8_t *frame_bytes(struct frame *in, size_t n);
size_t frame_left(const struct frame *in);

#endif
