#include "fabricd/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fabricd/child.h"
#include "probes/probe.h"
#include "topo/wire.h"

struct sweep {
    struct child *child;
    sweep_done_fn done;
    void *cbdata;
};

void sweep_cancel(struct sweep *sweep)
{
    if (sweep == NULL)
        return;
    child_cancel(sweep->child);
    free(sweep);
}

/* What is no inventory from its beginning is too large. */
static size_t announced(const void *head, size_t n)
{
    if (n < FAB_WIRE_HEAD)
        return 0;
    uint64_t total = fab_wire_total(head);
    return total == 0 || total > FAB_WIRE_MAX ? SIZE_MAX : (size_t)total;
}

static void on_child(struct child_result *child, void *arg)
{
    struct sweep *sweep = arg;
    struct sweep_result result = {
        .code = child->code, .err = child->err, .milliseconds = child->milliseconds};
    fab_inventory_init(&result.inv);
    if (result.code == PMIXFAB_OK)
        result.code = fab_wire_decode(child->bytes, child->size, &result.inv, &result.err);
    sweep_done_fn done = sweep->done;
    void *cbdata = sweep->cbdata;
    free(sweep);
    done(&result, cbdata);
    fab_inventory_destroy(&result.inv);
}

int sweep_start(struct event_base *base, const struct config *config, sweep_done_fn done, void *cbdata,
                struct sweep **out, struct fab_err *err)
{
    *out = NULL;
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    if (sweep == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "sweep: out of memory");
    sweep->done = done;
    sweep->cbdata = cbdata;
    char daemon[16], smps[16], timeout[16], retries[16];
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    snprintf(smps, sizeof(smps), "%u", config->max_smps);
    snprintf(timeout, sizeof(timeout), "%u", config->timeout_ms);
    snprintf(retries, sizeof(retries), "%u", config->retries);
    char *argv[CONFIG_MAX_LIST + 7] = {"fabricd", SWEEP_CHILD_OPTION, daemon, smps, timeout, retries};
    for (unsigned i = 0, n = 6; i < config->probes.n; i++) {
        const struct probe *probe = probe_find(config->probes.items[i], NULL);
        if (probe == NULL || !probe_is_local(probe)) /* an unknown one is the child's to refuse */
            argv[n++] = config->probes.items[i];
    }
    const struct child_order order = {.what = "sweep",
                                      .argv = argv,
                                      .env = &config->sweep_env,
                                      .deadline = config->deadline,
                                      .limit = FAB_WIRE_MAX,
                                      .total = announced,
                                      .done = on_child,
                                      .cbdata = sweep};
    int rc = child_start(base, &order, &sweep->child, err);
    if (rc != PMIXFAB_OK) {
        free(sweep);
        return rc;
    }
    *out = sweep;
    return PMIXFAB_OK;
}
