/* store_verify.c - the history of a store that is in use, compared with its digests over a connection of its
 * own. */
#include "fabricd/store/file_priv.h"
#include "fabricd/store/store_copy.h"

int store_verify(const char *path, uint64_t newest, bool (*progress)(uint64_t done, void *cbdata),
                 void *cbdata, struct store_history_checked *out, struct fab_err *err)
{
    struct store other = {.path = (char *)path, .lock_fd = -1};
    int code = sqlite3_open_v2(path, &other.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_timeout(other.db, STORE_BUSY_MS);
        code =
            sqlite3_exec(other.db, "BEGIN", NULL, NULL, NULL); /* what is trimmed meanwhile is still there */
    }
    int rc = code == SQLITE_OK ? store_prepare_tables(&other, err) : store_fail(&other, code, "opening", err);
    if (rc == PMIXFAB_OK)
        rc = store_history_check(&other, newest, progress, cbdata, out, err);
    store_disconnect(&other);
    return rc;
}
