/* fuzz_capture.c - the readers of recorded fabrics: ibnetdiscover's text and libibnetdisc's cache. */
#include "test/fuzz/inventories.h"

#include "probes/capture/capture_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_cache(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                      struct fab_inventory *inv, struct fab_err *err)
{
    return cache_parse(file, text, len, sink, inv, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(cache_is(data, size) ? read_cache : capture_parse, data, size);
    return 0;
}
