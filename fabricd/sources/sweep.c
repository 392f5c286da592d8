#include "fabricd/sources/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fabricd/process/child.h"
#include "probes/registry.h"

struct sweep {
    struct child *child;
    sweep_done_fn done;
    void *cbdata;
    void *input; /* for the child */
};

void sweep_cancel(struct sweep *sweep)
{
    if (sweep == NULL)
        return;
    child_cancel(sweep->child);
    free(sweep->input);
    free(sweep);
}

void sweep_leave(struct sweep *sweep)
{
    if (sweep != NULL)
        child_leave(sweep->child, false); /* without a signal, which would kill it before it closes devices */
}

static void sweep_on_child(struct child_result *child, void *arg)
{
    struct sweep *sweep = arg;
    struct sweep_result result = {
        .code = child->code, .err = child->err, .milliseconds = child->milliseconds};
    struct sweep_answer answer = {.whole = true};
    fab_inventory_init(&result.inv);
    if (result.code == PMIXFAB_OK)
        result.code = sweep_answer_decode(child->bytes, &child->size, &answer, &result.err);
    if (result.code == PMIXFAB_OK) {
        result.inv = answer.inv;
        result.whole = answer.whole;
        result.why = answer.why;
        result.bytes = child->bytes;
        result.size = child->size;
        child->bytes = NULL;
    }
    sweep_done_fn done = sweep->done;
    void *cbdata = sweep->cbdata;
    free(sweep->input);
    free(sweep);
    done(&result, cbdata);
    free(result.bytes);
    fab_inventory_destroy(&result.inv);
}

unsigned sweep_probes(const struct config *config, char **argv)
{
    unsigned n = 0;
    for (unsigned i = 0; i < config->probes.n; i++) {
        const struct probe *probe = probe_find(config->probes.items[i], NULL);
        if (probe == NULL || !probe_is_local(probe)) /* an unknown probe is rejected by the child */
            argv[n++] = config->probes.items[i];
    }
    return n;
}

int sweep_start(struct event_base *base, const struct config *config, const struct switch_sweep *part,
                sweep_done_fn done, void *cbdata, struct sweep **out, struct fab_err *err)
{
    size_t input_size = 0;
    *out = NULL;
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    if (sweep == NULL ||
        (part != NULL && sweep_order_encode(part, &sweep->input, &input_size) != PMIXFAB_OK)) {
        free(sweep);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "sweep: out of memory");
    }
    sweep->done = done;
    sweep->cbdata = cbdata;
    char daemon[16], smps[16], timeout[16], retries[16];
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    snprintf(smps, sizeof(smps), "%u", config->max_smps);
    snprintf(timeout, sizeof(timeout), "%u", config->timeout_ms);
    snprintf(retries, sizeof(retries), "%u", config->retries);
    char *argv[CONFIG_MAX_LIST + 7] = {"fabricd", SWEEP_CHILD_OPTION, daemon, smps, timeout, retries};
    sweep_probes(config, argv + 6);
    const struct child_order order = {.what = "sweep",
                                      .argv = argv,
                                      .env = &config->sweep_env,
                                      .input = sweep->input,
                                      .input_size = input_size,
                                      .deadline = config->deadline,
                                      .limit = SWEEP_ANSWER_MAX,
                                      .total = sweep_answer_total,
                                      .done = sweep_on_child,
                                      .cbdata = sweep};
    int rc = child_start(base, &order, &sweep->child, err);
    if (rc != PMIXFAB_OK) {
        free(sweep->input);
        free(sweep);
        return rc;
    }
    *out = sweep;
    return PMIXFAB_OK;
}
