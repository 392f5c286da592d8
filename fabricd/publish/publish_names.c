/* publish_names.c - what the nodes of a sweep are called: what they say, and what hosts say late. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/publish/update.h"
#include "fabricd/util/log.h"
#include "topo/base/order.h"
#include "topo/base/search.h"
#include "topo/correlate/kept_names.h"
#include "topo/inventory/host_name.h"
#include "topo/report/report.h"

/* A GUID, and the host that reports it. */
struct reported_guid {
    uint64_t guid;
    const char *host;
};

struct late_names {
    struct update *update;
    struct reported_guid *guids; /* by GUID, collected when somebody asks first */
    uint32_t n;
    int rc;
};

static int compare_reported(const void *a, const void *b)
{
    const struct reported_guid *x = a, *y = b;
    return FAB_ORDER(x->guid, y->guid) ?: strcmp(x->host, y->host);
}

static void collect_reported(struct late_names *late)
{
    const struct publish_request *input = late->update->input;
    size_t most = 1;
    for (uint32_t r = 0; r < input->n_reports; r++)
        most += input->reports[r]->report.n_items;
    late->guids = malloc(most * sizeof(*late->guids));
    if (late->guids == NULL) {
        late->rc = PMIXFAB_ERR_NOMEM;
        return;
    }
    for (uint32_t r = 0; r < input->n_reports; r++) {
        const struct fab_report *report = &input->reports[r]->report;
        for (uint32_t i = 0; i < report->n_items; i++) {
            const char *guid = fab_report_text(report, i, FAB_FACT_NODE_GUID);
            if (guid != NULL)
                late->guids[late->n++] = (struct reported_guid){strtoull(guid, NULL, 16), report->host};
        }
    }
    qsort(late->guids, late->n, sizeof(*late->guids), compare_reported);
}

static bool is_reported_by(const char *host, uint64_t guid, void *cbdata)
{
    struct late_names *late = cbdata;
    if (late->guids == NULL)
        collect_reported(late);
    uint32_t first = FAB_LOWER_BOUND(0, late->n, i, late->guids[i].guid < guid), end = first;
    while (end < late->n && late->guids[end].guid == guid && fab_same_host(late->guids[end].host, host))
        end++;
    return end > first && (end == late->n || late->guids[end].guid != guid);
}

static void tell_late(const struct fab_node *node, const char *what, const char *text, bool kept,
                      void *cbdata)
{
    struct late_names *late = cbdata;
    if (kept && late->rc == PMIXFAB_OK)
        late->rc = update_verify_name(late->update, node->guid, text);
    else if (!kept && late->update->otherwise == NULL)
        log_warning("names: %s %s; it goes by its GUID until its host names it", what, text);
}

int update_name(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    struct late_names late = {.update = update};
    const struct fab_names_known known = {.before = &publisher->current,
                                          .lost = &publisher->absent.lost,
                                          .reported = is_reported_by,
                                          .told = tell_late,
                                          .cbdata = &late};
    uint32_t n_kept = 0;
    int rc = publish_fill_gaps(publisher, &update->inv);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    rc = fab_names_apply(publisher->names, &update->inv, err);
    if (rc != PMIXFAB_OK || publisher->current.n_nodes == 0)
        return rc;
    rc = fab_keep_names(&known, &update->inv, &n_kept) ?: late.rc;
    free(late.guids);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    return n_kept == 0 ? PMIXFAB_OK : fab_names_apply(publisher->names, &update->inv, err);
}
