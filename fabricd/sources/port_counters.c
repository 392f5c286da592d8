/* port_counters.c - the daemon's side of reading counters, and the protocol between the two. */
#include "fabricd/sources/port_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/process/child.h"
#include "fabricd/sources/sweep.h"
#include "probes/registry.h"

struct counters {
    struct child *child;
    counters_done_fn done;
    void *cbdata;
    void *input;
    uint32_t n;
};

struct counters_head {
    uint64_t n, parts; /* number of ports; number of bytes */
};

int counters_order_encode(const struct probe_reading *list, uint32_t n, const void *parts, size_t size,
                          void **bytes, size_t *total)
{
    const struct counters_head head = {n, size};
    *total = sizeof(head) + n * sizeof(*list) + size;
    char *to = *bytes = malloc(*total);
    if (to == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(to, &head, sizeof(head));
    memcpy(to + sizeof(head), list, n * sizeof(*list));
    memcpy(to + sizeof(head) + n * sizeof(*list), parts, size);
    return PMIXFAB_OK;
}

int counters_order_decode(const void *bytes, size_t size, struct probe_reading **list, uint32_t *n,
                          const void **parts, size_t *parts_size, struct fab_err *err)
{
    struct counters_head head;
    *list = NULL;
    if (size < sizeof(head))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the order is too short");
    memcpy(&head, bytes, sizeof(head));
    const size_t ports = head.n * sizeof(**list);
    if (head.n == 0 || head.n > COUNTERS_MAX || size - sizeof(head) < ports ||
        size - sizeof(head) - ports != head.parts)
        return fab_fail(err, PMIXFAB_ERR_CORRUPT, "the order does not have the length in its head");
    *list = malloc(ports);
    if (*list == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    memcpy(*list, (const char *)bytes + sizeof(head), ports);
    *n = (uint32_t)head.n;
    *parts = (const char *)bytes + sizeof(head) + ports;
    *parts_size = head.parts;
    return PMIXFAB_OK;
}

bool counters_can(const struct config *config)
{
    for (unsigned i = 0; i < config->probes.n; i++) {
        const struct probe *probe = probe_find(config->probes.items[i], NULL);
        if (probe != NULL && probe->counters != NULL)
            return true;
    }
    return false;
}

void counters_cancel(struct counters *counters)
{
    if (counters == NULL)
        return;
    child_cancel(counters->child);
    free(counters->input);
    free(counters);
}

static void counters_on_child(struct child_result *result, void *arg)
{
    struct counters *counters = arg;
    const size_t should = counters->n * sizeof(struct probe_reading);
    int rc = result->code;
    if (rc == PMIXFAB_OK && result->size != should)
        rc = fab_fail(&result->err, PMIXFAB_ERR_CORRUPT, "counters: the answer has %zu bytes, and not %zu",
                      result->size, should);
    counters->done(rc, &result->err, (const void *)result->bytes, rc == PMIXFAB_OK ? counters->n : 0,
                   counters->cbdata);
    free(counters->input);
    free(counters);
}

int counters_start(struct event_base *base, const struct config *config, const struct probe_reading *list,
                   uint32_t n, const void *parts, size_t size, counters_done_fn done, void *cbdata,
                   struct counters **out, struct fab_err *err)
{
    size_t input_size;
    *out = NULL;
    struct counters *counters = calloc(1, sizeof(*counters));
    if (counters == NULL ||
        counters_order_encode(list, n, parts, size, &counters->input, &input_size) != PMIXFAB_OK) {
        free(counters);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "counters: out of memory");
    }
    counters->done = done;
    counters->cbdata = cbdata;
    counters->n = n;
    char daemon[16], smps[16];
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    snprintf(smps, sizeof(smps), "%u", config->max_smps);
    char *argv[CONFIG_MAX_LIST + 5] = {"fabricd", COUNTERS_CHILD_OPTION, daemon, smps};
    sweep_probes(config, argv + 4);
    const struct child_order order = {.what = "counters",
                                      .argv = argv,
                                      .env = &config->sweep_env,
                                      .input = counters->input,
                                      .input_size = input_size,
                                      .deadline = COUNTERS_DEADLINE,
                                      .limit = COUNTERS_MAX * sizeof(*list),
                                      .done = counters_on_child,
                                      .cbdata = counters};
    int rc = child_start(base, &order, &counters->child, err);
    if (rc != PMIXFAB_OK) {
        free(counters->input);
        free(counters);
        return rc;
    }
    *out = counters;
    return PMIXFAB_OK;
}
