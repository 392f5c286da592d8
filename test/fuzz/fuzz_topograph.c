/* fuzz_topograph.c - the reader of topograph's models and graphs. */
#include "test/fuzz/inventories.h"

#include "probes/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(topograph_parse, data, size);
    return 0;
}
