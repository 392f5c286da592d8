#include "fabricd/past.h"

#include <stdlib.h>
#include <string.h>

#include "topo/handle.h"

void past_open(struct past *past)
{
    *past = (struct past){.served = served_get()};
}

void past_close(struct past *past)
{
    served_set_put(past->served);
    free(past->macs);
    free(past->hosts);
    *past = (struct past){0};
}

static void collect(struct past *past)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < past->served->n; i++)
        most += past->served->planes[i]->fab->meta->n_devices;
    past->collected = true;
    past->macs = calloc(2 * (size_t)most + 1, sizeof(*past->macs));
    past->hosts = calloc((size_t)most + 1, sizeof(*past->hosts));
    if (past->macs == NULL || past->hosts == NULL)
        return;
    for (uint32_t i = 0; i < past->served->n; i++) {
        const struct pmixfab *fab = past->served->planes[i]->fab;
        for (uint32_t d = 0; d < fab->meta->n_devices; d++) {
            uint64_t mac = fab_handle_mac(fab, d);
            if (mac == 0)
                continue;
            past->hosts[past->n] = fab_handle_host(fab, fab->costs.host[d]);
            past->macs[past->n] = (struct fab_key){mac, past->n};
            past->n++;
        }
    }
    fab_keys_sort(past->macs, past->macs + past->n, past->n);
}

const char *past_holder(void *cbdata, enum fab_fact kind, uint64_t value)
{
    struct past *past = cbdata;
    if (past->served == NULL)
        return NULL;
    if (kind == FAB_FACT_MAC) {
        if (!past->collected)
            collect(past);
        uint32_t found = past->n == 0 ? UINT32_MAX : fab_keys_find(past->macs, past->n, value);
        return found == UINT32_MAX ? NULL : past->hosts[found];
    }
    for (uint32_t i = 0; i < past->served->n; i++) {
        const char *host = fab_handle_holder(past->served->planes[i]->fab, kind, value);
        if (host != NULL)
            return host;
    }
    return NULL;
}
