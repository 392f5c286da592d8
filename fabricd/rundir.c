/* rundir.c - the snapshot files in the run directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/log.h"
#include "fabricd/publish_priv.h"

#define PATH_SIZE 4096

static void final_path(char *path, const char *rundir, const char *plane)
{
    snprintf(path, PATH_SIZE, "%s/%s.snap", rundir, plane);
}

/* Readers look for *.snap: this name is none. */
static void new_path(char *path, const char *rundir, const char *plane)
{
    snprintf(path, PATH_SIZE, "%s/.%s.snap.new", rundir, plane);
}

static int write_all(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

int rundir_write(const char *rundir, const char *plane, const void *bytes, size_t size, struct fab_err *err)
{
    char path[PATH_SIZE];
    new_path(path, rundir, plane);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    /* Reading is for all, whatever the umask that fabricd was started with. */
    int failed = fchmod(fd, 0644) != 0 || write_all(fd, bytes, size) != 0 ? errno : 0;
    if (close(fd) != 0 && failed == 0)
        failed = errno;
    if (failed != 0) {
        unlink(path);
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: writing failed: %s", path, strerror(failed));
    }
    return PMIXFAB_OK;
}

int rundir_commit(const char *rundir, const char *plane, struct fab_err *err)
{
    char from[PATH_SIZE], to[PATH_SIZE];
    new_path(from, rundir, plane);
    final_path(to, rundir, plane);
    if (rename(from, to) != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be put in place: %s", to, strerror(errno));
    return PMIXFAB_OK;
}

int rundir_mend(const char *rundir, const struct served_set *set, struct fab_err *err)
{
    char path[PATH_SIZE];
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; rc == PMIXFAB_OK && set != NULL && i < set->n; i++) {
        const struct served_plane *plane = set->planes[i];
        final_path(path, rundir, plane->info.name);
        if (access(path, F_OK) == 0 || errno != ENOENT)
            continue;
        log_warning("run directory: %s is gone, writing it again", path);
        rc = rundir_write(rundir, plane->info.name, plane->bytes, plane->size, err);
        if (rc == PMIXFAB_OK)
            rc = rundir_commit(rundir, plane->info.name, err);
    }
    return rc;
}

void rundir_discard(const char *rundir, const char *plane)
{
    char path[PATH_SIZE];
    new_path(path, rundir, plane);
    unlink(path);
}

void rundir_remove(const char *rundir, const char *plane)
{
    char path[PATH_SIZE];
    final_path(path, rundir, plane);
    unlink(path);
}

static bool in_set(const struct served_set *set, const char *file)
{
    for (uint32_t i = 0; i < set->n; i++) {
        size_t len = strlen(set->planes[i]->info.name);
        if (strncmp(file, set->planes[i]->info.name, len) == 0 && strcmp(file + len, ".snap") == 0)
            return true;
    }
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);
    return len >= n && strcmp(text + len - n, end) == 0;
}

void rundir_clean(const char *rundir, const struct served_set *set)
{
    DIR *dir = opendir(rundir);
    if (dir == NULL)
        return;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        bool left_over = ends_with(entry->d_name, ".snap.new");
        bool foreign = ends_with(entry->d_name, ".snap") && !in_set(set, entry->d_name);
        if (left_over || foreign) {
            log_debug("run directory: removing %s", entry->d_name);
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    closedir(dir);
}
