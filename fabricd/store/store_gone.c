/* store_gone.c - generations that the store does not have. Rarely asked: nothing is prepared beforehand. */
#include "fabricd/store/store_gone.h"

#include <stdio.h>
#include <stdlib.h>

#include "fabricd/store/tables_priv.h"
#include "topo/base/array.h"

int store_gone_load(struct store *store, struct store_gone **list, uint32_t *n, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    uint32_t room = 0;
    *list = NULL;
    *n = 0;
    int rc = store_prepare_one(store,
                               "SELECT above, newest, found, why FROM gone"
                               " WHERE newest > (SELECT trimmed FROM history) ORDER BY above",
                               &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    while ((rc = store_step(store, stmt, "reading what is gone", err)) == 1) {
        if (!FAB_ARRAY_ROOM(list, &room, *n + 1)) {
            rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
            break;
        }
        struct store_gone *gone = &(*list)[(*n)++];
        const char *why = (const char *)sqlite3_column_text(stmt, 3);
        *gone = (struct store_gone){.above = (uint64_t)sqlite3_column_int64(stmt, 0),
                                    .newest = (uint64_t)sqlite3_column_int64(stmt, 1),
                                    .found = sqlite3_column_int64(stmt, 2)};
        snprintf(gone->why, sizeof(gone->why), "%s", why != NULL ? why : "");
    }
    sqlite3_finalize(stmt);
    return rc;
}

/* The numbers come last: killed before that, the next start finds the same once more. */
int store_gone_add(struct store *store, const struct store_gone *gone, struct fab_err *err)
{
    sqlite3_stmt *stmt;
    int rc = store_prepare_one(
        store, "INSERT OR REPLACE INTO gone (above, newest, found, why) VALUES (?1, ?2, ?3, ?4)", &stmt, err);
    if (rc != PMIXFAB_OK)
        return rc;
    int bound = sqlite3_bind_int64(stmt, 1, (int64_t)gone->above);
    bound |= sqlite3_bind_int64(stmt, 2, (int64_t)gone->newest);
    bound |= sqlite3_bind_int64(stmt, 3, gone->found);
    bound |= store_bind_text(stmt, 4, gone->why);
    rc = store_run(store, stmt, bound, "writing what is gone", err);
    sqlite3_finalize(stmt);
    return rc == PMIXFAB_OK ? store_raise(store, gone->newest, err) : rc;
}
