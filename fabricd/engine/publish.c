#include "fabricd/engine/publish.h"

#include <stdlib.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/update.h"
#include "fabricd/sources/host_scan.h"

void publication_free(struct publication *publication)
{
    if (publication == NULL)
        return;
    served_set_put(publication->set);
    publish_ports_free(&publication->changed);
    free(publication->planes);
    free(publication);
}

/* ---- into the store ------------------------------------------------------------------------------- */

/* What was drafted is in the store now. */
static void commit_update(struct update *update, bool announced)
{
    struct publisher *publisher = update->publisher;
    if (update->after == &update->inv) {
        fab_inventory_destroy(&publisher->current);
        publisher->current = update->inv;
        fab_inventory_init(&update->inv);
        update->after = &publisher->current;
    }
    publish_remembered(update, announced);
    publish_announced(publisher, &update->announced);
    fab_findings_destroy(&publisher->findings);
    publisher->checked = false;
    publisher->compare = true;
}

/* What is to be stored of it without a generation. */
static struct store_publication facts_of(const struct update *update)
{
    const struct publisher *publisher = update->publisher;
    return (struct store_publication){.before = &publisher->current,
                                      .after = update->after,
                                      .announced = update->announced.rows,
                                      .n_announced = update->announced.n,
                                      .absent_before = &publisher->absent,
                                      .absent = update->remembers ? &update->absent : NULL};
}

/* Facts that no reader sees (a LID, say) are stored without a generation, and that is all. That something is
 * held is told even where nothing that is served changes by it. */
static int store_quietly(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    if (update->n_rows > 0 || publisher->retention.news.n > 0)
        return PMIXFAB_OK;
    update->done = true;
    int rc = update_remember(update, 0, err);
    if (rc != PMIXFAB_OK)
        return rc;
    const struct store_publication facts = facts_of(update);
    if (update->announced.n > 0 || !fab_inventory_equal(&publisher->current, update->after))
        rc = store_publish(publisher->store, &facts, err);
    if (rc == PMIXFAB_OK)
        commit_update(update, false);
    return rc;
}

static int number_draft(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    update->published = clock_now(CLOCK_REALTIME);
    int rc = store_next_generation(publisher->store, &update->generation, err);
    if (rc == PMIXFAB_OK)
        rc = update_remember(update, update->generation, err);
    if (rc == PMIXFAB_OK)
        planned_mark(publisher->planned, &update->diff, update->published);
    return rc;
}

/* Everything that can fail: files beside the old ones, then the commit. */
static int publish_write_change(struct update *update, struct fab_err *err)
{
    struct store_publication change = facts_of(update);
    change.ready = staging_wait;
    change.ready_data = update;
    change.generation = update->generation;
    change.published = update->published;
    change.partial = update->input->inv != NULL && update->report->dangling > 0;
    change.diff = &update->diff;
    change.planes = update->rows;
    change.n_planes = update->n_rows;
    staging_begin(update);
    int rc = store_publish(update->publisher->store, &change, err);
    staging_end(update);
    return rc;
}

static int store_change(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    int rc = publish_write_change(update, err);
    if (rc != PMIXFAB_OK) {
        for (uint32_t i = 0; i < update->n_rows; i++)
            rundir_discard(publisher->config->rundir, update->rows[i].name);
        publication_free(update->publication);
        update->publication = NULL;
        return rc;
    }
    publisher->generation = update->generation;
    publisher->published = update->published;
    publisher->inherited = false;
    for (uint32_t i = 0; i < update->diff.n; i++)
        count(publisher->counts, count_of_change(update->diff.changes[i].kind));
    update_accept_retired(update);
    retention_announced(publisher);
    commit_update(update, true);
    update_list_changed_ports(update);
    update_log(update);
    return PMIXFAB_OK;
}

/* ---- the stages --------------------------------------------------------------------------------- */

/* A sweep's inventory: named, compared, and refused where it is a part of the fabric only. What is missing in
 * it keeps its place, unless an operator takes it as it is. */
int update_judge_sweep(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    const bool accept_partial = update->input->accept_partial;
    int rc = update_name(update, err);
    if (rc == PMIXFAB_OK)
        rc = retention_compare_swept(update, update->report, err);
    if (rc == PMIXFAB_OK && !accept_partial)
        rc = check_complete(publisher, &update->inv, update->report, err);
    if (rc == PMIXFAB_OK && !accept_partial)
        rc = retention_sweep(update, err);
    else if (rc == PMIXFAB_OK)
        publisher_release_now(publisher, NULL); /* else the next sweep would take it away again */
    return rc == PMIXFAB_OK ? update_correlate(update, err) : rc;
}

/* Without a sweep: what was swept last stands, but for what is to be retired. And if none is configured any
 * more, there is no fabric. */
static int no_sweep(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    bool none;
    int rc = retention_retire(update, update->input->retire, &none, err);
    if (rc != PMIXFAB_OK || !none)
        return rc == PMIXFAB_OK ? update_correlate(update, err) : rc;
    if (sweep_wanted(publisher->config) || publisher->current.n_nodes == 0) {
        update->after = &publisher->current;
        return PMIXFAB_OK;
    }
    rc = fab_inventory_finish(&update->inv, err);
    if (rc == PMIXFAB_OK)
        rc = fab_diff_compute(&publisher->current, &update->inv, &update->diff);
    return rc == PMIXFAB_OK ? update_correlate(update, err) : rc;
}

