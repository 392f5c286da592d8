/* fuzz_subnet.c - the reader of opensm-subnet.lst. */
#include "test/fuzz/inventories.h"

#include "probes/capture/capture_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(subnet_parse, data, size);
    return 0;
}
