/* texts.c - generated fabrics as the texts that other programs read. */
#include <stdlib.h>
#include <string.h>

#include "test/fabrics/fabrics.h"
#include "test/fabrics/snapshot.h"
#include "test/sim/played.h"

const char *sim_fabric(const char *spec, const char *form)
{
    static char *text;
    size_t size;
    struct fab_inventory inv;
    free(text);
    FILE *out = open_memstream(&text, &size);
    if (out == NULL || fabric_parse(spec, &inv) != PMIXFAB_OK)
        sim_fail("%s: no such fabric", spec);
    const int rc =
        strcmp(form, "net") == 0 ? fabric_write_netfile(&inv, out) : fabric_write_capture(&inv, out);
    fab_inventory_destroy(&inv);
    if (fclose(out) != 0 || rc != PMIXFAB_OK)
        sim_fail("%s: cannot be written", spec);
    return text;
}

void sim_snapshot(const char *spec, bool facts, const char *folder, const char *name, unsigned index,
                  uint64_t generation)
{
    struct fab_err err = {""};
    if (fabric_snapshot_file(spec, facts, folder, name, index, generation, &err) != PMIXFAB_OK)
        sim_fail("%s: no snapshot: %s", spec, err.text);
}