static int take_fabric(struct update *update, struct fab_err *err)
{
    return update->input->inv == NULL ? no_sweep(update, err) : update_judge_sweep(update, err);
}

static bool same_subnets(const struct fab_inventory *a, const struct fab_inventory *b)
{
    bool same = true;
    for (uint32_t i = 0; i < FAB_MAX_SUBNETS; i++)
        same = same && a->subnets[i].prefix == b->subnets[i].prefix &&
               a->subnets[i].is_default == b->subnets[i].is_default &&
               strcmp(a->subnets[i].view, b->subnets[i].view) == 0;
    return same;
}

static int tell_reports(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    const struct publish_request *input = update->input;
    int rc =
        publish_tell(publisher, input->reports, input->n_reports, &update->diff, &update->announced, err);
    update->done =
        publisher->compare && update->announced.n == 0 && publisher->retention.news.n == 0 &&
        same_subnets(&publisher->current, update->after) &&
        (update->after == &publisher->current || fab_inventory_equal(&publisher->current, update->after));
    return rc;
}

static int build_draft(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    const struct publish_request *input = update->input;
    struct fab_joined joined;
    int rc = publish_join(publisher, update->after, &update->elsewhere, input->reports, input->n_reports,
                          &joined, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = update_collect_known(update);
    if (rc == PMIXFAB_OK)
        rc = compute_planes(&joined, publisher->config, update->known, update->n_known, &update->built, err);
    if (rc == PMIXFAB_OK)
        rc = update_find_changed(update);
    if (rc == PMIXFAB_ERR_NOMEM)
        fab_fail(err, rc, "out of memory");
    fab_joined_destroy(&joined);
    return rc;
}

/* One after the other, until one fails or says that it is done. */
static int run_stages(struct update *update, struct fab_err *err)
{
    int (*const stages[])(struct update * update, struct fab_err * err) = {
        take_fabric,
        tell_reports,
        build_draft,
        retention_announce_flaps,
        update_announce_planes,
        store_quietly,
        number_draft,
        update_plan_retired,
        store_change,
    };
    int rc = PMIXFAB_OK;
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && rc == PMIXFAB_OK && !update->done; i++)
        rc = stages[i](update, err);
    return rc;
}

static void update_destroy(struct update *update)
{
    built_destroy(&update->built);
    fab_diff_destroy(&update->diff);
    fab_inventory_destroy(&update->inv);
    free(update->elsewhere.guids);
    announced_free(&update->announced);
    absent_free(&update->absent);
    store_planes_free(update->retired, update->n_retired);
    free(update->known);
    free(update->rows);
    served_set_put(update->served);
}

int publish_prepare(struct publisher *publisher, const struct publish_request *input,
                    struct publication **out, struct sweep_findings *report, struct fab_err *err)
{
    struct update update = {
        .publisher = publisher, .input = input, .report = report, .served = served_get(publisher->served)};
    const bool swept = input->inv != NULL;
    *out = NULL;
    int rc = store_writable(publisher->store, err); /* what cannot be stored is not looked at */
    if (rc != PMIXFAB_OK) {
        update_destroy(&update);
        return rc;
    }
    const int64_t swept_at = input->swept != 0 ? input->swept : clock_now(CLOCK_REALTIME);
    update.seen = input->seen != 0 && input->seen < swept_at ? input->seen : swept_at;
    update.after = &update.inv;
    fab_inventory_init(&update.inv);
    if (swept) {
        struct fab_err *why = &publisher->names_fault;
        *why = (struct fab_err){""};
        update.inv = *input->inv;
        fab_inventory_init(input->inv);
        /* A map that was broken by an edit must not rename every host: the old one stays in force. */
        if (publisher_read_names(publisher, why) != PMIXFAB_OK)
            log_warning("names: %s; going on with the names as they were", why->text);
    }
    rc = run_stages(&update, err);
    if (rc == PMIXFAB_OK && swept)
        publisher->swept = swept_at;
    if (rc == PMIXFAB_OK && update.publication == NULL)
        rc = rundir_mend(publisher->config->rundir, update.served, served_is_stale(publisher->served), NULL,
                         err);
    *out = update.publication;
    update_destroy(&update);
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
    rundir_begin(rundir, publication->generation, publication->planes, publication->n);
    for (uint32_t i = 0; i < publication->n; i++) {
        struct fab_err err = {""};
        if (served_find(set, publication->planes[i].index) == NULL)
            rundir_remove(rundir, publication->planes[i].name);
        else if (rundir_commit(rundir, publication->planes[i].name, &err) != PMIXFAB_OK)
            log_error("publish: %s; callers on this host go on with the old snapshot", err.text);
    }
    publication->set = NULL;
    served_swap(publisher->served, set);
    publisher_mend(publisher); /* the planes that did not change */
    rundir_end(rundir);
}

uint32_t publisher_mend(struct publisher *publisher)
{
    struct served_set *set = served_get(publisher->served);
    struct fab_err err = {""};
    uint32_t mended;
    if (rundir_mend(publisher->config->rundir, set, served_is_stale(publisher->served), &mended, &err) !=
        PMIXFAB_OK)
        log_error("run directory: %s", err.text);
    served_set_put(set);
    return mended;
}
