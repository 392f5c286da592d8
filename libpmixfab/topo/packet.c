/* packet.c - heads of packets, written and believed only when they are right. */
#include "topo/packet.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#define AT_TOTAL 16
#define AT_SUM   24

uint8_t *packet_put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
    return at + bytes;
}

/* Everything but the checksum itself. */
static uint64_t frame_checksum(const uint8_t *bytes, size_t size)
{
    uint64_t head = XXH3_64bits(bytes, AT_SUM);
    return XXH3_64bits_withSeed(bytes + PACKET_HEAD, size - PACKET_HEAD, head);
}

void packet_seal(const struct packet_kind *kind, uint8_t *start, size_t total)
{
    memcpy(start, kind->magic, sizeof(kind->magic));
    uint8_t *at = packet_put(start + sizeof(kind->magic), kind->version, 4);
    at = packet_put(at, 0, 4);
    at = packet_put(at, total, 8);
    packet_put(at, frame_checksum(start, total), 8);
}

size_t packet_left(const struct packet *in)
{
    return (size_t)(in->end - in->at);
}

const uint8_t *packet_take(struct packet *in, size_t n)
{
    if (n > packet_left(in)) {
        in->at = in->end;
        in->overrun = true;
        return NULL;
    }
    in->at += n;
    return in->at - n;
}

uint64_t packet_get(struct packet *in, unsigned bytes)
{
    const uint8_t *at = packet_take(in, bytes);
    uint64_t value = 0;

    for (unsigned i = 0; at != NULL && i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

int packet_open(const struct packet_kind *kind, const void *bytes, size_t size, struct packet *in,
                struct fab_err *err)
{
    const uint8_t *start = bytes;
    const char *what = kind->what;

    *in = (struct packet){start, start, false};
    if (bytes == NULL || size == 0)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "%s is empty", what);
    if (memcmp(start, kind->magic, size < sizeof(kind->magic) ? size : sizeof(kind->magic)) != 0)
        return fab_fail(err, PMIXFAB_ERR_FOREIGN, "these bytes are not %s", what);
    if (size < PACKET_HEAD)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "%s ends after %zu bytes, inside its head", what, size);
    in->end = start + size;
    in->at = start + sizeof(kind->magic);
    uint64_t version = packet_get(in, 4), zero = packet_get(in, 4), total = packet_get(in, 8);
    if (version != kind->version)
        return fab_fail(err, version < kind->version ? PMIXFAB_ERR_OLDER : PMIXFAB_ERR_NEWER,
                        "%s is of format %" PRIu64 ", this program reads %" PRIu32
                        ": use programs of one version",
                        what, version, kind->version);
    if (total < PACKET_HEAD || total > kind->max || zero != 0)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%s says it has an impossible %" PRIu64 " bytes", what,
                        total);
    if (size < total)
        return fab_fail(err, PMIXFAB_ERR_TRUNCATED, "%s ends after %zu of %" PRIu64 " bytes", what, size,
                        total);
    if (size > total)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%" PRIu64 " bytes too many behind %s", size - total, what);
    if (packet_get(in, 8) != frame_checksum(start, size))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the checksum of %s does not match", what);
    return PMIXFAB_OK;
}
