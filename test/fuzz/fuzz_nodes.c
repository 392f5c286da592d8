/* fuzz_nodes.c - the reader of lines of host,switch,port,speed. */
#include "test/fuzz/inventories.h"

#include "probes/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(nodes_parse, data, size);
    return 0;
}
