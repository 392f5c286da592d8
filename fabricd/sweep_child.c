/* sweep_child.c - the sweeping child: run each probe, join what they saw, write it to the pipe. */
#include <stdio.h>
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

/* Each probe reads anew what was noticed in its part of the last inventory. */
static int run_again(char **specs, int n, struct probe_config *config, const struct probe_noticed *noticed,
                     struct fab_inventory *all, struct fab_err *err)
{
    const struct probe_sink sink = {.note = child_note};
    for (int i = 0; i < n; i++) {
        const struct probe *probe = probe_find(specs[i], &config->arg);
        if (probe == NULL || probe->again == NULL)
            return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "%s cannot look at a part", specs[i]);
        struct fab_inventory next;
        fab_inventory_init(&next);
        int rc = probe->again(config, &sink, all, noticed, &next, err);
        if (rc != PMIXFAB_OK) {
            fab_inventory_destroy(&next);
            return rc;
        }
        fab_inventory_destroy(all);
        *all = next;
    }
    return PMIXFAB_OK;
}

/* What the daemon orders: what changed, or everything where that is not enough. */
static int sweep(char **specs, int n, struct probe_config *config, struct fab_inventory *all,
                 struct fab_err *err)
{
    struct probe_noticed noticed = {0};
    void *order = NULL;
    size_t size = 0;
    fab_inventory_init(all);
    int rc = child_read(&order, &size, FAB_WIRE_MAX);
    if (rc == PMIXFAB_OK && size > 0) {
        rc = sweep_order_decode(order, size, &noticed, all, err);
        free(order);
        if (rc == PMIXFAB_OK)
            rc = run_again(specs, n, config, &noticed, all, err);
        probe_noticed_free(&noticed);
        if (rc == PMIXFAB_OK)
            return rc;
        char line[sizeof(err->text) + 40];
        snprintf(line, sizeof(line), "everything is swept: %s", err->text);
        child_note(PMIXFAB_LOG_DEBUG, line, NULL);
        err->text[0] = '\0';
        fab_inventory_destroy(all);
    } else {
        free(order);
    }
    return run_probes(specs, n, config, all, err);
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
    int rc = sweep(argv + 6, argc - 6, &config, &all, &err);
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
