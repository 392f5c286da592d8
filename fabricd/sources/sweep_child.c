/* sweep_child.c - the sweeping child: run each probe, join the results, write them to the pipe. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/process/child.h"
#include "fabricd/sources/sweep.h"
#include "probes/registry.h"

static const struct probe_sink sink = {.note = child_note};

/* Sweep everything with one probe. */
static int run_one(const char *spec, struct probe_config *config, struct fab_inventory *inv,
                   struct fab_err *err)
{
    const struct probe *probe = probe_find(spec, &config->arg);
    fab_inventory_init(inv);
    if (probe == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "there is no probe %s", spec);
    return probe->run(config, &sink, inv, err);
}

static int run_all(char **specs, unsigned n, struct probe_config *config, struct sweep_parts *parts,
                   struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (parts->n = 0; parts->n < n && rc == PMIXFAB_OK; parts->n++)
        rc = run_one(specs[parts->n], config, &parts->inv[parts->n], err);
    return rc;
}

static bool is_in(const struct fab_inventory *inv, uint64_t guid)
{
    return fab_inventory_find(inv, guid) != FAB_NONE;
}

/* Return whether the last sweep has all dirty switches. */
static int check_known(const struct sweep_parts *parts, const struct dirty_switches *dirty,
                       struct fab_err *err)
{
    if (dirty->all)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "everything may have changed");
    for (uint32_t i = 0; i < dirty->n; i++) {
        bool known = false;
        for (unsigned k = 0; k < parts->n && !known; k++)
            known = is_in(&parts->inv[k], dirty->guids[i]);
        if (!known)
            return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                            "the last sweep did not see the switch 0x%016" PRIx64, dirty->guids[i]);
    }
    return PMIXFAB_OK;
}

/*
 * Sweep the dirty switches of one probe's part of the last sweep. all: everything is dirty. The answer
 * contains whether the probe swept more than these switches.
 */
static int switches_one(const char *spec, struct probe_config *config, const struct dirty_switches *dirty,
                        bool all, struct fab_inventory *part, struct sweep_answer *answer,
                        struct fab_err *err)
{
    struct dirty_switches own = {0};
    struct fab_inventory next;
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; i < dirty->n && rc == PMIXFAB_OK; i++)
        if (is_in(part, dirty->guids[i]))
            rc = dirty_switches_add(&own, dirty->guids[i], err);
    if (rc == PMIXFAB_OK && own.n == 0 && !all) /* no dirty switch belongs to this probe */
        return PMIXFAB_OK;
    const struct probe *probe = probe_find(spec, &config->arg);
    fab_inventory_init(&next);
    if (rc == PMIXFAB_OK && all)
        rc = fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "%s: everything may have changed", spec);
    else if (rc == PMIXFAB_OK)
        rc = probe == NULL || probe->sweep_switches == NULL
                 ? fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "%s cannot sweep a part", spec)
                 : probe->sweep_switches(config, &sink, part, &own, &next, err);
    dirty_switches_free(&own);
    if (rc != PMIXFAB_OK) {
        if (!answer->whole)
            answer->why = *err;
        answer->whole = true;
        err->text[0] = '\0';
        fab_inventory_destroy(&next);
        rc = run_one(spec, config, &next, err);
    }
    fab_inventory_destroy(part);
    *part = next;
    return rc;
}

static int switches_all(char **specs, struct probe_config *config, const struct dirty_switches *dirty,
                        struct sweep_parts *parts, struct sweep_answer *answer, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    answer->whole = false;
    for (unsigned i = 0; i < parts->n && rc == PMIXFAB_OK; i++)
        rc =
            switches_one(specs[i], config, dirty, (dirty->probes >> i & 1) != 0, &parts->inv[i], answer, err);
    return rc;
}

/* Run the daemon's order: the dirty switches, or everything if that is not sufficient. */
static int sweep_run_probes(char **specs, unsigned n, struct probe_config *config, struct sweep_parts *parts,
                            struct sweep_answer *answer, struct fab_err *err)
{
    struct dirty_switches dirty = {0};
    void *order = NULL;
    size_t size = 0;
    int rc = child_read(&order, &size, SWEEP_ANSWER_MAX);
    bool part = rc == PMIXFAB_OK && size > 0;
    if (part) {
        rc = sweep_order_decode(order, size, &dirty, parts, &answer->why);
        if (rc == PMIXFAB_OK && parts->n != n)
            rc = fab_fail(&answer->why, PMIXFAB_ERR_CORRUPT, "there were %u probes", parts->n);
        if (rc == PMIXFAB_OK)
            rc = check_known(parts, &dirty, &answer->why);
        part = rc == PMIXFAB_OK;
    }
    free(order);
    if (part) {
        rc = switches_all(specs, config, &dirty, parts, answer, err);
    } else {
        sweep_parts_destroy(parts);
        rc = run_all(specs, n, config, parts, err);
    }
    dirty_switches_free(&dirty);
    if (answer->why.text[0] != '\0') {
        char line[sizeof(answer->why.text) + 40];
        snprintf(line, sizeof(line), "everything is swept: %s", answer->why.text);
        child_note(PMIXFAB_LOG_DEBUG, line, NULL);
    }
    return rc;
}

/* Merge the results of all probes into one inventory. */
static int sweep_merge_probes(const struct sweep_parts *parts, struct fab_inventory *all, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (unsigned i = 0; i < parts->n && rc == PMIXFAB_OK; i++)
        rc = fab_inventory_merge(all, &parts->inv[i], err);
    return rc == PMIXFAB_OK ? fab_inventory_finish(all, err) : rc;
}

/* argv: fabricd --sweep-child PID_OF_THE_DAEMON MAX_SMPS TIMEOUT_MS RETRIES PROBE... */
int sweep_child(int argc, char **argv)
{
    struct fab_err err = {""};
    struct sweep_parts parts = {.n = 0};
    struct sweep_answer answer = {.whole = true};
    void *bytes = NULL;
    size_t size = 0;
    if (argc < 7 || argc - 6 > CONFIG_MAX_LIST)
        return 2;
    if (!child_begin(argv[2]))
        return 1;

    struct probe_config config = {.max_smps = (unsigned)strtoul(argv[3], NULL, 10),
                                  .timeout_ms = (unsigned)strtoul(argv[4], NULL, 10),
                                  .retries = (unsigned)strtoul(argv[5], NULL, 10)};
    fab_inventory_init(&answer.inv);
    int rc = sweep_run_probes(argv + 6, (unsigned)argc - 6, &config, &parts, &answer, &err);
    if (rc == PMIXFAB_OK)
        rc = sweep_parts_check(&parts, &err);
    if (rc == PMIXFAB_OK && parts.n > 1)
        rc = sweep_merge_probes(&parts, &answer.inv, &err);
    if (rc == PMIXFAB_OK)
        rc = sweep_answer_encode(&answer, &parts, &bytes, &size);
    if (rc == PMIXFAB_OK)
        rc = child_write(bytes, size);
    if (rc != PMIXFAB_OK)
        child_note(PMIXFAB_LOG_ERROR, err.text[0] != '\0' ? err.text : pmixfab_strerror(rc), NULL);
    free(bytes);
    sweep_parts_destroy(&parts);
    fab_inventory_destroy(&answer.inv);
    return rc == PMIXFAB_OK ? 0 : 1;
}
