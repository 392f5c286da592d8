#include "fabricd/missing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000ll

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec / 1000;
}

void moment_now(struct moment *out)
{
    static char boot[MISSING_BOOT_MAX]; /* it stays the same for as long as we live */
    if (boot[0] == '\0') {
        FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
        if (f == NULL || fscanf(f, "%39s", boot) != 1)
            snprintf(boot, sizeof(boot), "unknown");
        if (f != NULL)
            fclose(f);
    }
    out->wall = read_clock(CLOCK_REALTIME);
    out->running = read_clock(CLOCK_BOOTTIME);
    snprintf(out->boot, sizeof(out->boot), "%s", boot);
}

void missing_free(struct missing *missing)
{
    free(missing->nodes);
    *missing = (struct missing){0};
}

/* ---- from the store ---- */

struct loading {
    const struct moment *now;
    struct missing *out;
};

static int add_row(const struct store_missing *row, void *cbdata)
{
    const struct loading *loading = cbdata;
    const struct moment *now = loading->now;
    struct missing *out = loading->out;
    struct missing_node *larger = reallocarray(out->nodes, (size_t)out->n + 1, sizeof(*larger));
    if (larger == NULL)
        return PMIXFAB_ERR_NOMEM;
    bool same_boot = strcmp(row->boot, now->boot) == 0 && row->counted <= now->running;
    out->nodes = larger;
    out->nodes[out->n++] = (struct missing_node){
        .guid = row->guid, .since = row->since, .counted = same_boot ? row->counted : now->running};
    return 0;
}

static int by_guid(const void *a, const void *b)
{
    const struct missing_node *x = a, *y = b;
    return (x->guid > y->guid) - (x->guid < y->guid);
}

int missing_load(struct store *store, const struct moment *now, struct missing *out, struct fab_err *err)
{
    struct loading loading = {now, out};
    *out = (struct missing){0};
    int rc = store_missing_load(store, add_row, &loading, err);
    if (rc == PMIXFAB_OK && out->n > 1)
        qsort(out->nodes, out->n, sizeof(*out->nodes), by_guid);
    if (rc == PMIXFAB_ERR_NOMEM)
        fab_fail(err, rc, "out of memory");
    if (rc != PMIXFAB_OK)
        missing_free(out);
    return rc;
}

/* ---- following ---- */

struct missing_node *missing_find(const struct missing *missing, uint64_t guid)
{
    const struct missing_node key = {.guid = guid};
    return missing->n == 0 ? NULL : bsearch(&key, missing->nodes, missing->n, sizeof(key), by_guid);
}

int missing_follow(const struct missing *before, const struct fab_inventory *inv, const struct moment *now,
                   struct missing *out)
{
    uint32_t n = 0;
    *out = (struct missing){0};
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        n += inv->nodes[i].missing;
    out->nodes = calloc((size_t)n + 1, sizeof(*out->nodes));
    if (out->nodes == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        if (!inv->nodes[i].missing)
            continue;
        struct missing_node *node = &out->nodes[out->n++];
        const struct missing_node *known = missing_find(before, inv->nodes[i].guid);
        *node =
            (struct missing_node){.guid = inv->nodes[i].guid, .since = now->wall, .counted = now->running};
        if (known != NULL)
            *node = *known;
        node->is_hca = inv->nodes[i].kind == FAB_HCA;
    }
    return PMIXFAB_OK;
}

/* ---- time ---- */

static int64_t left(const struct missing_node *node, unsigned retire, const struct moment *now)
{
    return node->counted + retire * SECOND - now->running;
}

bool missing_is_due(const struct missing_node *node, unsigned retire, const struct moment *now)
{
    return left(node, retire, now) <= SECOND;
}

int64_t missing_next(const struct missing *missing, unsigned retire, const struct moment *now)
{
    int64_t first = -1;
    for (uint32_t i = 0; i < missing->n; i++) {
        int64_t one = left(&missing->nodes[i], retire, now);
        one = one < 0 || missing->nodes[i].forgotten ? 0 : one;
        if (missing->nodes[i].is_hca && (first < 0 || one < first))
            first = one;
    }
    return first;
}
