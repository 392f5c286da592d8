#include "fabricd/publish.h"

#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "fabricd/count.h"
#include "fabricd/log.h"
#include "fabricd/look.h"
#include "fabricd/publish_priv.h"

static int64_t publish_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void publication_free(struct publication *publication)
{
    if (publication == NULL)
        return;
    served_set_put(publication->set);
    free(publication->planes);
    free(publication);
}

/* ---- into the store ------------------------------------------------------------------------------- */

/* What was drafted is in the store now. */
static void take_draft(struct draft *draft)
{
    struct publisher *publisher = draft->publisher;
    if (draft->after == &draft->inv) {
        fab_inventory_destroy(&publisher->current);
        publisher->current = draft->inv;
        fab_inventory_init(&draft->inv);
        draft->after = &publisher->current;
    }
    keep_take(draft);
    publish_remembered(draft);
    publish_told(publisher, &draft->told);
    fab_findings_destroy(&publisher->findings);
    publisher->checked = false;
    publisher->compare = true;
}

/* Facts that no reader sees (a LID, say) are stored without a generation. */
static int store_quietly(struct draft *draft, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    const struct store_publication facts = {.before = &publisher->current,
                                            .after = draft->after,
                                            .told = draft->told.rows,
                                            .n_told = draft->told.n,
                                            .missing = draft->missing_rows,
                                            .n_missing = draft->missing.n};
    int rc = PMIXFAB_OK;
    if (draft->told.n > 0 || !fab_inventory_equal(&publisher->current, draft->after))
        rc = store_publish(publisher->store, &facts, err);
    if (rc == PMIXFAB_OK)
        take_draft(draft);
    return rc;
}

/* Everything that can fail: files beside the old ones, then the commit. */
static int publish_write_change(struct draft *draft, uint64_t generation, int64_t published, bool partial,
                                struct publication **out, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    struct ready ready = {.draft = draft, .generation = generation, .published = published, .out = out};
    const struct store_publication change = {.ready = ready_wait,
                                             .ready_data = &ready,
                                             .generation = generation,
                                             .published = published,
                                             .partial = partial,
                                             .before = &publisher->current,
                                             .after = draft->after,
                                             .diff = &draft->diff,
                                             .planes = draft->rows,
                                             .n_planes = draft->n_rows,
                                             .told = draft->told.rows,
                                             .n_told = draft->told.n,
                                             .missing = draft->missing_rows,
                                             .n_missing = draft->missing.n,
                                             .lost_before = &publisher->lost,
                                             .lost = draft->remembers ? &draft->lost : NULL};
    ready_begin(&ready);
    int rc = store_publish(publisher->store, &change, err);
    ready_end(&ready);
    return rc;
}

static int store_change(struct draft *draft, bool partial, struct publication **out, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    struct store_plane *retired = NULL;
    uint32_t n_retired = 0;
    uint64_t generation = 0;
    int64_t published = publish_now_us();
    int rc = store_next_generation(publisher->store, &generation, err);
    if (rc == PMIXFAB_OK)
        rc = draft_remember(draft, generation, err);
    if (rc == PMIXFAB_OK)
        rc = draft_plan_retired(draft, &retired, &n_retired, err);
    if (rc != PMIXFAB_OK)
        return rc;
    expected_mark(publisher->expected, &draft->diff, published);
    rc = publish_write_change(draft, generation, published, partial, out, err);
    if (rc != PMIXFAB_OK) {
        for (uint32_t i = 0; i < draft->n_rows; i++)
            rundir_discard(publisher->config->rundir, draft->rows[i].name);
        for (uint32_t i = 0; i < n_retired; i++)
            free(retired[i].snapshot);
        free(retired);
        publication_free(*out);
        *out = NULL;
        return rc;
    }
    publisher->generation = generation;
    publisher->published = published;
    for (uint32_t i = 0; i < draft->diff.n; i++)
        count_change(draft->diff.changes[i].kind);
    draft_take_retired(draft, retired, n_retired);
    keep_was_told(publisher);
    take_draft(draft);
    return PMIXFAB_OK;
}

/* ---- the way ------------------------------------------------------------------------------------ */

/* A sweep's inventory: named, compared, and refused where it is a part of the fabric only. What is missing in
 * it keeps its place, unless an operator takes it as it is. */
