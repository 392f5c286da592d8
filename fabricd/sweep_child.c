/* sweep_child.c - the sweeping child: run each probe, join what they saw, write it to the pipe. */
#include <stdlib.h>

#include "fabricd/child.h"
#include "fabricd/sweep.h"
#include "probes/probe.h"
#include "topo/wire.h"

static int run_probes(char **specs, int n, struct probe_config *config, struct fab_inventory *all,
                      struct fab_err *err)
{
    const struct probe_sink sink = {.note = child_note};
    for (int i = 0; i < n; i++) {
        const struct probe *probe = probe_find(specs[i], &config->arg);
        if (probe == NULL)
            return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "there is no probe %s", specs[i]);
        struct fab_inventory one;
        fab_inventory_init(&one);
        int rc = probe->run(config, &sink, &one, err);
        if (rc == PMIXFAB_OK)
            rc = fab_inventory_merge(all, &one, err);
        fab_inventory_destroy(&one);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    return fab_inventory_finish(all, err);
}

/* argv: fabricd --sweep-child PID_OF_THE_DAEMON MAX_SMPS TIMEOUT_MS RETRIES PROBE... */
int sweep_child(int argc, char **argv)
{
    struct fab_err err = {""};
    struct fab_inventory all;
    void *bytes = NULL;
    size_t size = 0;
    if (argc < 7)
        return 2;
    if (!child_begin(argv[2]))
        return 1;

    struct probe_config config = {.max_smps = (unsigned)strtoul(argv[3], NULL, 10),
                                  .timeout_ms = (unsigned)strtoul(argv[4], NULL, 10),
                                  .retries = (unsigned)strtoul(argv[5], NULL, 10)};
    fab_inventory_init(&all);
    int rc = run_probes(argv + 6, argc - 6, &config, &all, &err);
    if (rc == PMIXFAB_OK)
        rc = fab_wire_encode(&all, &bytes, &size);
    if (rc == PMIXFAB_OK)
        rc = child_write(bytes, size);
    if (rc != PMIXFAB_OK)
        child_note(PMIXFAB_LOG_ERROR, err.text[0] != '\0' ? err.text : pmixfab_strerror(rc), NULL);
    free(bytes);
    fab_inventory_destroy(&all);
    return rc == PMIXFAB_OK ? 0 : 1;
}
