/*
 * Any bytes at all as the delivery of a host's report, opened against what is held of it. The same bytes are
 * tried a second time sealed, with the base that is held, and with a body that is sealed as well.
 */
#include "test/unit/report_random.h"
#include "test/unit/wire_seal.h"
#include "topo/model/delivery.h"

#define HEAD 32
#define BODY (HEAD + 8 + 8 + 4 + 1 + 7) /* behind two digests, the sources and the name node001 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int ok)
{
    if (!ok)
        abort();
}

static void try_bytes(const struct fab_report *held, const uint8_t *bytes, size_t size)
{
    struct fab_delivery delivery;
    struct fab_report out;
    struct fab_err err = {{0}};

    if (fab_delivery_decode(bytes, size, &delivery, &err) != 0) {
        must(err.text[0] != '\0' && delivery.body == NULL);
        return;
    }
    must((const uint8_t *)delivery.body + delivery.size == bytes + size);
    for (int i = 0; i < 2; i++) {
        err.text[0] = '\0';
        if (fab_delivery_open(&delivery, i == 0 ? held : NULL, &out, &err) == 0) {
            must(out.finished && strcmp(out.host, delivery.host) == 0);
            must(i == 0 || delivery.base == 0);
            must(fab_report_digest(&out) == delivery.digest || (i == 0 && delivery.unknown != 0));
        } else {
            must(err.text[0] != '\0' && out.items == NULL);
        }
        fab_report_destroy(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t head[16] = {'f', 'a', 'b', 'g', 'i', 'v', 'e', '\n', 2};
    struct fab_report held;
    struct fab_report body;
    uint64_t random = 1;

    report_random(&held, &random, "node001", 2, 1);
    try_bytes(&held, data, size);
    uint8_t *sealed = size < HEAD ? NULL : malloc(size);
    if (sealed != NULL) {
        memcpy(sealed, data, size);
        memcpy(sealed, head, sizeof(head));
        wire_seal(sealed, size);
        try_bytes(&held, sealed, size);
    }
    if (sealed != NULL && size >= BODY + HEAD + 8) {
        bool change = (data[HEAD] & 1) != 0;
        memcpy(sealed + BODY - 8, "\7node001", 8);
        memcpy(sealed + BODY, change ? "fabdelta\1\0\0\0\0\0\0\0" : "fabhost\n\1\0\0\0\0\0\0\0", 16);
        wire_put(sealed + HEAD, change ? fab_report_digest(&held) : 0, 8);
        if (change)
            wire_put(sealed + BODY + HEAD, fab_report_digest(&held), 8);
        wire_seal(sealed + BODY, size - BODY);
        if (!change && fab_report_decode(sealed + BODY, size - BODY, &body, NULL) == 0) {
            wire_put(sealed + HEAD + 8, fab_report_digest(&body), 8);
            fab_report_destroy(&body);
        }
        wire_seal(sealed, size);
        try_bytes(&held, sealed, size);
    }
    free(sealed);
    fab_report_destroy(&held);
    return 0;
}
