/* publish.c - a publication from its beginning to its end: compare, join, compute, store, put in place. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/work.h"
#include "fabricd/engine/publisher.h"
#include "fabricd/serving/rundir.h"
#include "fabricd/sources/host_scan.h"
#include "topo/changes/changes.h"
#include "topo/snapshot/format.h"
#include "topo/snapshot/snapshot.h"

#define LOGGED_CHANGES 10

/* A change in the making. Its resources are released at the end, whether it succeeds or not. */
struct update {
    struct publisher *publisher;
    const struct publish_request *input;
    struct served_set *served; /* the served set */
    struct swept_fabric sweep; /* of a sweep; without a sweep, the inventory without retired devices */
    const struct fab_inventory *after; /* its inventory, or the publisher's current one */
    struct fab_diff diff;              /* with conclusions */
    struct announced announced;
    struct absent absent;   /* the next state, if the inventory is a new one */
    struct guids contested; /* HCAs that several hosts claim */
    struct built built;
    struct store_plane *rows; /* for the store: planes that changed, came or went (snapshots borrowed) */
    uint32_t n_rows;
    bool partial;        /* more ports of the sweep lead nowhere than before */
    uint64_t generation; /* the number of this generation */
    int64_t published;
    struct publication *publication; /* the result */
    struct work *staging;            /* writes and checks files while the store works; NULL: not running */
    int written;                     /* its result */
    struct fab_err write_err;
};

void publication_free(struct publication *publication)
{
    if (publication == NULL)
        return;
    served_set_put(publication->set);
    publish_ports_free(&publication->changed);
    free(publication->planes);
    free(publication);
}

static bool has_new_inventory(const struct update *update)
{
    return update->after == &update->sweep.inv;
}

/* ---- the fabric ------------------------------------------------------------------------------------ */

/* Without a sweep, take the last one, without the devices to retire. If no probe of the fabric is configured,
 * there is no fabric. */
