#include "fabricd/serving/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "topo/snapshot/pending.h"
#include "topo/snapshot/snapshot.h"

#define PATH_SIZE 4096

static void final_path(char *path, const char *rundir, const char *plane)
{
    snprintf(path, PATH_SIZE, "%s/%s.snap", rundir, plane);
}

/* Readers search for *.snap, which this name does not match. */
static void new_path(char *path, const char *rundir, const char *plane)
{
    snprintf(path, PATH_SIZE, "%s/.%s.snap.new", rundir, plane);
}

int rundir_write(const char *rundir, const char *plane, const void *bytes, size_t size, struct fab_err *err)
{
    char path[PATH_SIZE];
    new_path(path, rundir, plane);
    int failed = file_write(path, bytes, size);
    if (failed != 0)
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be written: %s", path, strerror(failed));
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

void rundir_mark_stale(const char *rundir, bool stale)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/" FAB_RUNDIR_STALE, rundir);
    if ((access(path, F_OK) == 0) == stale)
        return;
    int failed = stale ? file_write(path, "", 0) : unlink(path) == 0 ? 0 : errno;
    if (failed != 0)
        log_warning("run directory: %s cannot be %s: %s: readers of the directory do not learn that the "
                    "snapshots are %s",
                    path, stale ? "written" : "removed", strerror(failed),
                    stale ? "stale" : "no longer stale");
}

/* Return how the file differs from the served plane; NULL: it does not differ, or this is not known. */
static const char *find_damage(const char *path, const struct served_plane *plane)
{
    char some[65536];
    struct stat st;
    ssize_t n = 0;
    size_t at = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? "is gone" : errno == ELOOP ? "is a link" : NULL;
    const char *wrong = fstat(fd, &st) != 0                 ? NULL
                        : !S_ISREG(st.st_mode)              ? "is not a regular file"
                        : (size_t)st.st_size != plane->size ? "has another size"
                        : (st.st_mode & 0777) != 0644       ? "has other permissions"
                                                            : "";
    while (wrong != NULL && wrong[0] == '\0' && at < plane->size &&
           ((n = read(fd, some, sizeof(some))) > 0 || (n < 0 && errno == EINTR))) {
        if (n > 0 &&
            ((size_t)n > plane->size - at || memcmp(some, (const char *)plane->bytes + at, (size_t)n) != 0))
            wrong = "is damaged";
        at += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (wrong != NULL && wrong[0] == '\0')
        return at < plane->size ? "cannot be read" : NULL;
    return wrong;
}

/*
 * Write the planes whose files differ from the served planes. *n: number of written planes. Returns the
 * first error.
 */
static int write_wrong(const char *rundir, const struct served_set *set, bool tell, uint32_t *n,
                       struct fab_err *err)
{
    char path[PATH_SIZE];
    int rc = PMIXFAB_OK;
    for (uint32_t i = 0; set != NULL && i < set->n; i++) {
        const struct served_plane *plane = set->planes[i];
        struct fab_err why = {""};
        final_path(path, rundir, plane->info.name);
        const char *wrong = find_damage(path, plane);
        if (wrong == NULL)
            continue;
        if (tell)
            log_warning("run directory: %s %s, writing it again", path, wrong);
        int failed = rundir_write(rundir, plane->info.name, plane->bytes, plane->size, &why);
        if (failed == PMIXFAB_OK)
            failed = rundir_commit(rundir, plane->info.name, &why);
        *n += failed == PMIXFAB_OK;
        if (failed != PMIXFAB_OK && rc == PMIXFAB_OK)
            rc = fab_fail(err, failed, "%s", why.text);
    }
    return rc;
}

int rundir_put(const char *rundir, const struct served_set *set, struct fab_err *err)
{
    uint32_t n = 0;
    return write_wrong(rundir, set, false, &n, err);
}

int rundir_mend(const char *rundir, const struct served_set *set, bool stale, uint32_t *mended,
                struct fab_err *err)
{
    uint32_t n = 0;
    const int rc = write_wrong(rundir, set, true, &n, err);
    rundir_mark_stale(rundir, stale);
    if (mended != NULL)
        *mended = n;
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
        bool left_over =
            ends_with(entry->d_name, ".snap.new") || strcmp(entry->d_name, RUNDIR_PENDING_NEW) == 0;
        bool foreign = ends_with(entry->d_name, ".snap") && !in_set(set, entry->d_name);
        if (left_over || foreign) {
            log_debug("run directory: removing %s", entry->d_name);
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    closedir(dir);
}

uint64_t rundir_newest(const char *rundir)
{
    char head[FAB_SNAPSHOT_HEAD] __attribute__((aligned(8)));
    uint64_t newest = 0;
    DIR *dir = opendir(rundir);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' || !ends_with(entry->d_name, ".snap"))
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));
        uint64_t generation = n == (ssize_t)sizeof(head) ? fab_snapshot_generation(head) : 0;
        if (generation > newest)
            newest = generation;
        if (fd >= 0)
            close(fd);
    }
    if (dir != NULL)
        closedir(dir);
    return newest;
}

/* Return the plane of this file. NULL: it is not a valid snapshot. */
static struct served_plane *load_plane(const char *rundir, const char *file)
{
    char path[PATH_SIZE];
    struct fab_err err = {""};
    struct served_plane *plane = NULL;
    void *bytes;
    size_t size;
    snprintf(path, sizeof(path), "%s/%s", rundir, file);
    int failed = file_read(path, SIZE_MAX, &bytes, &size);
    if (failed != 0 || served_plane_new(bytes, size, rundir, &plane, &err) != PMIXFAB_OK) {
        log_warning("run directory: %s is skipped: %s", path, failed != 0 ? "cannot be read" : err.text);
        return NULL;
    }
    if (strcmp(plane->path, path) == 0)
        return plane;
    log_warning("run directory: %s is skipped: it contains plane %s", path, plane->info.name);
    served_plane_put(plane);
    return NULL;
}

static bool has_index(struct served_plane *const *planes, uint32_t n, uint32_t index)
{
    for (uint32_t i = 0; i < n; i++)
        if (planes[i]->info.index == index)
            return true;
    return false;
}

int rundir_load(const char *rundir, struct served_set **out, struct fab_err *err)
{
    struct served_plane **planes = NULL, **more, *plane;
    uint64_t generation = 0;
    int64_t published = 0;
    uint32_t n = 0;
    DIR *dir = opendir(rundir);
    int rc = PMIXFAB_OK;
    *out = NULL;
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' || !ends_with(entry->d_name, ".snap") ||
            (plane = load_plane(rundir, entry->d_name)) == NULL)
            continue;
        more = has_index(planes, n, plane->info.index) ? NULL : realloc(planes, (n + 1) * sizeof(*planes));
        if (more == NULL) {
            log_warning("run directory: %s is skipped: there is another plane %u", plane->path,
                        plane->info.index);
            served_plane_put(plane);
            continue;
        }
        planes = more;
        planes[n++] = plane;
        if (plane->info.generation > generation) {
            generation = plane->info.generation;
            published = plane->info.published;
        }
    }
    if (dir != NULL)
        closedir(dir);
    *out = served_set_new(planes, n, generation, published);
    if (*out == NULL) {
        for (uint32_t i = 0; i < n; i++)
            served_plane_put(planes[i]);
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    free(planes);
    return rc;
}
