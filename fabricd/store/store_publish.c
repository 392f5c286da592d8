/* store_publish.c - store a change, all or nothing; and the planes, their numbers and last snapshots. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/store/store_priv.h"
#include "topo/base/array.h"
#include "topo/base/large_pages.h"

/* ---- planes ---- */

static uint64_t plane_digest(const struct store_plane *plane)
{
    uint64_t numbers[] = {plane->index, plane->retired, plane->generation, plane->size};
    return store_row_digest(numbers, 4, plane->name, plane->snapshot, plane->size);
}

/* Round up by up to a sixteenth, so that a snapshot that grows or shrinks slightly keeps its size in the
 * database. */
static size_t with_room(size_t size)
{
    size_t step = 4096;
    while (step < size / 16)
        step *= 2;
    return (size / step + 1) * step;
}

static int write_plane(struct store *store, const struct store_plane *plane, struct fab_err *err)
{
    const size_t room = with_room(plane->size);
    if ((plane->snapshot == NULL && plane->size > 0) || memchr(plane->name, '\0', sizeof plane->name) == NULL)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store %s: plane %u has no snapshot, or its name has no end",
                        store->path, plane->index);
    char *padded = malloc(room);
    if (padded == NULL)
        return store_nomem(store, err);
    fab_large_pages(padded, room);
    if (plane->size > 0)
        memcpy(padded, plane->snapshot, plane->size);
    memset(padded + plane->size, 0, room - plane->size);
    const struct store_value *values =
        VALUES(INT(plane->index), TEXT(plane->name), INT(plane->retired), INT(plane->generation),
               INT(plane_digest(plane)), BLOB(padded, room), INT(plane->size));
    int rc = PMIXFAB_OK;
    if (plane->was_zero)
        rc = store_run_one(store, "UPDATE plane SET number = ?1 WHERE number = 0", VALUES(INT(plane->index)),
                           "writing a plane", err);
    /* If the size is unchanged, an update in place writes only the pages that differ. */
    rc = rc
             ?: store_run(store,
                          "UPDATE plane SET name = ?2, retired = ?3, generation = ?4, digest = ?5,"
                          " snapshot = ?6, size = ?7 WHERE number = ?1",
                          values, "writing a plane", err);
    if (rc == PMIXFAB_OK && sqlite3_changes(store->db) != 1)
        rc = store_run_one(store,
                           "INSERT INTO plane (number, name, retired, generation, digest, snapshot, size)"
                           " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                           values, "writing a plane", err);
    free(padded);
    return rc;
}

static int read_plane(const struct store *store, sqlite3_stmt *row, struct store_plane *plane,
                      struct fab_err *err)
{
    bool bad = false;
    const char *name = store_text(row, 1, &bad);
    const void *snapshot = sqlite3_column_blob(row, 5);
    *plane = (struct store_plane){.index = (uint32_t)store_number(row, 0, UINT32_MAX, &bad),
                                  .retired = store_number(row, 2, 1, &bad) == 1,
                                  .generation = store_number(row, 3, INT64_MAX, &bad),
                                  .size = (size_t)sqlite3_column_bytes(row, 5)};
    if (sqlite3_column_type(row, 6) != SQLITE_NULL)
        plane->size = (size_t)store_number(row, 6, plane->size, &bad);
    if (strlen(name) >= sizeof plane->name || (snapshot == NULL && plane->size > 0))
        bad = true;
    else
        memcpy(plane->name, name, strlen(name));
    if (!bad && plane->size > 0) {
        plane->snapshot = malloc(plane->size);
        if (plane->snapshot == NULL)
            return store_nomem(store, err);
        memcpy(plane->snapshot, snapshot, plane->size);
    }
    if (bad || store_number(row, 4, UINT64_MAX, &bad) != plane_digest(plane))
        return store_corrupt(store, err, "plane %u does not match its digest", plane->index);
    return PMIXFAB_OK;
}

int store_load_planes(struct store *store, struct store_plane **planes, uint32_t *n, struct fab_err *err)
{
    sqlite3_stmt *row;
    uint32_t room = 0;
    *planes = NULL;
    *n = 0;
    int rc = store_first(
        store, "SELECT number, name, retired, generation, digest, snapshot, size FROM plane ORDER BY number",
        NULL, "reading the planes", &row, err);
    while (rc == 1) {
        rc = FAB_ARRAY_ROOM(planes, &room, *n + 1) ? read_plane(store, row, &(*planes)[(*n)++], err)
                                                   : store_nomem(store, err);
        rc = rc ?: store_next(store, row, "reading the planes", err);
    }
    store_done(row);
    sqlite3_db_release_memory(store->db);
    if (rc == PMIXFAB_OK)
        return rc;
    store_planes_free(*planes, *n);
    *planes = NULL;
    *n = 0;
    return rc;
}

void store_planes_free(struct store_plane *planes, uint32_t n)
{
    for (uint32_t i = 0; planes != NULL && i < n; i++)
        free(planes[i].snapshot);
    free(planes);
}

/* ---- the change ---- */

/* Numbers of generations have no gaps, except after a restore, and are never used twice. */
static int check_generation(struct store *store, uint64_t generation, struct fab_err *err)
{
    uint64_t next;
    int rc = store_next_generation(store, &next, err);
    if (rc == PMIXFAB_OK && generation != 0 && generation != next)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "store %s: generation %llu cannot follow generation %llu; restart fabricd",
                        store->path, (unsigned long long)generation, (unsigned long long)next - 1);
    return rc;
}

static int store_write_change(struct store *store, const struct store_publication *publication,
                              struct fab_err *err)
{
    const uint64_t generation = publication->generation;
    const struct fab_diff *diff = publication->diff;
    int rc = check_generation(store, generation, err);
    if (generation != 0)
        rc = rc
                 ?: store_write_generation(store, publication, err)
                 ?: store_write_history_digest(store, generation, err);
    if (rc == PMIXFAB_OK && generation != 0 && diff != NULL && diff->n > 0)
        rc = store_count_changes(store, diff->n, err);
    if (rc == PMIXFAB_OK && publication->before != publication->after)
        rc = store_write_inventory(store, publication->before, publication->after, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < publication->n_planes; i++)
        rc = write_plane(store, &publication->planes[i], err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < publication->n_announced; i++)
        rc = store_write_announced(store, &publication->announced[i], err);
    if (rc == PMIXFAB_OK && publication->absent != NULL)
        rc = store_write_absent(store, publication->absent_before, publication->absent, generation != 0, err);
    if (rc == PMIXFAB_OK && publication->ready != NULL)
        rc = publication->ready(publication->ready_data, err);
    return rc;
}

int store_publish(struct store *store, const struct store_publication *publication, struct fab_err *err)
{
    if (!publication->before->finished || !publication->after->finished)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store %s: only a finished inventory can be published",
                        store->path);
    int rc = store_begin(store, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = store_end(store, store_write_change(store, publication, err), err);
    if (rc == PMIXFAB_OK && publication->generation != 0)
        store_mark_newest(store, publication->generation);
    return rc;
}
