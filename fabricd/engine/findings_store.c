/* findings_store.c - one finding, and all of them from and into the store. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/engine/memory.h"
#include "topo/base/array.h"
#include "topo/base/order.h"

struct finding *finding_new(uint64_t id, enum fab_check_kind kind, const char *place)
{
    struct finding *finding = calloc(1, sizeof(*finding));
    char *copy = strdup(place), *what = strdup("");
    if (finding == NULL || copy == NULL || what == NULL) {
        free(finding);
        free(copy);
        free(what);
        return NULL;
    }
    *finding = (struct finding){
        .row = {.id = id, .kind = fab_check_name(kind), .place = copy}, .kind = kind, .what = what};
    return finding;
}

void finding_free(struct finding *finding)
{
    if (finding == NULL)
        return;
    free((char *)finding->row.place);
    free(finding->what);
    free(finding);
}

struct findings_loading {
    struct findings *findings;
    uint32_t cap;
    bool failed;
};

/* One of a kind that there is no more is forgotten: it cannot be found. */
static int findings_load_row(const struct store_finding *row, void *cbdata)
{
    struct findings_loading *loading = cbdata;
    struct findings *findings = loading->findings;
    int kind = 1;
    while (kind < FAB_CHECK_KINDS && strcmp(fab_check_name((enum fab_check_kind)kind), row->kind) != 0)
        kind++;
    if (kind == FAB_CHECK_KINDS)
        return 0;
    struct finding *finding = FAB_ARRAY_ROOM(&findings->all, &loading->cap, findings->n + 1)
                                  ? finding_new(row->id, (enum fab_check_kind)kind, row->place)
                                  : NULL;
    loading->failed = finding == NULL;
    if (loading->failed)
        return 1;
    const struct store_finding own = finding->row;
    finding->row = *row;
    finding->row.kind = own.kind;
    finding->row.place = own.place;
    findings->all[findings->n++] = finding;
    return 0;
}

static int findings_compare_id(const void *x, const void *y)
{
    const struct finding *const *a = x, *const *b = y;
    return FAB_ORDER((*a)->row.id, (*b)->row.id);
}

int findings_load(struct findings *findings, struct fab_err *err)
{
    struct findings_loading loading = {.findings = findings};
    int rc = store_findings_load(findings->store, findings_load_row, &loading, err);
    if (rc == PMIXFAB_OK && loading.failed)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (findings->n > 1)
        qsort(findings->all, findings->n, sizeof(*findings->all), findings_compare_id);
    return rc;
}

int findings_save(struct findings *findings, struct fab_err *err)
{
    uint32_t n = 0;
    const struct store_finding **rows = calloc(findings->n + findings->n_dropped + 1, sizeof(*rows));
    if (rows == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "findings: out of memory");
    for (uint32_t i = 0; i < findings->n_dropped; i++)
        rows[n++] = &findings->dropped[i];
    for (uint32_t i = 0; i < findings->n; i++)
        if (findings->all[i]->unsaved)
            rows[n++] = &findings->all[i]->row;
    int rc = n == 0 ? PMIXFAB_OK : store_findings_put(findings->store, rows, n, err);
    free(rows);
    if (rc != PMIXFAB_OK)
        return rc;
    findings->n_dropped = 0;
    for (uint32_t i = 0; i < findings->n; i++)
        findings->all[i]->unsaved = false;
    return PMIXFAB_OK;
}
