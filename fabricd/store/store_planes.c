/* store_planes.c - the planes, their numbers and their last snapshots. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/store/tables_priv.h"
#include "topo/base/array.h"
#include "topo/base/large_pages.h"

int store_planes_prepare(struct store *store, struct fab_err *err)
{
    const struct store_sql list[] = {
        {&store->planes,
         "SELECT number, name, retired, generation, digest, snapshot, size FROM plane ORDER BY number"},
        /* An update in place writes only those pages of a snapshot that differ, if its size is the same. */
        {&store->plane_update, "UPDATE plane SET name = ?2, retired = ?3, generation = ?4, digest = ?5,"
                               " snapshot = ?6, size = ?7 WHERE number = ?1"},
        {&store->plane_move, "UPDATE plane SET number = ?1 WHERE number = 0"},
        {&store->plane_insert, "INSERT INTO plane (number, name, retired, generation, digest, snapshot, size)"
                               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
    };
    return store_prepare(store, list, sizeof list / sizeof list[0], err);
}

/* Up to a sixteenth more, so that a snapshot that grows or shrinks a little has the same size in the
 * database.
 */
static size_t with_room(size_t size)
{
    size_t step = 4096;
    while (step < size / 16)
        step *= 2;
    return (size / step + 1) * step;
}

static int bind_plane(sqlite3_stmt *stmt, const struct store_plane *plane, const void *padded)
{
    int rc = sqlite3_bind_int64(stmt, 1, plane->index);
    rc |= store_bind_text(stmt, 2, plane->name);
    rc |= sqlite3_bind_int(stmt, 3, plane->retired);
    rc |= sqlite3_bind_int64(stmt, 4, (int64_t)plane->generation);
    rc |= sqlite3_bind_int64(stmt, 5, (int64_t)store_plane_digest(plane));
    rc |= sqlite3_bind_blob64(stmt, 6, padded, with_room(plane->size), SQLITE_STATIC);
    rc |= sqlite3_bind_int64(stmt, 7, (int64_t)plane->size);
    return rc;
}

int store_write_plane(struct store *store, const struct store_plane *plane, struct fab_err *err)
{
    if ((plane->snapshot == NULL && plane->size > 0) || memchr(plane->name, '\0', sizeof plane->name) == NULL)
        return fab_fail(err, PMIXFAB_ERR_INVAL, "store %s: plane %u has no snapshot or no end of its name",
                        store->path, plane->index);
    char *padded = malloc(with_room(plane->size));
    if (padded == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", store->path);
    fab_large_pages(padded, with_room(plane->size));
    if (plane->size > 0)
        memcpy(padded, plane->snapshot, plane->size);
    memset(padded + plane->size, 0, with_room(plane->size) - plane->size);
    int rc = PMIXFAB_OK;
    if (plane->was_zero)
        rc = store_run_one(store, store->plane_move, sqlite3_bind_int64(store->plane_move, 1, plane->index),
                           "writing a plane", err);
    if (rc == PMIXFAB_OK)
        rc = store_run(store, store->plane_update, bind_plane(store->plane_update, plane, padded),
                       "writing a plane", err);
    if (rc == PMIXFAB_OK && sqlite3_changes(store->db) != 1)
        rc = store_run_one(store, store->plane_insert, bind_plane(store->plane_insert, plane, padded),
                           "writing a plane", err);
    free(padded);
    return rc;
}

static int read_plane(struct store *store, struct store_plane *plane, struct fab_err *err)
{
    sqlite3_stmt *stmt = store->planes;
    bool bad = false;
    const char *name = (const char *)sqlite3_column_text(stmt, 1);
    const void *snapshot = sqlite3_column_blob(stmt, 5);
    size_t length = (size_t)sqlite3_column_bytes(stmt, 1);
    memset(plane, 0, sizeof *plane);
    plane->index = (uint32_t)store_number(stmt, 0, UINT32_MAX, &bad);
    plane->retired = store_number(stmt, 2, 1, &bad) == 1;
    plane->generation = store_number(stmt, 3, INT64_MAX, &bad);
    plane->size = (size_t)sqlite3_column_bytes(stmt, 5);
    if (sqlite3_column_type(stmt, 6) != SQLITE_NULL)
        plane->size = (size_t)store_number(stmt, 6, plane->size, &bad);
    if (name == NULL || length >= sizeof plane->name || (snapshot == NULL && plane->size > 0))
        bad = true;
    else
        memcpy(plane->name, name, length);
    if (!bad && plane->size > 0) {
        plane->snapshot = malloc(plane->size);
        if (plane->snapshot == NULL)
            return fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", store->path);
        memcpy(plane->snapshot, snapshot, plane->size);
    }
    if (bad || store_number(stmt, 4, UINT64_MAX, &bad) != store_plane_digest(plane))
        return fab_fail(err, PMIXFAB_ERR_CORRUPT,
                        "store %s: plane %u is not the one that was written: " STORE_RESTORE, store->path,
                        plane->index);
    return PMIXFAB_OK;
}

int store_load_planes(struct store *store, struct store_plane **planes, uint32_t *n, struct fab_err *err)
{
    *planes = NULL;
    *n = 0;

    struct store_plane *list = NULL;
    uint32_t count = 0, room = 0;
    int rc;
    while ((rc = store_step(store, store->planes, "reading the planes", err)) == 1) {
        rc = FAB_ARRAY_ROOM(&list, &room, count + 1)
                 ? read_plane(store, &list[count++], err)
                 : fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", store->path);
        if (rc != PMIXFAB_OK)
            break;
    }
    sqlite3_reset(store->planes);
    sqlite3_db_release_memory(store->db);
    if (rc != PMIXFAB_OK) {
        store_planes_free(list, count);
        return rc;
    }
    *planes = list;
    *n = count;
    return PMIXFAB_OK;
}

void store_planes_free(struct store_plane *planes, uint32_t n)
{
    for (uint32_t i = 0; planes != NULL && i < n; i++)
        free(planes[i].snapshot);
    free(planes);
}
