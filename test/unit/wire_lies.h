/* wire_lies.h - what every reader of sealed bytes (wire_seal.h) is asked by its test: flipped bits, bytes
 * that end too early or too late, and lies under a true seal are refused. */
#ifndef TEST_UNIT_WIRE_LIES_H
#define TEST_UNIT_WIRE_LIES_H

#include "pmixfab.h"
#include "test/unit/test.h"
#include "test/unit/wire_seal.h"

struct message {
    uint8_t *bytes;
    size_t size;
};

static inline void message_destroy(struct message *m)
{
    free(m->bytes);
}

/* In memory of exactly that size, so that a sanitizer sees every read too far. */
static inline struct message message_copy(const void *bytes, size_t size)
{
    struct message copy = {must_have(size), size};
    memcpy(copy.bytes, bytes, size);
    return copy;
}

/* The test's own assertion that its reader refuses these bytes with this code; 0: with any. */
typedef void (*refused_fn)(const uint8_t *bytes, size_t size, int code, const void *cbdata);

static inline void refuses_cuts(const struct message *m, refused_fn refused, const void *cbdata)
{
    SCOPED(message) longer = {must_have(m->size + 1), m->size + 1};
    for (size_t size = 0; size < m->size; size++)
        refused(m->bytes, size, PMIXFAB_ERR_TRUNCATED, cbdata);
    memcpy(longer.bytes, m->bytes, m->size);
    refused(longer.bytes, longer.size, PMIXFAB_ERR_CORRUPT, cbdata);
}

/* Each bit and each byte; from `sealed` on (but for the two bytes at `any`) under a true seal, too. */
static inline void refuses_flips(const struct message *m, size_t sealed, size_t any, refused_fn refused,
                                 const void *cbdata)
{
    uint8_t sum[8];
    memcpy(sum, m->bytes + 24, sizeof(sum));
    for (size_t i = 0; i < m->size; i++)
        for (unsigned bit = 0; bit < 9; bit++) {
            const uint8_t mask = bit == 8 ? 0xff : (uint8_t)(1u << bit);
            m->bytes[i] ^= mask;
            refused(m->bytes, m->size, 0, cbdata);
            if (i >= sealed && i - any >= 2) {
                wire_seal(m->bytes, m->size);
                refused(m->bytes, m->size, 0, cbdata);
                memcpy(m->bytes + 24, sum, sizeof(sum));
            }
            m->bytes[i] ^= mask;
        }
}

struct lie {
    size_t at;
    unsigned bytes;
    uint64_t value;
    int code;
};

static inline void refuses_lies(const struct message *m, const struct lie *lies, size_t n, refused_fn refused,
                                const void *cbdata)
{
    for (size_t i = 0; i < n; i++) {
        SCOPED(message) copy = message_copy(m->bytes, m->size);
        wire_put(copy.bytes + lies[i].at, lies[i].value, lies[i].bytes);
        wire_seal(copy.bytes, copy.size);
        refused(copy.bytes, copy.size, lies[i].code, cbdata);
    }
}

#endif
