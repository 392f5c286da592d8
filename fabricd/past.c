#include "fabricd/past.h"

#include <stdlib.h>
#include <string.h>

#include "topo/handle.h"

void past_open(struct past *past)
{
    *past = (struct past){.served = served_get()};
}

static void table_free(struct past_table *table)
{
    free(table->keys);
    free(table->hosts);
}

void past_close(struct past *past)
{
    served_set_put(past->served);
    table_free(&past->macs);
    table_free(&past->systems);
    *past = (struct past){0};
}

static void collect(const struct served_set *served, enum fab_fact kind, struct past_table *table)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < served->n; i++)
        most += served->planes[i]->fab->meta->n_devices;
    table->collected = true;
    table->keys = calloc(2 * (size_t)most + 1, sizeof(*table->keys));
    table->hosts = calloc((size_t)most + 1, sizeof(*table->hosts));
    if (table->keys == NULL || table->hosts == NULL)
        return;
    for (uint32_t i = 0; i < served->n; i++) {
        const struct pmixfab *fab = served->planes[i]->fab;
        for (uint32_t d = 0; d < fab->meta->n_devices; d++) {
            uint64_t value = fab_handle_said(fab, d, kind);
            if (value == 0)
                continue;
            table->hosts[table->n] = fab_handle_host(fab, fab->costs.host[d]);
            table->keys[table->n] = (struct fab_key){value, table->n};
            table->n++;
        }
    }
    fab_keys_sort(table->keys, table->keys + table->n, table->n);
}

static const char *look_up(const struct served_set *served, enum fab_fact kind, uint64_t value,
                           struct past_table *table)
{
    if (!table->collected)
        collect(served, kind, table);
    uint32_t found = table->n == 0 ? UINT32_MAX : fab_keys_find(table->keys, table->n, value);
    return found == UINT32_MAX ? NULL : table->hosts[found];
}

const char *past_holder(void *cbdata, enum fab_fact kind, uint64_t value)
{
    struct past *past = cbdata;
    if (past->served == NULL)
        return NULL;
    if (kind == FAB_FACT_MAC || kind == FAB_FACT_SYSTEM_GUID)
        return look_up(past->served, kind, value, kind == FAB_FACT_MAC ? &past->macs : &past->systems);
    for (uint32_t i = 0; i < past->served->n; i++) {
        const char *host = fab_handle_holder(past->served->planes[i]->fab, kind, value);
        if (host != NULL)
            return host;
    }
    return NULL;
}
