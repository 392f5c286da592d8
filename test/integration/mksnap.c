/*
 * mksnap.c - a run directory without a daemon: mksnap KIND:ARGS DIR writes DIR/ib0.snap.
 *
 * KIND:ARGS as fabrics.h has it. Further planes: mksnap KIND:ARGS DIR NAME INDEX GENERATION writes
 * DIR/NAME.snap, which is not the default plane. mksnap --facts ...: with what hosts would say of their
 * devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fabrics/details.h"
#include "test/fabrics/fabrics.h"
#include "test/fabrics/snapshot.h"

static int fail(const char *what, const char *text)
{
    fprintf(stderr, "mksnap: %s: %s\n", what, text);
    return 1;
}

static int write_file(const char *dir, const char *name, const void *bytes, size_t size)
{
    char path[4096];
    FILE *out;
    int failed;

    snprintf(path, sizeof(path), "%s/%s.snap", dir, name);
    out = fopen(path, "wb");
    if (out == NULL)
        return fail("cannot write", path);
    failed = fwrite(bytes, 1, size, out) != size;
    if (fclose(out) != 0 || failed)
        return fail("cannot write", path);
    return 0;
}

/* One offset for all, so the order that they are in stays. */
static void shift_guids(struct fab_inventory *inv, uint64_t by)
{
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        inv->nodes[i].guid += by;
        inv->nodes[i].system_guid += by;
    }
    for (uint32_t i = 0; i < inv->n_ports; i++)
        if (inv->ports[i].guid != 0)
            inv->ports[i].guid += by;
}

int main(int argc, char **argv)
{
    struct fab_snapshot_meta meta = {.index = 1,
                                     .generation = 3,
                                     .published = 1700000000123456,
                                     .is_default = 1,
                                     .name = "ib0",
                                     .vendor = "test",
                                     .identifier = "test"};
    struct fab_inventory inv;
    struct fab_planes planes = {0};
    struct fab_details details = {0};
    struct fab_err err = {""};
    void *bytes = NULL;
    size_t size = 0;
    int rc, facts = argc > 1 && strcmp(argv[1], "--facts") == 0;

    argc -= facts;
    argv += facts;
    if (argc != 3 && argc != 6)
        return fail("usage", "mksnap [--facts] KIND:ARGS DIR [NAME INDEX GENERATION]");
    if (argc == 6) {
        meta.name = argv[3];
        meta.index = (uint32_t)strtoul(argv[4], NULL, 10);
        meta.generation = strtoull(argv[5], NULL, 10);
        meta.is_default = 0;
    }
    fab_inventory_init(&inv);
    rc = fabric_parse(argv[1], &inv);
    shift_guids(&inv, (uint64_t)(meta.index - 1) << 32);
    if (rc == 0)
        rc = fab_planes_build(&inv, FAB_COST_RATE, &planes, &err);
    if (rc == 0 && planes.n == 0)
        rc = PMIXFAB_ERR_NOTFOUND;
    if (rc == 0 && facts)
        rc = fabric_details(&inv, 0, &details);
    if (rc == 0)
        rc = fabric_plane_snapshot(&planes.planes[0], facts ? &details : NULL, &meta, &bytes, &size);
    if (rc == 0)
        rc = write_file(argv[2], meta.name, bytes, size);
    else
        rc = fail(argv[1], err.text[0] != '\0' ? err.text : pmixfab_strerror(rc));
    free(bytes);
    fabric_details_destroy(&details);
    fab_planes_destroy(&planes);
    fab_inventory_destroy(&inv);
    return rc;
}
