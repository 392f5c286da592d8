/* api_fact.c - what is known of a device beside its place in the fabric, fact by fact. */
#include <string.h>

#include "topo/base/give.h"
#include "topo/model/model.h"
#include "topo/snapshot/reader.h"

static const char compute_name[] = "compute";

/* The facts of a device, *n of them. Kinds ascend, so those of a newer writer, which have no name, are last
 * but for FAB_FACT_COMPUTE. */
static const struct snap_fact *api_facts_of(const struct pmixfab *fab, uint32_t index, uint32_t *n)
{
    *n = 0;
    if (fab->fact_at == NULL)
        return NULL;
    *n = fab->fact_at[index + 1] - fab->fact_at[index];
    return fab->facts + fab->fact_at[index];
}

int pmixfab_fact_sized(const struct pmixfab *fab, uint32_t index, uint32_t i, struct pmixfab_fact *out,
                       size_t size)
{
    uint32_t n;

    if (fab == NULL || out == NULL || size == 0 || index >= fab->meta->n_devices)
        return PMIXFAB_ERR_INVAL;
    const struct snap_fact *facts = api_facts_of(fab, index, &n);
    if (i >= n)
        return PMIXFAB_ERR_NOTFOUND;
    if (facts[i].kind >= FAB_FACTS) { /* the first that has no name stands for COMPUTE, which is the last */
        if ((i > 0 && facts[i - 1].kind >= FAB_FACTS) || facts[n - 1].kind != FAB_FACT_COMPUTE)
            return PMIXFAB_ERR_NOTFOUND;
        i = n - 1;
    }
    const struct pmixfab_fact made = {
        .kind =
            facts[i].kind == FAB_FACT_COMPUTE ? compute_name : fab_fact_name((enum fab_fact)facts[i].kind),
        .text = fab_reader_string(fab, facts[i].text),
        .sources = facts[i].sources,
        .chosen = (facts[i].flags & FAB_DETAIL_CHOSEN) != 0,
        .conflict = (facts[i].flags & FAB_DETAIL_CONFLICT) != 0,
        .estimate = (facts[i].flags & FAB_DETAIL_ESTIMATE) != 0,
        .software = (facts[i].flags & FAB_DETAIL_SOFTWARE) != 0,
        .yielded = (facts[i].flags & FAB_DETAIL_OUTRANKED) != 0,
    };
    fab_give(out, size, &made, sizeof(made));
    return PMIXFAB_OK;
}

const char *pmixfab_fact_text(const struct pmixfab *fab, uint32_t index, const char *kind)
{
    uint32_t n;

    if (fab == NULL || kind == NULL || index >= fab->meta->n_devices)
        return NULL;
    const uint32_t wanted =
        strcmp(kind, compute_name) == 0 ? FAB_FACT_COMPUTE : (uint32_t)fab_fact_parse(kind);
    const struct snap_fact *facts = api_facts_of(fab, index, &n);
    for (uint32_t i = 0; wanted != 0 && i < n && facts[i].kind <= wanted; i++)
        if (facts[i].kind == wanted)
            return (facts[i].flags & FAB_DETAIL_CHOSEN) != 0 ? fab_reader_string(fab, facts[i].text) : NULL;
    return NULL;
}

const char *pmixfab_source_name(uint32_t i)
{
    return i < FAB_SOURCES ? fab_source_name((enum fab_source)i) : NULL;
}
