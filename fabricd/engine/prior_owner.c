#include "fabricd/engine/prior_owner.h"

#include <stdlib.h>

#include "topo/base/search.h"
#include "topo/snapshot/reader.h"

void prior_owner_open(struct prior_owner *prior, struct served *served)
{
    *prior = (struct prior_owner){.served = served_get(served)};
}

void prior_owner_close(struct prior_owner *prior)
{
    served_set_put(prior->served);
    free(prior->macs.entries);
    free(prior->ids.entries);
    *prior = (struct prior_owner){0};
}

static int by_value(const void *a, const void *b)
{
    const struct prior_owner_entry *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static void prior_owner_collect(const struct served_set *served, enum fab_fact kind,
                                struct prior_owner_table *table)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < served->n; i++)
        most += served->planes[i]->fab->meta->n_devices;
    table->collected = true;
    table->entries = calloc((size_t)most + 1, sizeof(*table->entries));
    if (table->entries == NULL)
        return;
    for (uint32_t i = 0; i < served->n; i++) {
        const struct pmixfab *fab = served->planes[i]->fab;
        for (uint32_t d = 0; d < fab->meta->n_devices; d++) {
            uint64_t node, value = fab_reader_said(fab, d, kind, &node);
            if (value == 0)
                continue;
            table->entries[table->n] =
                (struct prior_owner_entry){value, node, fab_reader_host(fab, fab->costs.host[d]), table->n};
            table->n++;
        }
    }
    qsort(table->entries, table->n, sizeof(*table->entries), by_value);
}

static const char *prior_owner_name(const struct served_set *served, enum fab_fact kind, uint64_t value,
                                    uint64_t node, struct prior_owner_table *table)
{
    if (!table->collected)
        prior_owner_collect(served, kind, table);
    const struct prior_owner_entry wanted = {.value = value, .node = node};
    uint32_t at = FAB_LOWER_BOUND(0, table->n, i, by_value(&table->entries[i], &wanted) < 0);
    const struct prior_owner_entry *found = at < table->n ? &table->entries[at] : NULL;
    return found != NULL && found->value == value && found->node == node ? found->host : NULL;
}

const char *prior_owner_of(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node)
{
    struct prior_owner *prior = cbdata;
    if (prior->served == NULL)
        return NULL;
    for (uint32_t i = 0; kind != FAB_FACT_MAC && i < prior->served->n; i++) {
        const char *host = fab_reader_holder(prior->served->planes[i]->fab, kind, value, node);
        if (host != NULL)
            return host;
    }
    if (kind == FAB_FACT_MAC || kind == FAB_FACT_SYSTEM_GUID)
        return prior_owner_name(prior->served, kind, value, node,
                                kind == FAB_FACT_MAC ? &prior->macs : &prior->ids);
    return NULL;
}
