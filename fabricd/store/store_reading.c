/*
 * store_reading.c - a store whose disk is full or read-only: what is there is read, and nothing is written.
 * And: is there room again?
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fabricd/store/file_priv.h"
#include "fabricd/store/schema.h"
#include "fabricd/store/tables_priv.h"

#define ROOM (1 << 20) /* for a log, its index and the first publications */

/* Bytes. A store of an older schema is copied before it is brought up to date. */
static uint64_t room_needed(const char *path)
{
    unsigned char head[64] = {0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool there = fd >= 0 && fstat(fd, &st) == 0 && pread(fd, head, sizeof(head), 0) == sizeof(head);
    if (fd >= 0)
        close(fd);
    return ROOM + (there && head[63] < store_count_steps(schema_sql) ? 2 * (uint64_t)st.st_size : 0);
}

/* A quota does not show but by writing. */
static int room_try(const char *path)
{
    static const char nothing[65536];
    char file[PATH_MAX];
    snprintf(file, sizeof(file), "%s.room", path);
    unlink(file); /* of one that was killed */
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    ssize_t n = write(fd, nothing, sizeof(nothing));
    int why = n == (ssize_t)sizeof(nothing) ? 0 : n >= 0 ? ENOSPC : errno;
    close(fd);
    unlink(file);
    return why;
}

int store_no_room(const char *path, bool opened)
{
    char folder[PATH_MAX];
    struct statvfs fs;
    snprintf(folder, sizeof(folder), "%s", path);
    char *end = strrchr(folder, '/');
    if (end == NULL)
        return 0;
    end[end == folder] = '\0';
    if (!opened && statvfs(folder, &fs) == 0) {
        if ((fs.f_flag & ST_RDONLY) != 0)
            return EROFS;
        if ((uint64_t)fs.f_bavail * fs.f_frsize < room_needed(path))
            return ENOSPC;
    }
    int why = room_try(path);
    return why == ENOSPC || why == EDQUOT || why == EROFS ? why : 0;
}

/* In the place of a store that is not there, or cannot be read yet: an empty one, which nobody writes to. */
static int reading_nothing(struct store *store, struct fab_err *err)
{
    int code = sqlite3_open_v2(":memory:", &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    int rc =
        code == SQLITE_OK ? store_migrate(store, schema_sql, err) : store_fail(store, code, "opening", err);
    if (rc == PMIXFAB_OK)
        sqlite3_exec(store->db, "PRAGMA query_only = ON", NULL, NULL, NULL);
    return rc;
}

static int reading_open(struct store *store, struct fab_err *err)
{
    struct fab_err why;
    int version = 0;
    int rc = store_lock(store, &why);
    if (rc == PMIXFAB_ERR_BUSY)
        return fab_fail(err, rc, "%s", why.text);
    /* Without a lock: on a disk that nobody can write to. */
    rc = store_examine(store, schema_sql, &version, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = version == store_count_steps(schema_sql) ? store_connect_reading(store, err)
                                                  : reading_nothing(store, err);
    if (rc == PMIXFAB_OK)
        rc = store_prepare_tables(store, err);
    if (rc == PMIXFAB_OK)
        sqlite3_progress_handler(store->db, 0, NULL, NULL);
    return rc;
}

int store_open_reading(const char *path, int why, struct store **out, struct fab_err *err)
{
    struct store *store = calloc(1, sizeof *store);
    *out = NULL;
    if (store == NULL || (store->path = store_canonical_path(path)) == NULL) {
        free(store);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "store %s: out of memory", path);
    }
    store->lock_fd = -1;
    int rc = reading_open(store, err);
    if (rc != PMIXFAB_OK) {
        store_close(store);
        return rc;
    }
    store->reading = why;
    *out = store;
    return PMIXFAB_OK;
}
