#include "fabricd/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/child.h"
#include "probes/probe.h"
#include "topo/wire.h"

struct sweep {
    struct child *child;
    sweep_done_fn done;
    void *cbdata;
    void *input; /* what the child is told */
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
        child_leave(sweep->child, false); /* the libraries below it would not hear of a signal */
}

/* ---- a sweep of what changed ---------------------------------------------------------------------- */

/* A process tells its own child: numbers are as this machine has them. */
struct order_head {
    uint32_t all, n;
    uint64_t inventory; /* bytes */
};

int sweep_order_encode(const struct sweep_again *again, void **bytes, size_t *size)
{
    const struct probe_noticed *noticed = again->noticed;
    const struct order_head head = {.all = noticed->all, .n = noticed->n, .inventory = again->size};
    const size_t guids = noticed->n * sizeof(*noticed->guids);
    *size = sizeof(head) + guids + again->size;
    char *to = *bytes = malloc(*size);
    if (to == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(to, &head, sizeof(head));
    if (guids > 0)
        memcpy(to + sizeof(head), noticed->guids, guids);
    memcpy(to + sizeof(head) + guids, again->inventory, again->size);
    return PMIXFAB_OK;
}

int sweep_order_decode(const void *bytes, size_t size, struct probe_noticed *noticed,
                       struct fab_inventory *inv, struct fab_err *err)
{
    struct order_head head;
    const char *at = bytes;
    *noticed = (struct probe_noticed){0};
    fab_inventory_init(inv);
    if (size < sizeof(head))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the order is too short");
    memcpy(&head, at, sizeof(head));
    at += sizeof(head);
    size -= sizeof(head);
    if (head.n > size / sizeof(uint64_t) || size - head.n * sizeof(uint64_t) != head.inventory)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the order is not as long as it says");
    noticed->all = head.all != 0;
    noticed->guids = malloc((head.n + 1) * sizeof(*noticed->guids));
    if (noticed->guids == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for %u changes", head.n);
    memcpy(noticed->guids, at, head.n * sizeof(*noticed->guids));
    noticed->n = noticed->cap = head.n;
    return fab_wire_decode(at + head.n * sizeof(*noticed->guids), head.inventory, inv, err);
}

/* ---- the daemon's side ---------------------------------------------------------------------------- */

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
    if (result.code == PMIXFAB_OK) {
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

int sweep_start(struct event_base *base, const struct config *config, const struct sweep_again *again,
                sweep_done_fn done, void *cbdata, struct sweep **out, struct fab_err *err)
{
    size_t input_size = 0;
    *out = NULL;
    struct sweep *sweep = calloc(1, sizeof(*sweep));
    if (sweep == NULL ||
        (again != NULL && sweep_order_encode(again, &sweep->input, &input_size) != PMIXFAB_OK)) {
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
    for (unsigned i = 0, n = 6; i < config->probes.n; i++) {
        const struct probe *probe = probe_find(config->probes.items[i], NULL);
        if (probe == NULL || !probe_is_local(probe)) /* an unknown one is the child's to refuse */
            argv[n++] = config->probes.items[i];
    }
    const struct child_order order = {.what = "sweep",
                                      .argv = argv,
                                      .env = &config->sweep_env,
                                      .input = sweep->input,
                                      .input_size = input_size,
                                      .deadline = config->deadline,
                                      .limit = FAB_WIRE_MAX,
                                      .total = announced,
                                      .done = on_child,
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