static int take_fabric(struct update *update, struct sweep_findings *report, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    const struct publish_request *input = update->input;
    bool retires;
    if (input->inv != NULL)
        return sweep_take(&update->sweep, input, report, &update->diff, err);
    int rc = retention_retire(&update->sweep, input->retire, &retires, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (!retires && (sweep_wanted(publisher->config) || publisher->current.n_nodes == 0)) {
        update->after = &publisher->current;
        return PMIXFAB_OK;
    }
    if (!retires)
        rc = fab_inventory_finish(&update->sweep.inv, err);
    return rc ?: sweep_diff(&update->sweep, input->unmanaged, &update->diff, err);
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

static bool is_as_published(const struct update *update)
{
    const struct publisher *publisher = update->publisher;
    return publisher->compare && update->announced.n == 0 && publisher->flaps.n == 0 &&
           !publisher->claims_released && same_subnets(&publisher->current, update->after) &&
           (!has_new_inventory(update) || fab_inventory_equal(&publisher->current, update->after));
}

/* ---- the planes ------------------------------------------------------------------------------------ */

/* List served planes, then retired ones; snapshots are borrowed. */
static struct store_plane *list_known(const struct update *update, uint32_t *n)
{
    const struct publisher *publisher = update->publisher;
    const struct served_set *set = update->served;
    struct store_plane *list = calloc(set->n + publisher->n_retired + 1, sizeof(*list));
    *n = 0;
    for (uint32_t i = 0; list != NULL && i < set->n; i++) {
        struct store_plane *known = &list[(*n)++];
        known->index = set->planes[i]->info.index;
        known->snapshot = set->planes[i]->bytes;
        known->size = set->planes[i]->size;
        known->fab = set->planes[i]->fab;
        snprintf(known->name, sizeof(known->name), "%s", set->planes[i]->info.name);
    }
    for (uint32_t i = 0; list != NULL && i < publisher->n_retired; i++)
        list[(*n)++] = publisher->retired[i];
    return list;
}

static void add_row(struct update *update, uint32_t index, const char *name, bool retired, void *bytes,
                    size_t size)
{
    struct store_plane *row = &update->rows[update->n_rows++];
    *row = (struct store_plane){.index = index, .retired = retired, .snapshot = bytes, .size = size};
    snprintf(row->name, sizeof(row->name), "%s", name);
}

/* Find built planes that differ from the served ones, and served planes that were not built. */
static int find_changed(struct update *update, struct fab_err *err)
{
    const struct served_set *set = update->served;
    update->rows = calloc(set->n + update->built.n + 1, sizeof(*update->rows));
    if (update->rows == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < update->built.n; i++) {
        const struct built_plane *plane = &update->built.planes[i];
        const struct served_plane *old = served_find(set, plane->index);
        if (old == NULL || update->publisher->inherited ||
            fab_snapshot_content(old->bytes) != fab_snapshot_content(plane->bytes))
            add_row(update, plane->index, plane->name, false, plane->bytes, plane->size);
    }
    for (uint32_t i = 0; i < set->n; i++) {
        const struct served_plane *plane = set->planes[i];
        bool still_there = false;
        for (uint32_t k = 0; k < update->built.n; k++)
            still_there |= update->built.planes[k].index == plane->info.index;
        if (!still_there)
            add_row(update, plane->info.index, plane->info.name, true, plane->bytes, plane->size);
    }
    return PMIXFAB_OK;
}

static int draft_planes(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    const struct publish_request *input = update->input;
    struct fab_joined joined;
    uint32_t n_known;
    int rc = reports_join(publisher, update->after, &update->sweep.elsewhere, input->reports,
                          input->n_reports, &joined, err);
    if (rc != PMIXFAB_OK)
        return rc;
    update->contested = (struct guids){.guids = joined.contested, .n = joined.n_contested};
    joined.contested = NULL; /* ownership moved */
    struct store_plane *known = list_known(update, &n_known);
    rc = known == NULL ? no_memory(err)
                       : compute_planes(&joined, publisher->config, known, n_known, &update->built, err);
    free(known);
    fab_joined_destroy(&joined);
    return rc ?: find_changed(update, err);
}

/* Report a change of the default plane, if there was one before. */
static int announce_default(struct update *update)
{
    const struct served_set *set = update->served;
    const char *was = NULL, *is = NULL, *configured = update->publisher->config->default_plane;
    char why[160] = "";
    bool gone = true;
    for (uint32_t i = 0; i < set->n; i++)
        if (set->planes[i]->info.is_default != 0)
            was = set->planes[i]->info.name;
    for (uint32_t i = 0; i < update->built.n; i++) {
        const struct built_plane *plane = &update->built.planes[i];
        if (snap_meta(plane->bytes)->is_default != 0)
            is = plane->name;
        gone = gone && (was == NULL || strcmp(plane->name, was) != 0);
    }
    if (was == NULL || is == NULL || strcmp(was, is) == 0)
        return PMIXFAB_OK;
    if (configured != NULL && strcmp(configured, is) == 0)
        snprintf(why, sizeof(why), "set by [fabricd] default_plane");
    else if (gone)
        snprintf(why, sizeof(why), "plane %s is gone", was);
    return fab_default_change(was, is, why, &update->diff);
}

/* Report changes of planes as a whole: kind, shape, device indices, and the default plane. */
static int announce_planes(struct update *update, struct fab_err *err)
{
    int rc = fab_diff_repeat(&update->diff, &update->publisher->flaps) ?: announce_default(update);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < update->n_rows; i++) {
        const struct store_plane *row = &update->rows[i];
        const struct served_plane *old = served_find(update->served, row->index);
        if (!row->retired && old != NULL)
            rc = fab_index_changes(old->bytes, row->snapshot, &update->diff)
                     ?: fab_plane_changes(old->bytes, row->snapshot, &update->diff);
    }
    return rc == PMIXFAB_OK ? rc : no_memory(err);
}

/* ---- the next served set --------------------------------------------------------------------------- */

static struct store_plane *find_row(const struct update *update, uint32_t index)
{
    for (uint32_t i = 0; i < update->n_rows; i++)
        if (update->rows[i].index == index)
            return &update->rows[i];
    return NULL;
}

/* Make a set of the changed planes with their new bytes (taken from the update) and the unchanged ones. */
static int make_set(struct update *update, struct served_set **out, struct fab_err *err)
{
    uint32_t n = 0;
    int rc = PMIXFAB_OK;
    struct served_plane **planes = calloc(update->built.n + 1, sizeof(*planes));
    *out = NULL;
    if (planes == NULL)
        return no_memory(err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < update->built.n; i++) {
        struct built_plane *plane = &update->built.planes[i];
        struct store_plane *row = find_row(update, plane->index);
        if (row == NULL) {
            planes[n++] = served_plane_ref((struct served_plane *)served_find(update->served, plane->index));
            continue;
        }
        void *bytes = plane->bytes;
        plane->bytes = NULL; /* the store's row still references them; they live as long as the set */
        struct pmixfab *fab = row->fab;
        row->fab = NULL;
        rc = served_plane_opened(bytes, plane->size, fab, update->publisher->config->rundir, &planes[n], err);
        n += rc == PMIXFAB_OK;
    }
    if (rc == PMIXFAB_OK) {
        *out = served_set_new(planes, n, update->generation, update->published);
        rc = *out == NULL ? no_memory(err) : PMIXFAB_OK;
    }
    for (uint32_t i = 0; rc != PMIXFAB_OK && i < n; i++)
        served_plane_put(planes[i]);
    free(planes);
    return rc;
}

/* "plane-kind fat-tree-3 -> other, plane-shape ..." */
static void event_reason(const struct update *update, struct event_plane *plane)
{
    size_t used = 0;
    for (uint32_t i = 0; i < update->diff.n && used < sizeof(plane->reason); i++) {
        const struct fab_change *change = &update->diff.changes[i];
        if (change->kind >= FAB_CHANGE_PLANE_KIND && strcmp(change->what, plane->name) == 0)
            used += (size_t)snprintf(plane->reason + used, sizeof(plane->reason) - used, "%s%s %s -> %s",
                                     used > 0 ? ", " : "", fab_change_name(change->kind), change->before,
                                     change->after);
    }
}

static int make_publication(struct update *update, struct fab_err *err)
{
    struct publication *publication = calloc(1, sizeof(*publication));
    if (publication == NULL ||
        (publication->planes = calloc(update->n_rows + 1, sizeof(*publication->planes))) == NULL) {
        free(publication);
        return no_memory(err);
    }
    publication->generation = update->generation;
    publication->n = update->n_rows;
    for (uint32_t i = 0; i < update->n_rows; i++) {
        publication->planes[i].index = update->rows[i].index;
        memcpy(publication->planes[i].name, update->rows[i].name, sizeof(update->rows[i].name));
        event_reason(update, &publication->planes[i]);
    }
    update->publication = publication;
    return make_set(update, &publication->set, err);
}

/* ---- staging: write the files and check the snapshots while the store takes its rows --------------- */

static void write_snapshots(void *arg)
{
    struct update *update = arg;
    struct fab_err *err = &update->write_err;
    const char *rundir = update->publisher->config->rundir;
    update->written = PMIXFAB_OK;
    for (uint32_t i = 0; update->written == PMIXFAB_OK && i < update->n_rows; i++) {
        struct store_plane *row = &update->rows[i];
        if (!row->retired)
            update->written = rundir_write(rundir, row->name, row->snapshot, row->size, err)
                                  ?: fab_snapshot_borrow(row->snapshot, row->size, &row->fab, err);
    }
}

/* Called by the store before the commit: both must have succeeded. */
static int staging_wait(void *arg, struct fab_err *err)
{
    struct update *update = arg;
    work_wait(update->staging);
    update->staging = NULL;
    if (update->written != PMIXFAB_OK)
        return fab_fail(err, update->written, "%s", update->write_err.text);
    return make_publication(update, err);
}

/* ---- into the store -------------------------------------------------------------------------------- */

static int plan_absent(struct update *update, uint64_t generation, struct fab_err *err)
{
    return has_new_inventory(update) ? retention_plan(update->publisher, update->after, &update->diff,
                                                      generation, &update->absent, err)
                                     : PMIXFAB_OK;
}

/* Return the data to store that belongs to no generation. */
static struct store_publication facts_of(const struct update *update)
{
    const struct publisher *publisher = update->publisher;
    return (struct store_publication){.before = &publisher->current,
                                      .after = update->after,
                                      .announced = update->announced.rows,
                                      .n_announced = update->announced.n,
                                      .absent_before = &publisher->absent,
                                      .absent = has_new_inventory(update) ? &update->absent : NULL};
}

/* Take over the stored update. */
static void accept_update(struct update *update, bool announced)
{
    struct publisher *publisher = update->publisher;
    if (has_new_inventory(update)) {
        retention_accept(publisher, &update->absent, announced);
        fab_inventory_destroy(&publisher->current);
        publisher->current = update->sweep.inv;
        fab_inventory_init(&update->sweep.inv);
        update->after = &publisher->current;
    }
    reports_accept(publisher, &update->announced);
    claims_accept(publisher, &update->contested);
    publisher_unchecked(publisher);
    publisher->compare = true;
}

/* Store facts that no reader sees (a LID, for example) without a new generation. */
static int store_facts(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    int rc = plan_absent(update, 0, err);
    if (rc != PMIXFAB_OK)
        return rc;
    const struct store_publication facts = facts_of(update);
    if (update->announced.n > 0 || !fab_inventory_equal(&publisher->current, update->after))
        rc = store_publish(publisher->store, &facts, err);
    if (rc == PMIXFAB_OK)
        accept_update(update, false);
    return rc;
}

/* Return the planes that are retired now, with room for the planes retired before. */
static int plan_retired(const struct update *update, struct store_plane **out, uint32_t *n,
                        struct fab_err *err)
{
    struct store_plane *list = calloc(update->publisher->n_retired + update->n_rows + 1, sizeof(*list));
    *out = list;
    *n = 0;
    for (uint32_t i = 0; list != NULL && i < update->n_rows; i++) {
        const struct store_plane *row = &update->rows[i];
        if (!row->retired)
            continue;
        list[*n] = *row;
        list[*n].snapshot = malloc(row->size);
        if (list[*n].snapshot == NULL)
            return no_memory(err);
        memcpy(list[(*n)++].snapshot, row->snapshot, row->size);
    }
    return list == NULL ? no_memory(err) : PMIXFAB_OK;
}

/* Remove returned planes from the list. */
static void accept_retired(struct update *update, struct store_plane *list, uint32_t n)
{
    struct publisher *publisher = update->publisher;
    for (uint32_t i = 0; i < publisher->n_retired; i++) {
        if (find_row(update, publisher->retired[i].index) != NULL)
            free(publisher->retired[i].snapshot);
        else
            list[n++] = publisher->retired[i];
    }
    free(publisher->retired);
    publisher->retired = list;
    publisher->n_retired = n;
}

/* Log the first changes only, so that a storm does not fill the log. Changes of planes as a whole are few,
 * and all are logged. */
static void log_update(const struct update *update)
{
    const uint32_t n = update->diff.n;
    log_info("generation %" PRIu64 ": %" PRIu32 " change%s, %" PRIu32 " plane%s published%s",
             update->generation, n, n == 1 ? "" : "s", update->n_rows, update->n_rows == 1 ? "" : "s",
             n > LOGGED_CHANGES ? "; the first changes:" : "");
    for (uint32_t i = 0; i < n; i++) {
        const struct fab_change *change = &update->diff.changes[i];
        if (i >= LOGGED_CHANGES && change->kind < FAB_CHANGE_PLANE_KIND)
            continue;
        const bool from = change->before[0] != '\0', to = change->after[0] != '\0', why = change->why != NULL;
        log_info("generation %" PRIu64 ": %s %s%s%s%s%s%s%s", update->generation,
                 fab_change_name(change->kind), change->what, from ? " " : "", change->before,
                 to ? (from ? " -> " : " ") : "", change->after, why && change->why[0] != '\0' ? "; " : "",
                 why ? change->why : "");
    }
}

/* Do everything that can fail: write files beside the old ones, then commit. */
static int write_change(struct update *update, struct fab_err *err)
{
    struct store_publication change = facts_of(update);
    change.ready = staging_wait;
    change.ready_data = update;
    change.generation = update->generation;
    change.published = update->published;
    change.partial = update->partial;
    change.diff = &update->diff;
    change.planes = update->rows;
    change.n_planes = update->n_rows;
    for (uint32_t i = 0; i < update->n_rows; i++) {
        update->rows[i].generation = update->generation;
        if (!update->rows[i].retired)
            fab_snapshot_stamp(update->rows[i].snapshot, update->generation, update->published);
    }
    update->staging = work_run(NULL, write_snapshots, NULL, update);
    if (update->staging == NULL)
        write_snapshots(update);
    int rc = store_publish(update->publisher->store, &change, err);
    work_wait(update->staging); /* if the store has not waited */
    update->staging = NULL;
    for (uint32_t i = 0; i < update->n_rows; i++) {
        pmixfab_close(update->rows[i].fab); /* NULL if the publication owns it */
        update->rows[i].fab = NULL;
    }
    return rc;
}

static int store_change(struct update *update, struct fab_err *err)
{
    struct publisher *publisher = update->publisher;
    struct store_plane *retired = NULL;
    uint32_t n_retired = 0;
    update->published = clock_now(CLOCK_REALTIME);
    int rc = store_next_generation(publisher->store, &update->generation, err)
                 ?: plan_absent(update, update->generation, err);
    if (rc != PMIXFAB_OK)
        return rc;
    planned_mark(publisher->planned, &update->diff, update->published);
    rc = plan_retired(update, &retired, &n_retired, err) ?: write_change(update, err);
    if (rc != PMIXFAB_OK) {
        for (uint32_t i = 0; i < update->n_rows; i++)
            rundir_discard(publisher->config->rundir, update->rows[i].name);
        publication_free(update->publication);
        update->publication = NULL;
        store_planes_free(retired, n_retired);
        return rc;
    }
    publisher->generation = update->generation;
    publisher->published = update->published;
    publisher->inherited = false;
    for (uint32_t i = 0; i < update->diff.n; i++)
        count(publisher->counts, count_of_change(update->diff.changes[i].kind));
    accept_retired(update, retired, n_retired);
    fab_diff_destroy(&publisher->flaps);
    accept_update(update, true);
    if (update->generation > 1) /* otherwise all of them are new */
        publisher_changed_ports(publisher, &update->diff, &update->publication->changed);
    log_update(update);
    return PMIXFAB_OK;
}

/* ---- the whole publication ------------------------------------------------------------------------- */

static int run_update(struct update *update, struct sweep_findings *report, struct fab_err *err)
{
    int rc =
        take_fabric(update, report, err)
            ?: reports_announce(update->publisher, update->input, &update->diff, &update->announced, err);
    if (rc != PMIXFAB_OK || is_as_published(update))
        return rc;
    update->partial = update->input->inv != NULL && report->dangling > 0;
    rc = draft_planes(update, err) ?: announce_planes(update, err);
    if (rc != PMIXFAB_OK)
        return rc;
    /* A suppression is published even if the served state does not change. */
    return update->n_rows == 0 && update->publisher->flaps.n == 0 ? store_facts(update, err)
                                                                  : store_change(update, err);
}

static void update_destroy(struct update *update)
{
    built_destroy(&update->built);
    fab_diff_destroy(&update->diff);
    swept_fabric_destroy(&update->sweep);
    announced_free(&update->announced);
    absent_free(&update->absent);
    free(update->contested.guids);
    free(update->rows);
    served_set_put(update->served);
}

int publish_prepare(struct publisher *publisher, const struct publish_request *input,
                    struct publication **out, struct sweep_findings *report, struct fab_err *err)
{
    *out = NULL;
    int rc = store_writable(publisher->store, err); /* no computation for data that cannot be stored */
    if (rc != PMIXFAB_OK)
        return rc;
    const bool swept = input->inv != NULL;
    const int64_t swept_at = input->swept != 0 ? input->swept : clock_now(CLOCK_REALTIME);
    struct update update = {.publisher = publisher, .input = input, .served = served_get(publisher->served)};
    update.sweep = (struct swept_fabric){
        .publisher = publisher, .seen = input->seen != 0 && input->seen < swept_at ? input->seen : swept_at};
    fab_inventory_init(&update.sweep.inv);
    update.after = &update.sweep.inv;
    if (swept) {
        struct fab_err *why = &publisher->names_fault;
        *why = (struct fab_err){""};
        update.sweep.inv = *input->inv;
        fab_inventory_init(input->inv);
        /* A map that an edit has broken must not rename all hosts: the old one stays in force. */
        if (publisher_read_names(publisher, why) != PMIXFAB_OK)
            log_warning("names: %s; the old names stay in force", why->text);
    }
    rc = run_update(&update, report, err);
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
            log_error("publish: %s; callers on this host keep the old snapshot", err.text);
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
