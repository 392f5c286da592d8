/*
 * packet.h - bytes with a head that says what they are, how many, and that nothing was altered.
 *
 * Head (32 bytes): magic[8], version u32, 0 u32, total size u64, XXH3-64 of all other bytes u64; all
 * little-endian. Behind it comes what the writer likes.
 */
#ifndef FAB_TOPO_PACKET_H
#define FAB_TOPO_PACKET_H

#include <stdbool.h>

#include "topo/model.h"

#define PACKET_HEAD 32

/* A kind of packet. */
struct packet_kind {
    char magic[8];
    uint32_t version;
    size_t max;       /* bytes of the whole */
    const char *what; /* for messages: "the report" */
};

/* Append a number; returns what is behind it. */
uint8_t *packet_put(uint8_t *at, uint64_t value, unsigned bytes);
/* Write the head of a packet whose other bytes stand. */
void packet_seal(const struct packet_kind *kind, uint8_t *start, size_t total);

/* A packet that is being read. Reading past its end gives zeros and is remembered. */
struct packet {
    const uint8_t *at, *end;
    bool overrun;
};

/* Head, size and checksum; the content is then next. PMIXFAB_ERR_TRUNCATED, _FOREIGN, _OLDER, _NEWER,
 * _CORRUPT. */
int packet_open(const struct packet_kind *kind, const void *bytes, size_t size, struct packet *in,
                struct fab_err *err);
uint64_t packet_get(struct packet *in, unsigned bytes);
/* The next n bytes, NULL: so many are not left. */
const uint8_t *packet_take(struct packet *in, size_t n);
size_t packet_left(const struct packet *in);

#endif
