/* wire_seal.h - make size and checksum of an encoded inventory right again after its content was changed, as
 * a lying writer would. Written from the description of the format, not from its code. */
#ifndef FAB_TEST_WIRE_SEAL_H
#define FAB_TEST_WIRE_SEAL_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

static inline void wire_put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* size >= 32 */
static inline void wire_seal(uint8_t *bytes, size_t size)
{
    wire_put(bytes + 16, size, 8);
    wire_put(bytes + 24, XXH3_64bits_withSeed(bytes + 32, size - 32, XXH3_64bits(bytes, 24)), 8);
}

#endif
