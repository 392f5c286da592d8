/* fuzz_slurm.c - the reader of Slurm's topology.conf and topology.yaml. */
#include "test/fuzz/inventories.h"

#include "probes/import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_reader(slurm_parse, data, size);
    return 0;
}
