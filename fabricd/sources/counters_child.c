/* counters_child.c - the child that reads counters: each probe reads its own ports. */
#include <stdlib.h>

#include "fabricd/process/child.h"
#include "fabricd/sources/port_counters.h"
#include "fabricd/sources/sweep.h"
#include "probes/registry.h"

static int counters_read(char **specs, unsigned n_specs, struct probe_config *config,
                         const struct sweep_parts *parts, struct probe_reading *list, uint32_t n,
                         struct fab_err *err)
{
    if (parts->n != n_specs)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "%u probes, and %u inventories of them", n_specs, parts->n);
    for (unsigned i = 0; i < n_specs; i++) {
        const struct probe *probe = probe_find(specs[i], &config->arg);
        int rc = probe == NULL || probe->counters == NULL
                     ? PMIXFAB_OK
                     : probe->counters(config, &parts->inv[i], list, n, err);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    return PMIXFAB_OK;
}

/* argv: fabricd --counters-child PID_OF_THE_DAEMON MAX_SMPS PROBE... */
int counters_child(int argc, char **argv)
{
    struct fab_err err = {""};
    struct sweep_parts parts = {.n = 0};
    struct probe_reading *list = NULL;
    void *order = NULL;
    const void *seen;
    size_t size = 0, seen_size;
    uint32_t n = 0;
    if (argc < 5 || argc - 4 > CONFIG_MAX_LIST)
        return 2;
    if (!child_begin(argv[2]))
        return 1;
    struct probe_config config = {.max_smps = (unsigned)strtoul(argv[3], NULL, 10)};
    int rc = child_read(&order, &size, SWEEP_ANSWER_MAX);
    if (rc == PMIXFAB_OK)
        rc = counters_order_decode(order, size, &list, &n, &seen, &seen_size, &err);
    if (rc == PMIXFAB_OK)
        rc = sweep_parts_decode(seen, seen_size, &parts, &err);
    if (rc == PMIXFAB_OK)
        rc = counters_read(argv + 4, (unsigned)argc - 4, &config, &parts, list, n, &err);
    if (rc == PMIXFAB_OK)
        rc = child_write(list, n * sizeof(*list));
    if (rc != PMIXFAB_OK)
        child_note(PMIXFAB_LOG_ERROR, err.text[0] != '\0' ? err.text : pmixfab_strerror(rc), NULL);
    sweep_parts_destroy(&parts);
    free(list);
    free(order);
    return rc == PMIXFAB_OK ? 0 : 1;
}
