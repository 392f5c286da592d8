#include "pmix/rundir/published.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "topo/base/library_log.h"
#include "topo/snapshot/format.h"

void pnet_published_forget(struct pnet_published *published)
{
    struct pnet_plane *plane = published->planes, *next;
    published->planes = NULL;
    fab_pending_clear(&published->pending);
    for (; plane != NULL; plane = next) {
        next = plane->next;
        pnet_content_unlist(plane->content);
        free(plane);
    }
}

struct pnet_plane *pnet_published_find(const struct pnet_published *published, const char *name)
{
    struct pnet_plane *plane;
    DL_FOREACH(published->planes, plane)
    {
        if (strcmp(plane->name, name) == 0)
            return plane;
    }
    return NULL;
}

/* ---- trust ------------------------------------------------------------------------------------------
 *
 * Users are compared by number: a name may wait for a directory server. The service's user is the owner of
 * the run directory, if only root could have put it where it is; or whoever we are ourselves.
 */

static bool only_its_owner_writes(const struct stat *st)
{
    return (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool trust_directory(struct pnet_published *published, int fd)
{
    struct stat dir, parent;
    if (fstat(fd, &dir) != 0 || !only_its_owner_writes(&dir))
        return false;
    published->service = dir.st_uid;
    if (dir.st_uid == 0 || dir.st_uid == geteuid())
        return true;
    return fstatat(fd, "..", &parent, 0) == 0 && parent.st_uid == 0 && only_its_owner_writes(&parent);
}

static bool trust_file(const struct pnet_published *published, const struct stat *st)
{
    return S_ISREG(st->st_mode) && only_its_owner_writes(st) &&
           (st->st_uid == 0 || st->st_uid == published->service);
}

/* ---- one file --------------------------------------------------------------------------------------- */

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           same_time(a->st_mtim, b->st_mtim) && same_time(a->st_ctim, b->st_ctim);
}

static struct pnet_plane *published_find_or_add(struct pnet_published *published, const char *name)
{
    struct pnet_plane *plane = pnet_published_find(published, name);
    if (plane == NULL && (plane = calloc(1, sizeof(*plane))) != NULL) {
        snprintf(plane->name, sizeof(plane->name), "%s", name);
        DL_APPEND(published->planes, plane);
    }
    return plane;
}

/* What a new file holds becomes the plane's content, unless it is what is known already (a daemon that starts
 * writes its files anew). */
static void take_content(struct pnet_plane *plane, struct pnet_content *content)
{
    if (plane->content != NULL && pnet_content_same(plane->content, content)) {
        pnet_content_unlist(content);
        return;
    }
    pnet_content_unlist(plane->content);
    plane->content = content;
}

/* The file's state before and after the opening must be one, or it is not known which file was opened. */
static void refresh_plane(struct pnet_published *published, const char *name)
{
    struct pnet_plane *plane = published_find_or_add(published, name);
    char path[4096];
    if (plane == NULL ||
        snprintf(path, sizeof(path), "%s/%s" SNAP_SUFFIX, published->rundir, name) >= (int)sizeof(path))
        return;
    for (unsigned tries = 0; tries < 8; tries++) {
        struct stat before, after;
        struct pmixfab *fab = NULL;
        if (stat(path, &before) != 0)
            return; /* renamed away meanwhile */
        plane->seen = true;
        plane->gone = false;
        if (published->trusted_only && !trust_file(published, &before)) {
            fab_log(PMIXFAB_LOG_WARNING, "%s: others than root and user %u may write it: not believed", path,
                    (unsigned)published->service);
            plane->readable = false;
            memset(&plane->file, 0, sizeof(plane->file));
            return;
        }
        if (same_file(&before, &plane->file))
            return;
        int rc = pmixfab_open_rundir(published->rundir, name, &fab);
        if (stat(path, &after) != 0 || !same_file(&before, &after)) {
            pmixfab_close(fab);
            continue;
        }
        struct pnet_content *content = rc == PMIXFAB_OK ? pnet_content_new(fab, path) : NULL;
        plane->readable = content != NULL;
        if (content != NULL)
            take_content(plane, content);
        if (content != NULL || rc != PMIXFAB_ERR_NOMEM)
            plane->file = after;
        return;
    }
}

/* What is no good `pending` announces nothing: the changes themselves are seen. */
static void refresh_pending(struct pnet_published *published, int dir)
{
    struct stat st;
    int fd = openat(dir, FAB_RUNDIR_PENDING, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (fstat(fd, &st) != 0 || (published->trusted_only && !trust_file(published, &st)))
        fab_log(PMIXFAB_LOG_WARNING,
                "%s/" FAB_RUNDIR_PENDING ": others than root and user %u may write it: ignored",
                published->rundir, (unsigned)published->service);
    else if (fab_pending_read(fd, &published->pending) != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_WARNING, "%s/" FAB_RUNDIR_PENDING " cannot be read: ignored", published->rundir);
    close(fd);
}

/* ---- all of them ------------------------------------------------------------------------------------ */

static uint64_t newest_generation(const struct pnet_published *published)
{
    const struct pnet_plane *plane;
    uint64_t newest = 0;
    DL_FOREACH(published->planes, plane)
    {
        if (plane->readable && plane->content->plane.generation > newest)
            newest = plane->content->plane.generation;
    }
    return newest;
}

/* A file that is missing says that its plane is gone only beside newer ones. */
static void settle_missing(struct pnet_published *published)
{
    struct pnet_plane *plane;
    DL_FOREACH(published->planes, plane)
    {
        plane->readable &= plane->seen;
    }
    const uint64_t newest = newest_generation(published);
    DL_FOREACH(published->planes, plane)
    {
        if (plane->seen)
            continue;
        memset(&plane->file, 0, sizeof(plane->file));
        if (plane->content != NULL && newest > plane->content->plane.generation)
            plane->gone = true;
    }
}

int pnet_published_refresh(struct pnet_published *published, struct fab_err *err)
{
    struct pnet_plane *plane;
    int rc = PMIXFAB_OK;
    DIR *dir = opendir(published->rundir);
    fab_pending_clear(&published->pending);
    DL_FOREACH(published->planes, plane)
    {
        plane->seen = false;
    }
    if (dir == NULL) {
        rc = errno == ENOENT || errno == ENOTDIR ? PMIXFAB_ERR_NOTFOUND
             : errno == EACCES                   ? PMIXFAB_ERR_PERM
                                                 : PMIXFAB_ERR_IO;
        fab_fail(err, rc, "%s: cannot be read: %s: is a fabricd running here?", published->rundir,
                 strerror(errno));
    } else if (published->trusted_only && !trust_directory(published, dirfd(dir))) {
        rc = fab_fail(err, PMIXFAB_ERR_PERM,
                      "%s: others than root and the service's user may write it: not believed",
                      published->rundir);
        closedir(dir);
    } else {
        char name[SNAP_NAME_MAX + 1];
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
            if (fab_snapshot_plane_of(entry->d_name, name))
                refresh_plane(published, name);
        /* behind the files: what is in place by then is a part of what is pending, or precedes it */
        refresh_pending(published, dirfd(dir));
        closedir(dir);
    }
    settle_missing(published);
    return rc;
}

struct order_plane pnet_plane_order(const struct pnet_plane *plane)
{
    return (struct order_plane){.name = plane->name,
                                .index = plane->content->plane.index,
                                .generation = plane->content->plane.generation,
                                .published = plane->content->plane.published,
                                .gone = plane->gone};
}

int pnet_published_look(const struct pnet_published *published, struct event_order *order,
                        bool (*wanted)(const char *plane, void *cbdata), void *cbdata)
{
    struct fab_pending pending = {.generation = published->pending.generation};
    struct order_plane *found = NULL;
    struct pnet_plane *plane;
    struct timespec now;
    uint32_t n = 0;
    const uint64_t newest = newest_generation(published);
    int rc = PMIXFAB_ERR_NOMEM;
    DL_COUNT(published->planes, plane, n);
    found = calloc((size_t)n + 1, sizeof(*found));
    pending.planes = calloc((size_t)published->pending.n + 1, sizeof(*pending.planes));
    if (found == NULL || pending.planes == NULL)
        goto cleanup;
    n = 0;
    DL_FOREACH(published->planes, plane)
    {
        if (plane->content != NULL && (plane->readable || plane->gone) &&
            (wanted == NULL || wanted(plane->name, cbdata))) {
            found[n] = pnet_plane_order(plane);
            /* a plane ends with the generation that is without it */
            if (plane->gone && newest > found[n].generation)
                found[n].generation = newest;
            n++;
        }
    }
    for (uint32_t i = 0; i < published->pending.n; i++)
        if (wanted == NULL || wanted(published->pending.planes[i].name, cbdata))
            pending.planes[pending.n++] = published->pending.planes[i];
    clock_gettime(CLOCK_MONOTONIC, &now);
    rc = event_order_look(order, found, n, &pending, now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000);

cleanup:
    free(found);
    free(pending.planes);
    return rc;
}
