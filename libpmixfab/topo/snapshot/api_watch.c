/* api_watch.c - a descriptor that becomes readable when a run directory may have changed, and the changes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/base/array.h"
#include "topo/base/give.h"
#include "topo/base/library_log.h"
#include "topo/snapshot/folder_watch.h"
#include "topo/snapshot/format.h"
#include "topo/snapshot/snapshot.h"

/* The state of one file; generation 0: the file does not exist. */
struct watch_state {
    uint64_t generation;
    int64_t published;
};

struct watch_plane {
    char name[SNAP_NAME_MAX + 1];
    struct watch_state now, told;
    bool seen; /* by the scan in progress */
};

struct pmixfab_watch {
    struct fab_folder_watch folder;
    struct watch_plane *planes;
    uint32_t n, room;
    int stale, told_stale;
};

static struct watch_plane *watch_plane(struct pmixfab_watch *watch, const char *name)
{
    for (uint32_t i = 0; i < watch->n; i++)
        if (strcmp(watch->planes[i].name, name) == 0)
            return &watch->planes[i];
    if (!FAB_ARRAY_ROOM(&watch->planes, &watch->room, (uint64_t)watch->n + 1))
        return NULL;
    struct watch_plane *plane = &watch->planes[watch->n++];
    memset(plane, 0, sizeof(*plane));
    strcpy(plane->name, name);
    return plane;
}

/* Read the state of a file. If its head is invalid, the known state stays. */
static void watch_read(int dir, const char *file, struct watch_state *now)
{
    char bytes[sizeof(struct snap_head)] __attribute__((aligned(8)));
    int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (read(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes) && fab_snapshot_generation(bytes) != 0)
        *now = (struct watch_state){snap_head(bytes)->generation, snap_head(bytes)->published};
    close(fd);
}

static int watch_look(struct pmixfab_watch *watch)
{
    char name[SNAP_NAME_MAX + 1];
    int rc = PMIXFAB_OK;
    DIR *dir;

    /* before the scan: no change between is missed */
    fab_folder_watch_arm(&watch->folder);
    dir = opendir(watch->folder.folder);
    if (dir == NULL && errno != ENOENT && errno != ENOTDIR)
        return errno == EACCES ? PMIXFAB_ERR_PERM : errno == ENOMEM ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_IO;
    for (uint32_t i = 0; i < watch->n; i++)
        watch->planes[i].seen = false;
    for (struct dirent *entry; dir != NULL && rc == PMIXFAB_OK && (entry = readdir(dir)) != NULL;) {
        if (!fab_snapshot_plane_of(entry->d_name, name))
            continue;
        struct watch_plane *plane = watch_plane(watch, name);
        if (plane == NULL) {
            rc = PMIXFAB_ERR_NOMEM;
            break;
        }
        plane->seen = true;
        watch_read(dirfd(dir), entry->d_name, &plane->now);
    }
    for (uint32_t i = 0; i < watch->n && rc == PMIXFAB_OK; i++)
        if (!watch->planes[i].seen)
            watch->planes[i].now = (struct watch_state){0};
    if (dir == NULL)
        watch->stale = 1;
    else
        closedir(dir);
    if (dir != NULL && rc == PMIXFAB_OK)
        rc = pmixfab_stale_rundir(watch->folder.folder, &watch->stale);
    /* removed since, or this user may not connect to the socket: then the state is unknown */
    return rc == PMIXFAB_ERR_NOTFOUND || rc == PMIXFAB_ERR_PERM ? PMIXFAB_OK : rc;
}

/* Return the first difference that is not reported yet. */
static bool watch_tell(struct pmixfab_watch *watch, struct pmixfab_change *change)
{
    memset(change, 0, sizeof(*change));
    for (uint32_t i = 0; i < watch->n; i++) {
        struct watch_plane *plane = &watch->planes[i];
        if (plane->now.generation == plane->told.generation && plane->now.published == plane->told.published)
            continue;
        plane->told = plane->now;
        strcpy(change->plane, plane->name);
        change->generation = plane->now.generation;
        change->kind = plane->now.generation != 0 ? PMIXFAB_CHANGE_PUBLISHED : PMIXFAB_CHANGE_GONE;
        return true;
    }
    if (watch->stale == watch->told_stale)
        return false;
    watch->told_stale = watch->stale;
    change->kind = watch->stale ? PMIXFAB_CHANGE_STALE : PMIXFAB_CHANGE_CURRENT;
    return true;
}

int pmixfab_watch_open(const char *rundir, struct pmixfab_watch **out)
{
    struct pmixfab_change change;

    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = NULL;
    if (rundir == NULL)
        rundir = FAB_DEFAULT_RUNDIR;
    if (rundir[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    struct pmixfab_watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return PMIXFAB_ERR_NOMEM;
    int rc = fab_folder_watch_open(rundir, &watch->folder);
    const bool watched = rc == PMIXFAB_OK && fab_folder_watch_arm(&watch->folder);
    const int why = errno;
    if (rc == PMIXFAB_OK)
        rc = watched                           ? watch_look(watch)
             : why == ENOENT || why == ENOTDIR ? PMIXFAB_ERR_NOTFOUND
                                               : PMIXFAB_ERR_IO;
    if (rc != PMIXFAB_OK) {
        fab_log(PMIXFAB_LOG_ERROR, "%s: cannot be watched: %s", rundir,
                watched || rc == PMIXFAB_ERR_NOMEM ? pmixfab_strerror(rc) : strerror(why));
        pmixfab_watch_close(watch);
        return rc;
    }
    while (watch_tell(watch, &change)) /* existing snapshots are no changes */
        continue;
    *out = watch;
    return PMIXFAB_OK;
}

int pmixfab_watch_fd(const struct pmixfab_watch *watch)
{
    return watch == NULL ? -1 : watch->folder.inotify;
}

int pmixfab_watch_next_sized(struct pmixfab_watch *watch, struct pmixfab_change *out, size_t size)
{
    struct pmixfab_change change;

    if (watch == NULL || out == NULL || size == 0)
        return PMIXFAB_ERR_INVAL;
    if (!watch_tell(watch, &change)) {
        /* an event says only that something happened; the scan finds the change */
        fab_folder_watch_drain(&watch->folder);
        int rc = watch_look(watch);
        if (rc != PMIXFAB_OK)
            return rc;
        if (!watch_tell(watch, &change))
            return PMIXFAB_ERR_NOTFOUND;
    }
    fab_give(out, size, &change, sizeof(change));
    return PMIXFAB_OK;
}

void pmixfab_watch_close(struct pmixfab_watch *watch)
{
    if (watch == NULL)
        return;
    fab_folder_watch_close(&watch->folder);
    free(watch->planes);
    free(watch);
}
