/*
 * fuzz_slurm_view.c - the reader of exported topologies and of `scontrol show topology`, and the comparison
 * of two of them: the text before the first byte 1 is the file, the rest is Slurm's answer.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/slurm/slurm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char names[2][3] = {"n1", "n3"}, *nodes[2] = {names[0], names[1]};
    const struct fab_hostlist list = {.names = nodes, .n = 2};
    struct slurm_topologies file, slurm;
    struct slurm_difference difference;
    struct fab_err err = {""};
    char *text = malloc(size + 1), *second;
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    second = strchr(text, 1);
    if (second != NULL)
        *second++ = '\0';
    if (slurm_read(text, "file", &file, &err) == 0) {
        if (slurm_read(second != NULL ? second : "", "slurm", &slurm, &err) == 0) {
            if (slurm_compare(&file, &slurm, &list, true, &difference) == 0)
                slurm_difference_free(&difference);
            slurm_topologies_free(&slurm);
        }
        slurm_topologies_free(&file);
    }
    free(text);
    return 0;
}