static int judge_sweep(struct draft *draft, bool accept_partial, struct publish_report *report,
                       struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    int rc = publish_fill_gaps(publisher, &draft->inv);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    rc = fab_names_apply(publisher->names, &draft->inv, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = keep_compare_seen(draft, report, err);
    if (rc == PMIXFAB_OK && !accept_partial)
        rc = publish_check_whole(publisher, &draft->inv, report, err);
    if (rc == PMIXFAB_OK && !accept_partial)
        rc = keep_sweep(draft, err);
    else if (rc == PMIXFAB_OK)
        publisher_release_now(publisher, NULL); /* else the next sweep would take it away again */
    return rc == PMIXFAB_OK ? draft_understand(draft, err) : rc;
}

/* Without a sweep: what was swept last stands, but for what is to be retired. And if none is configured any
 * more, there is no fabric. */
static int no_sweep(struct draft *draft, bool retire, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    bool none;
    int rc = keep_retire(draft, retire, &none, err);
    if (rc != PMIXFAB_OK || !none)
        return rc == PMIXFAB_OK ? draft_understand(draft, err) : rc;
    if (sweep_wanted(publisher->config) || publisher->current.n_nodes == 0) {
        draft->after = &publisher->current;
        return PMIXFAB_OK;
    }
    rc = fab_inventory_finish(&draft->inv, err);
    if (rc == PMIXFAB_OK)
        rc = fab_diff_compute(&publisher->current, &draft->inv, &draft->diff);
    return rc == PMIXFAB_OK ? draft_understand(draft, err) : rc;
}

static int publish_compute(struct draft *draft, const struct publish_input *input, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    struct fab_joined joined;
    int rc = publish_join(publisher, draft->after, input->reports, input->n_reports, &joined, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = draft_collect_known(draft);
    if (rc == PMIXFAB_OK)
        rc = build_planes(&joined, publisher->config, draft->known, draft->n_known, &draft->built, err);
    if (rc == PMIXFAB_OK)
        rc = draft_find_changed(draft);
    if (rc == PMIXFAB_ERR_NOMEM)
        fab_fail(err, rc, "out of memory");
    fab_joined_destroy(&joined);
    return rc;
}

static int publish_prepare_update(struct draft *draft, const struct publish_input *input,
                                  struct publication **out, struct publish_report *report,
                                  struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    int rc = input->inv == NULL ? no_sweep(draft, input->retire, err)
                                : judge_sweep(draft, input->accept_partial, report, err);
    if (rc == PMIXFAB_OK)
        rc = publish_tell(publisher, input->reports, input->n_reports, &draft->diff, &draft->told, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (publisher->compare && draft->told.n == 0 && publisher->keeper.news.n == 0 &&
        (draft->after == &publisher->current || fab_inventory_equal(&publisher->current, draft->after)))
        return PMIXFAB_OK;
    rc = publish_compute(draft, input, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = keep_plan(draft, err);
    if (rc == PMIXFAB_OK)
        rc = keep_tell_flaps(draft, err);
    if (rc == PMIXFAB_OK)
        rc = draft_tell_indices(draft, err);
    if (rc != PMIXFAB_OK)
        return rc;
    bool partial = input->inv != NULL && report->dangling > 0;
    /* That something is held is told even where nothing that is served changes by it. */
    return draft->n_rows == 0 && publisher->keeper.news.n == 0 ? store_quietly(draft, err)
                                                               : store_change(draft, partial, out, err);
}

int publish_prepare(struct publisher *publisher, const struct publish_input *input, struct publication **out,
                    struct publish_report *report, struct fab_err *err)
{
    struct draft draft = {.publisher = publisher, .served = served_get()};
    const int64_t swept_at = input->swept != 0 ? input->swept : publish_now_us();
    draft.seen = input->seen != 0 && input->seen < swept_at ? input->seen : swept_at;
    struct fab_err why = {""};
    *out = NULL;
    draft.after = &draft.inv;
    fab_inventory_init(&draft.inv);
    if (input->inv != NULL) {
        draft.inv = *input->inv;
        fab_inventory_init(input->inv);
        /* A map that was broken by an edit must not rename every host: the old one stays in force. */
        if (publisher_read_names(publisher, &why) != PMIXFAB_OK)
            log_warning("names: %s; going on with the names as they were", why.text);
    }
    bool swept = input->inv != NULL;
    int rc = publish_prepare_update(&draft, input, out, report, err);
    if (rc == PMIXFAB_OK && swept)
        publisher->swept = swept_at;
    if (rc == PMIXFAB_OK && *out == NULL)
        rc = rundir_mend(publisher->config->rundir, draft.served, err);
    built_destroy(&draft.built);
    fab_diff_destroy(&draft.diff);
    fab_inventory_destroy(&draft.inv);
    told_free(&draft.told);
    missing_free(&draft.missing);
    fab_lost_destroy(&draft.lost);
    free(draft.missing_rows);
    free(draft.known);
    free(draft.rows);
    served_set_put(draft.served);
    if (input->inv != NULL)
        malloc_trim(0); /* a sweep's peak would stay resident for years otherwise */
    return rc;
}

int publish_verify(struct publisher *publisher, struct fab_inventory *inv, struct fab_diff *diff,
                   struct fab_err *err)
{
    struct draft draft = {.publisher = publisher, .after = &draft.inv, .inv = *inv, .seen = publish_now_us()};
    struct publish_report report = {0};
    fab_inventory_init(inv);
    int rc = judge_sweep(&draft, false, &report, err);
    if (rc == PMIXFAB_OK)
        expected_mark(publisher->expected, &draft.diff, draft.seen);
    *diff = draft.diff;
    fab_inventory_destroy(&draft.inv);
    return rc;
}

bool publish_can_without_sweep(const struct publisher *publisher)
{
    return publisher->generation > 0 || !sweep_wanted(publisher->config);
}

void publish_finish(struct publisher *publisher, struct publication *publication)
{
    const char *rundir = publisher->config->rundir;
    struct served_set *set = publication->set;
    for (uint32_t i = 0; i < publication->n; i++) {
        struct fab_err err = {""};
        if (served_find(set, publication->planes[i].index) == NULL)
            rundir_remove(rundir, publication->planes[i].name);
        else if (rundir_commit(rundir, publication->planes[i].name, &err) != PMIXFAB_OK)
            log_error("publish: %s; callers on this host go on with the old snapshot", err.text);
    }
    publication->set = NULL;
    served_swap(set);
}
