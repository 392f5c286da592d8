/* correlate.c - what several changes come to: the conclusions, in the order in which they are drawn. */
#include "topo/changes/correlate.h"

#include <stdlib.h>

#include "topo/changes/correlation.h"

static bool correlate_prepare(struct correlation *s)
{
    s->to_after = malloc((s->before->n_nodes + 1u) * sizeof(*s->to_after));
    s->to_before = malloc((s->after->n_nodes + 1u) * sizeof(*s->to_before));
    return s->to_after != NULL && s->to_before != NULL && raw_changes_index(s);
}

static void correlate_conclude(struct correlation *s)
{
    correlation_switches_replaced(s);
    correlation_hcas_replaced(s);
    correlation_hosts_moved(s);
    correlation_cables_moved(s);
    correlation_claims(s);
    correlation_renamed(s);
    if (correlation_match_lost(s)) {
        correlation_returned(s);
        correlation_links_returned(s);
    }
    correlation_gone(s);
    correlation_ports(s);
    correlation_rest(s);
}

int fab_diff_correlate_with(const struct fab_inventory *before, const struct fab_inventory *after,
                            struct fab_retired *lost, struct fab_diff *diff)
{
    struct fab_diff told = {0};
    struct correlation s = {
        .before = before, .after = after, .raw = diff, .lost = lost, .out = {.diff = &told}};

    if ((!before->finished && before->n_nodes > 0) || !after->finished)
        return PMIXFAB_ERR_INVAL;
    for (uint32_t i = 0; lost != NULL && i < lost->cables.n; i++)
        lost->cables.items[i].used = false;
    if (diff->n == 0)
        return PMIXFAB_OK;
    s.out.rc = correlate_prepare(&s) ? correlation_match(&s) : PMIXFAB_ERR_NOMEM;
    if (s.out.rc == PMIXFAB_OK)
        correlate_conclude(&s);
    free(s.by_key);
    free(s.taken);
    free(s.to_after);
    free(s.to_before);
    free(s.lost_after);
    free(s.after_lost);
    free(s.ends);
    free(s.subjects.text);
    if (s.out.rc != PMIXFAB_OK) {
        fab_diff_destroy(&told);
        return s.out.rc;
    }
    fab_diff_sort(&told);
    told.n_lost = diff->n_lost;
    fab_diff_destroy(diff);
    *diff = told;
    return PMIXFAB_OK;
}
