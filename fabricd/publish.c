#include "fabricd/publish.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricd/log.h"
#include "fabricd/publish_priv.h"
#include "topo/diff.h"
#include "topo/snapshot.h"

/* A change in the making. What it holds is given back at the end, whether it came to something or not. */
struct draft {
    struct publisher *publisher;
    struct served_set *served; /* what is served now */
    struct fab_inventory inv;  /* named */
    struct fab_diff diff;
    struct built built;
    struct store_plane *known; /* borrowed snapshots: served planes, then retired ones */
    uint32_t n_known;
    struct store_plane *rows; /* for the store: planes that changed, came or went (snapshots borrowed) */
    uint32_t n_rows;
};

static int64_t now_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- which planes change ------------------------------------------------------------------------ */

static int collect_known(struct draft *draft)
{
    const struct publisher *publisher = draft->publisher;
    const struct served_set *set = draft->served;
    draft->known = calloc(set->n + publisher->n_retired + 1, sizeof(*draft->known));
    if (draft->known == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < set->n; i++) {
        struct store_plane *known = &draft->known[draft->n_known++];
        known->index = set->planes[i]->info.index;
        known->snapshot = set->planes[i]->bytes;
        known->size = set->planes[i]->size;
        snprintf(known->name, sizeof(known->name), "%s", set->planes[i]->info.name);
    }
    for (uint32_t i = 0; i < publisher->n_retired; i++)
        draft->known[draft->n_known++] = publisher->retired[i];
    return PMIXFAB_OK;
}

static void add_row(struct draft *draft, uint32_t index, const char *name, bool retired, void *bytes,
                    size_t size)
{
    struct store_plane *row = &draft->rows[draft->n_rows++];
    *row = (struct store_plane){.index = index, .retired = retired, .snapshot = bytes, .size = size};
    snprintf(row->name, sizeof(row->name), "%s", name);
}

/* The rows: built planes whose content is not what is served, and served planes that were not built. */
static int find_changed(struct draft *draft)
{
    const struct served_set *set = draft->served;
    draft->rows = calloc(set->n + draft->built.n + 1, sizeof(*draft->rows));
    if (draft->rows == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < draft->built.n; i++) {
        const struct built_plane *plane = &draft->built.planes[i];
        const struct served_plane *old = served_find(set, plane->index);
        if (old == NULL || fab_snapshot_content(old->bytes) != fab_snapshot_content(plane->bytes))
            add_row(draft, plane->index, plane->name, false, plane->bytes, plane->size);
    }
    for (uint32_t i = 0; i < set->n; i++) {
        bool still_there = false;
        for (uint32_t k = 0; k < draft->built.n; k++)
            still_there |= draft->built.planes[k].index == set->planes[i]->info.index;
        if (!still_there)
            add_row(draft, set->planes[i]->info.index, set->planes[i]->info.name, true, set->planes[i]->bytes,
                    set->planes[i]->size);
    }
    return PMIXFAB_OK;
}

static int stamp_rows(struct draft *draft, uint64_t generation, int64_t published, struct fab_err *err)
{
    for (uint32_t i = 0; i < draft->n_rows; i++) {
        struct store_plane *row = &draft->rows[i];
        row->generation = generation;
        if (row->retired)
            continue;
        fab_snapshot_stamp(row->snapshot, generation, published);
        int rc = rundir_write(draft->publisher->config->rundir, row->name, row->snapshot, row->size, err);
        if (rc != PMIXFAB_OK)
            return rc;
    }
    return PMIXFAB_OK;
}

/* ---- what will be served ------------------------------------------------------------------------ */

static const struct store_plane *row_of(const struct draft *draft, uint32_t index)
{
    for (uint32_t i = 0; i < draft->n_rows; i++)
        if (draft->rows[i].index == index)
            return &draft->rows[i];
    return NULL;
}

/* The set after the change: changed planes with their new bytes (taken from the draft), the others as they
 * are. */
