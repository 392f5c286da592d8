/*
 * frame.h - bytes with a head that says what they are, how many, and that nothing was altered.
 *
 * Head (32 bytes): magic[8], version u32, 0 u32, total size u64, XXH3-64 of all other bytes u64; all
 * little-endian. Behind it comes what the writer likes.
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
    size_t max;       /* bytes of the whole */
    const char *what; /* for messages: "the report" */
};

/* Append a number; returns what is behind it. */
uint8_t *frame_put(uint8_t *at, uint64_t value, unsigned bytes);
/* Write the head of a frame whose other bytes stand. */
void frame_seal(const struct frame_kind *kind, uint8_t *start, size_t total);

/* A frame that is being read. Reading past its end gives zeros and is remembered. */
struct frame {
    const uint8_t *at, *end;
    bool overrun;
};

/* Head, size and checksum; the content is then next. PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER,
 * _CORRUPT. */
int frame_open(const struct frame_kind *kind, const void *bytes, size_t size, struct frame *in,
               struct fab_err *err);
uint64_t frame_get(struct frame *in, unsigned bytes);
/* The next n bytes, NULL: so many are not left. */
const uint8_t *frame_bytes(struct frame *in, size_t n);
size_t frame_left(const struct frame *in);

#endif
