/* frame.c - write and check the heads of packets. */
#include "topo/base/frame.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#define AT_SUM 24

uint8_t *frame_put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
    return at + bytes;
}

/* Return the checksum of all bytes except the checksum itself. */
static uint64_t frame_checksum(const uint8_t *bytes, size_t size)
{
    uint64_t head = XXH3_64bits(bytes, AT_SUM);
    return XXH3_64bits_withSeed(bytes + FRAME_HEAD, size - FRAME_HEAD, head);
}

void frame_seal(const struct frame_kind *kind, uint8_t *start, size_t total)
{
    memcpy(start, kind->magic, sizeof(kind->magic));
    uint8_t *at = frame_put(start + sizeof(kind->magic), kind->version, 4);
    at = frame_put(at, 0, 4);
    at = frame_put(at, total, 8);
    frame_put(at, frame_checksum(start, total), 8);
}

size_t frame_left(const struct frame *in)
{
    return (size_t)(in->end - in->at);
}

const uint8_t *frame_bytes(struct frame *in, size_t n)
{
    if (n > frame_left(in)) {
        in->at = in->end;
        in->overrun = true;
        return NULL;
    }
    in->at += n;
    return in->at - n;
}

uint64_t frame_get(struct frame *in, unsigned bytes)
{
    const uint8_t *at = frame_bytes(in, bytes);
    uint64_t value = 0;

    for (unsigned i = 0; at != NULL && i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

int frame_open(const struct frame_kind *kind, const void *bytes, size_t size, struct frame *in,
               struct fab_err *err)
{
    const uint8_t *start = bytes;
    const char *what = kind->what;

    *in = (struct frame){start, start, false};
    if (bytes == NULL || size == 0)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "%s is empty", what);
    if (memcmp(start, kind->magic, size < sizeof(kind->magic) ? size : sizeof(kind->magic)) != 0)
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "these bytes are not %s", what);
    if (size < FRAME_HEAD)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "%s ends after %zu bytes, inside its head", what, size);
    in->end = start + size;
    in->at = start + sizeof(kind->magic);
    uint64_t version = frame_get(in, 4), zero = frame_get(in, 4), total = frame_get(in, 8);
    if (version != kind->version)
        return fab_fail(err, version < kind->version ? PMIXFAB_ERR_OLDER : PMIXFAB_ERR_NEWER,
                        "%s is of format %" PRIu64 ", this program reads %" PRIu32
                        ": use programs of one version",
                        what, version, kind->version);
    if (total < FRAME_HEAD || total > kind->max || zero != 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s has an impossible size of %" PRIu64 " bytes", what,
                        total);
    if (size < total)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "%s ends after %zu of %" PRIu64 " bytes", what, size,
                        total);
    if (size > total)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%" PRIu64 " bytes too many after %s", size - total, what);
    if (frame_get(in, 8) != frame_checksum(start, size))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the checksum of %s does not match", what);
    return PMIXFAB_OK;
}