static int make_set(struct draft *draft, uint64_t generation, int64_t published, struct served_set **out,
                    struct fab_err *err)
{
    uint32_t n = 0;
    int rc = PMIXFAB_OK;
    struct served_plane **planes = calloc(draft->built.n + 1, sizeof(*planes));
    *out = NULL;
    if (planes == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < draft->built.n; i++) {
        struct built_plane *plane = &draft->built.planes[i];
        if (row_of(draft, plane->index) == NULL) {
            struct served_plane *old = (struct served_plane *)served_find(draft->served, plane->index);
            planes[n++] = served_plane_ref(old);
            continue;
        }
        void *bytes = plane->bytes;
        plane->bytes = NULL; /* the store's row still points at it; it lives as long as the set */
        rc = served_plane_new(bytes, plane->size, draft->publisher->config->rundir, &planes[n], err);
        n += rc == PMIXFAB_OK;
    }
    if (rc == PMIXFAB_OK) {
        *out = served_set_new(planes, n, generation, published);
        rc = *out == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory") : PMIXFAB_OK;
    }
    for (uint32_t i = 0; rc != PMIXFAB_OK && i < n; i++)
        served_plane_put(planes[i]);
    free(planes);
    return rc;
}

void publication_free(struct publication *publication)
{
    if (publication == NULL)
        return;
    served_set_put(publication->set);
    free(publication->planes);
    free(publication);
}

