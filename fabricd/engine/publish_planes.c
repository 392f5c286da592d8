/* publish_planes.c - the planes of a publication: which of them change, and what will be served. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/engine/update.h"
#include "topo/snapshot/snapshot.h"

/* ---- which planes change ------------------------------------------------------------------------ */

int update_collect_known(struct update *update)
{
    const struct publisher *publisher = update->publisher;
    const struct served_set *set = update->served;
    update->known = calloc(set->n + publisher->n_retired + 1, sizeof(*update->known));
    if (update->known == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < set->n; i++) {
        struct store_plane *known = &update->known[update->n_known++];
        known->index = set->planes[i]->info.index;
        known->snapshot = set->planes[i]->bytes;
        known->size = set->planes[i]->size;
        known->fab = set->planes[i]->fab;
        snprintf(known->name, sizeof(known->name), "%s", set->planes[i]->info.name);
    }
    for (uint32_t i = 0; i < publisher->n_retired; i++)
        update->known[update->n_known++] = publisher->retired[i];
    return PMIXFAB_OK;
}

static void update_add_plane_row(struct update *update, uint32_t index, const char *name, bool retired,
                                 void *bytes, size_t size)
{
    struct store_plane *row = &update->rows[update->n_rows++];
    *row = (struct store_plane){.index = index, .retired = retired, .snapshot = bytes, .size = size};
    snprintf(row->name, sizeof(row->name), "%s", name);
}

int update_find_changed(struct update *update)
{
    const struct served_set *set = update->served;
    update->rows = calloc(set->n + update->built.n + 1, sizeof(*update->rows));
    if (update->rows == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < update->built.n; i++) {
        const struct built_plane *plane = &update->built.planes[i];
        const struct served_plane *old = served_find(set, plane->index);
        if (old == NULL || update->publisher->inherited ||
            fab_snapshot_content(old->bytes) != fab_snapshot_content(plane->bytes))
            update_add_plane_row(update, plane->index, plane->name, false, plane->bytes, plane->size);
    }
    for (uint32_t i = 0; i < set->n; i++) {
        bool still_there = false;
        for (uint32_t k = 0; k < update->built.n; k++)
            still_there |= update->built.planes[k].index == set->planes[i]->info.index;
        if (!still_there)
            update_add_plane_row(update, set->planes[i]->info.index, set->planes[i]->info.name, true,
                                 set->planes[i]->bytes, set->planes[i]->size);
    }
    return PMIXFAB_OK;
}

void update_stamp_rows(struct update *update)
{
    for (uint32_t i = 0; i < update->n_rows; i++) {
        struct store_plane *row = &update->rows[i];
        row->generation = update->generation;
        if (!row->retired)
            fab_snapshot_stamp(row->snapshot, update->generation, update->published);
    }
}

int update_write_rows(struct update *update, struct fab_err *err)
{
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < update->n_rows; i++) {
        struct store_plane *row = &update->rows[i];
        if (row->retired)
            continue;
        rc = rundir_write(update->publisher->config->rundir, row->name, row->snapshot, row->size, err);
        if (rc == PMIXFAB_OK)
            rc = fab_snapshot_borrow(row->snapshot, row->size, &row->fab, err);
    }
    return rc;
}

/* ---- what will be served ------------------------------------------------------------------------ */

static struct store_plane *publish_row_of(const struct update *update, uint32_t index)
{
    for (uint32_t i = 0; i < update->n_rows; i++)
        if (update->rows[i].index == index)
            return &update->rows[i];
    return NULL;
}

/* The set after the change: changed planes with their new bytes (taken from the update), the others as they
 * are. */
static int update_make_set(struct update *update, struct served_set **out, struct fab_err *err)
{
    uint32_t n = 0;
    int rc = PMIXFAB_OK;
    struct served_plane **planes = calloc(update->built.n + 1, sizeof(*planes));
    *out = NULL;
    if (planes == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < update->built.n; i++) {
        struct built_plane *plane = &update->built.planes[i];
        struct store_plane *row = publish_row_of(update, plane->index);
        if (row == NULL) {
            struct served_plane *old = (struct served_plane *)served_find(update->served, plane->index);
            planes[n++] = served_plane_ref(old);
            continue;
        }
        void *bytes = plane->bytes;
        plane->bytes = NULL; /* the store's row still points at it; it lives as long as the set */
        struct pmixfab *fab = row->fab;
        row->fab = NULL;
        rc = served_plane_opened(bytes, plane->size, fab, update->publisher->config->rundir, &planes[n], err);
        n += rc == PMIXFAB_OK;
    }
    if (rc == PMIXFAB_OK) {
        *out = served_set_new(planes, n, update->generation, update->published);
        rc = *out == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory") : PMIXFAB_OK;
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

int update_make_publication(struct update *update, struct fab_err *err)
{
    struct publication *publication = calloc(1, sizeof(*publication));
    if (publication == NULL ||
        (publication->planes = calloc(update->n_rows + 1, sizeof(*publication->planes))) == NULL) {
        free(publication);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    publication->generation = update->generation;
    publication->n = update->n_rows;
    for (uint32_t i = 0; i < update->n_rows; i++) {
        publication->planes[i].index = update->rows[i].index;
        memcpy(publication->planes[i].name, update->rows[i].name, sizeof(update->rows[i].name));
        event_reason(update, &publication->planes[i]);
    }
    update->publication = publication;
    return update_make_set(update, &publication->set, err);
}

/* ---- after the commit --------------------------------------------------------------------------- */

/* Keep the list of retired planes: those that came back leave it, those that went join it. */
int update_plan_retired(struct update *update, struct fab_err *err)
{
    update->retired = calloc(update->publisher->n_retired + update->n_rows + 1, sizeof(*update->retired));
    if (update->retired == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < update->n_rows; i++) {
        if (!update->rows[i].retired)
            continue;
        struct store_plane *plane = &update->retired[update->n_retired];
        *plane = update->rows[i];
        plane->snapshot = malloc(plane->size);
        if (plane->snapshot == NULL)
            return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
        memcpy(plane->snapshot, update->rows[i].snapshot, plane->size);
        update->n_retired++;
    }
    return PMIXFAB_OK;
}

void update_accept_retired(struct update *update)
{
    struct publisher *publisher = update->publisher;
    for (uint32_t i = 0; i < publisher->n_retired; i++) {
        if (publish_row_of(update, publisher->retired[i].index) != NULL)
            free(publisher->retired[i].snapshot);
        else
            update->retired[update->n_retired++] = publisher->retired[i];
    }
    free(publisher->retired);
    publisher->retired = update->retired;
    publisher->n_retired = update->n_retired;
    update->retired = NULL;
    update->n_retired = 0;
}
