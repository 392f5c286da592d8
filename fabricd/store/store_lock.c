/*
 * store_lock.c - the lock file of the store, PATH.lock, with the marks. Also checks for disk space.
 *
 * flock() on the lock file allows one fabricd per store. The file has three lines: the pid of the owner (0:
 * none), and the marks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fabricd/base/file_io.h"
#include "fabricd/store/store_priv.h"

/* ---- marks ---- */

static void read_marks(struct store *store)
{
    char text[1024] = "";
    struct store_marks *marks = &store->marks;
    *marks = (struct store_marks){0};
    if (pread(store->lock_fd, text, sizeof(text) - 1, 0) <= 0 ||
        sscanf(text, "%*d\nnewest %" SCNu64 "\nbackup %" SCNu64 " %511[^\n]", &marks->newest, &marks->backup,
               marks->file) < 1)
        *marks = (struct store_marks){0};
}

/* Write the marks for operators and the next start: a full disk must not prevent that the store is served.
 * One write over the old text needs no disk space. */
static void write_marks(struct store *store, long pid)
{
    char text[1024];
    const struct store_marks *marks = &store->marks;
    int n = snprintf(text, sizeof text, "%ld\nnewest %" PRIu64 "\nbackup %" PRIu64 " %s\n", pid,
                     marks->newest, marks->backup, marks->file);
    if (store->lock_fd >= 0 && pwrite(store->lock_fd, text, (size_t)n, 0) == n)
        (void)!ftruncate(store->lock_fd, n);
}

void store_marks(const struct store *store, struct store_marks *out)
{
    *out = store->marks;
}

void store_mark_newest(struct store *store, uint64_t generation)
{
    store->marks.newest = generation;
    write_marks(store, getpid());
}

void store_mark_backup(struct store *store, uint64_t generation, const char *file)
{
    store->marks.backup = generation;
    snprintf(store->marks.file, sizeof(store->marks.file), "%.*s", (int)strcspn(file, "\n"), file);
    write_marks(store, getpid());
}

/* ---- the lock ---- */

/* Return the owner of the lock, for messages. */
static const char *lock_holder(int fd, char *name, size_t size)
{
    char text[24] = "";
    const long pid = pread(fd, text, sizeof text - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
    if (pid <= 0)
        return "another fabricd";
    snprintf(name, size, "fabricd with pid %ld", pid);
    return name;
}

int store_lock(struct store *store, struct fab_err *err)
{
    char path[PATH_MAX], name[48];
    int n = snprintf(path, sizeof path, "%s.lock", store->path), rc = PMIXFAB_OK;
    if (n < 0 || (size_t)n >= sizeof path)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "store %.200s...: the path is too long", store->path);

    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return fab_fail(
            err, PMIXFAB_ERR_IO,
            "store %s: cannot open its lock %s: %s: the directory must exist and be writable for fabricd",
            store->path, path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        rc = errno == EWOULDBLOCK
                 ? fab_fail(err, PMIXFAB_ERR_BUSY,
                            "store %s: %s has it open; stop that one, or give this one its own --store",
                            store->path, lock_holder(fd, name, sizeof name))
                 : fab_fail(err, PMIXFAB_ERR_IO, "store %s: cannot lock %s: %s", store->path, path,
                            strerror(errno));
    if (rc != PMIXFAB_OK) {
        close(fd);
        return rc;
    }
    store->lock_fd = fd;
    file_hide(path);
    read_marks(store);
    write_marks(store, getpid());
    return PMIXFAB_OK;
}

/* The file stays: if one process removed it while another waits for it, there would be two locks of one name.
 */
void store_unlock(struct store *store)
{
    if (store->lock_fd < 0)
        return;
    write_marks(store, 0);
    close(store->lock_fd);
    store->lock_fd = -1;
}

/* ---- disk space ---- */

#define ROOM (1 << 20) /* for a log, its index and the first publications */

/* In bytes. A store of an older schema is copied before its migration. */
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

/* A quota shows only when data is written. */
static int room_try(const char *path)
{
    static const char nothing[65536];
    char file[PATH_MAX];
    snprintf(file, sizeof(file), "%s.room", path);
    unlink(file); /* of a process that was killed */
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
