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

#include "test/fabrics/snapshot.h"

int main(int argc, char **argv)
{
    struct fab_err err = {""};
    const bool facts = argc > 1 && strcmp(argv[1], "--facts") == 0;

    argc -= facts;
    argv += facts;
    if (argc != 3 && argc != 6) {
        fprintf(stderr, "usage: mksnap [--facts] KIND:ARGS DIR [NAME INDEX GENERATION]\n");
        return 1;
    }
    int rc = argc == 3 ? fabric_snapshot_file(argv[1], facts, argv[2], NULL, 0, 0, &err)
                       : fabric_snapshot_file(argv[1], facts, argv[2], argv[3],
                                              (uint32_t)strtoul(argv[4], NULL, 10),
                                              strtoull(argv[5], NULL, 10), &err);
    if (rc != PMIXFAB_OK)
        fprintf(stderr, "mksnap: %s: %s\n", argv[1], err.text[0] != '\0' ? err.text : pmixfab_strerror(rc));
    return rc == PMIXFAB_OK ? 0 : 1;
}