static int make_publication(struct draft *draft, uint64_t generation, int64_t published,
                            struct publication **out, struct fab_err *err)
{
    struct publication *publication = calloc(1, sizeof(*publication));
    *out = NULL;
    if (publication == NULL ||
        (publication->planes = calloc(draft->n_rows + 1, sizeof(*publication->planes))) == NULL) {
        free(publication);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    publication->generation = generation;
    publication->n = draft->n_rows;
    publication->n_changes = draft->diff.n;
    for (uint32_t i = 0; i < draft->n_rows; i++) {
        publication->planes[i].index = draft->rows[i].index;
        memcpy(publication->planes[i].name, draft->rows[i].name, sizeof(draft->rows[i].name));
    }
    int rc = make_set(draft, generation, published, &publication->set, err);
    if (rc != PMIXFAB_OK) {
        publication_free(publication);
        return rc;
    }
    *out = publication;
    return PMIXFAB_OK;
}

/* ---- after the commit --------------------------------------------------------------------------- */

/* Keep the list of retired planes: those that came back leave it, those that went join it. */
static int plan_retired(struct draft *draft, struct store_plane **list, uint32_t *n, struct fab_err *err)
{
    const struct publisher *publisher = draft->publisher;
    *n = 0;
    *list = calloc(publisher->n_retired + draft->n_rows + 1, sizeof(**list));
    if (*list == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < draft->n_rows; i++) {
        if (!draft->rows[i].retired)
            continue;
        (*list)[*n] = draft->rows[i];
        (*list)[*n].snapshot = malloc(draft->rows[i].size);
        if ((*list)[*n].snapshot == NULL) {
            while (*n > 0)
                free((*list)[--*n].snapshot);
            free(*list);
            return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
        }
        memcpy((*list)[(*n)++].snapshot, draft->rows[i].snapshot, draft->rows[i].size);
    }
    return PMIXFAB_OK;
}

static void take_retired(struct draft *draft, struct store_plane *list, uint32_t n)
{
    struct publisher *publisher = draft->publisher;
    for (uint32_t i = 0; i < publisher->n_retired; i++) {
        if (row_of(draft, publisher->retired[i].index) != NULL)
            free(publisher->retired[i].snapshot);
        else
            list[n++] = publisher->retired[i];
    }
    free(publisher->retired);
    publisher->retired = list;
    publisher->n_retired = n;
}

static void take_inventory(struct draft *draft)
{
    fab_inventory_destroy(&draft->publisher->current);
    draft->publisher->current = draft->inv;
    fab_inventory_init(&draft->inv);
    draft->publisher->compare = true;
}

/* ---- the way ------------------------------------------------------------------------------------ */

/* Facts that no reader sees (a LID, say) are stored without a generation. */
static int store_quietly(struct draft *draft, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    const struct store_publication facts = {.before = &publisher->current, .after = &draft->inv};
    int rc = PMIXFAB_OK;
    if (!fab_inventory_equal(&publisher->current, &draft->inv))
        rc = store_publish(publisher->store, &facts, err);
    if (rc == PMIXFAB_OK)
        take_inventory(draft);
    return rc;
}

static int store_change(struct draft *draft, bool partial, struct publication **out, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    struct store_plane *retired = NULL;
    uint32_t n_retired = 0;
    uint64_t generation = publisher->generation + 1;
    int64_t published = now_microseconds();
    int rc = plan_retired(draft, &retired, &n_retired, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = stamp_rows(draft, generation, published, err);
    if (rc == PMIXFAB_OK)
        rc = make_publication(draft, generation, published, out, err);
    if (rc == PMIXFAB_OK) {
        const struct store_publication change = {.generation = generation,
                                                 .published = published,
                                                 .partial = partial,
                                                 .before = &publisher->current,
                                                 .after = &draft->inv,
                                                 .diff = &draft->diff,
                                                 .planes = draft->rows,
                                                 .n_planes = draft->n_rows};
        rc = store_publish(publisher->store, &change, err);
    }
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
    take_retired(draft, retired, n_retired);
    take_inventory(draft);
    return PMIXFAB_OK;
}

static int prepare(struct draft *draft, bool accept_partial, struct publication **out,
                   struct publish_report *report, struct fab_err *err)
{
    struct publisher *publisher = draft->publisher;
    int rc = publish_fill_gaps(publisher, &draft->inv);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "out of memory");
    rc = fab_names_apply(publisher->names, &draft->inv, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = fab_diff_compute(&publisher->current, &draft->inv, &draft->diff);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "the difference cannot be computed: %s", pmixfab_strerror(rc));
    publish_fill_report(publisher, &draft->inv, &draft->diff, report);
    rc = accept_partial ? PMIXFAB_OK : publish_check_whole(publisher, &draft->inv, report, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (publisher->compare && fab_inventory_equal(&publisher->current, &draft->inv))
        return PMIXFAB_OK;
    rc = collect_known(draft);
    if (rc == PMIXFAB_OK)
        rc = build_planes(&draft->inv, publisher->config, draft->known, draft->n_known, &draft->built, err);
    if (rc == PMIXFAB_OK)
        rc = find_changed(draft);
    if (rc == PMIXFAB_ERR_NOMEM)
        fab_fail(err, rc, "out of memory");
    if (rc != PMIXFAB_OK)
        return rc;
    return draft->n_rows == 0 ? store_quietly(draft, err)
                              : store_change(draft, report->dangling > 0, out, err);
}

int publish_prepare(struct publisher *publisher, struct fab_inventory *inv, bool accept_partial,
                    struct publication **out, struct publish_report *report, struct fab_err *err)
{
    struct draft draft = {.publisher = publisher, .served = served_get(), .inv = *inv};
    struct fab_err why = {""};
    *out = NULL;
    fab_inventory_init(inv);
    /* A map that was broken by an edit must not rename every host: the old one stays in force. */
    if (publisher_read_names(publisher, &why) != PMIXFAB_OK)
        log_warning("names: %s; going on with the names as they were", why.text);
    int rc = prepare(&draft, accept_partial, out, report, err);
    if (rc == PMIXFAB_OK && *out == NULL)
        rc = rundir_mend(publisher->config->rundir, draft.served, err);
    built_destroy(&draft.built);
    fab_diff_destroy(&draft.diff);
    fab_inventory_destroy(&draft.inv);
    free(draft.known);
    free(draft.rows);
    served_set_put(draft.served);
    malloc_trim(0); /* a sweep's peak would stay resident for years otherwise */
    return rc;
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
