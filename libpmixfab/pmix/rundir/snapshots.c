#include "pmix/rundir/snapshots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "pmix/answers/info.h"
#include "topo/base/library_log.h"
#include "topo/base/milliseconds.h"
#include "topo/snapshot/format.h"
#include "topo/snapshot/reader.h"

/*
 * A plane is read repeatedly: a file is opened and checked when it is new, and recognised by its inode
 * afterwards. Publishers rename whole new files into place, so other content means another inode.
 */
struct known_plane {
    struct known_plane *prev, *next;
    char name[64];
    struct stat file;
    struct rundir_content *content; /* the last readable one; NULL: none yet */
    bool seen;                      /* by the refresh in progress */
    bool readable;                  /* the file exists and is valid: content holds it */
    bool gone;                      /* the plane was removed: its file is missing among newer ones */
};

struct rundir_snapshots {
    pthread_mutex_t lock;
    char *rundir;
    bool trusted_only; /* files that users other than root and the service's may write are rejected */
    uid_t service;     /* the service's user, as of the last refresh */
    struct known_plane *planes;
    struct fab_pending pending; /* as of the last refresh */
    struct event_order *order;
    bool (*wanted)(const char *plane, void *cbdata); /* NULL: all planes */
    void *cbdata;
    bool watched; /* the state at the start is no change */
};

/* ---- contents ---------------------------------------------------------------------------------------- */

static atomic_size_t matrices;

/* Take over an opened snapshot (also on error), listed and without users. NULL without memory. */
static struct rundir_content *content_new(struct pmixfab *fab, const char *path)
{
    struct rundir_content *content = calloc(1, sizeof(*content));
    char *copy = strdup(path);
    if (content == NULL || copy == NULL || pmixfab_plane(fab, &content->plane) != PMIXFAB_OK) {
        free(content);
        free(copy);
        pmixfab_close(fab);
        return NULL;
    }
    content->fab = fab;
    content->path = copy;
    content->listed = true;
    return content;
}

/* Free the parts that only users need. */
static void cool_down(struct rundir_content *content)
{
    if (content->info != NULL)
        PMIX_INFO_FREE(content->info, content->ninfo);
    content->ninfo = 0;
    if (content->matrix != NULL)
        atomic_fetch_sub(&matrices, 1);
    pmixfab_matrix_free(content->matrix, content->plane.n_devices);
    content->matrix = NULL;
}

static void free_unneeded(struct rundir_content *content)
{
    if (content->users > 0)
        return;
    cool_down(content);
    if (content->listed || content->pins > 0)
        return;
    pmixfab_close(content->fab);
    free(content->path);
    free(content);
}

static int content_make_info(struct rundir_content *content, const uint16_t *matrix)
{
    const struct fab_info_source source = {.fab = content->fab, .path = content->path, .matrix = matrix};
    return fab_info_all(&source, 0, &content->info, &content->ninfo) == PMIX_SUCCESS ? PMIXFAB_OK
                                                                                     : PMIXFAB_ERR_NOMEM;
}

int rundir_content_use(struct rundir_content *content)
{
    if (content->users == 0) {
        int rc = pmixfab_matrix_alloc(content->fab, 0, &content->matrix);
        if (rc != PMIXFAB_OK)
            return rc;
        if (content->matrix != NULL)
            atomic_fetch_add(&matrices, 1);
        rc = content_make_info(content, content->matrix);
        if (rc != PMIXFAB_OK) {
            cool_down(content);
            return rc;
        }
    }
    content->users++;
    return PMIXFAB_OK;
}

/* The info array points at the matrix, so it is made first: the writes to the matrix cannot be undone. */
static int take_matrix(struct rundir_content *content, struct rundir_content *before)
{
    int rc = content_make_info(content, before->matrix);
    if (rc == PMIXFAB_OK)
        rc = pmixfab_matrix_update(before->fab, content->fab, 0, &before->matrix);
    if (rc != PMIXFAB_OK) {
        cool_down(content);
        return rc;
    }
    content->matrix = before->matrix;
    before->matrix = NULL;
    content->users++;
    return PMIXFAB_OK;
}

int rundir_content_use_instead(struct rundir_content *content, struct rundir_content *before, unsigned users)
{
    bool own = content->users == 0 && before != content && !before->listed && before->users == users &&
               before->matrix != NULL && before->plane.n_devices == content->plane.n_devices;
    if (own && take_matrix(content, before) == PMIXFAB_OK)
        return PMIXFAB_OK;
    return rundir_content_use(content);
}

void rundir_content_release(struct rundir_content *content)
{
    if (content == NULL)
        return;
    content->users--;
    free_unneeded(content);
}

/* Mark it as no longer published. NULL is allowed. */
static void content_unlist(struct rundir_content *content)
{
    if (content == NULL)
        return;
    content->listed = false;
    free_unneeded(content);
}

/* Return whether both have the same content, of the same publication. */
static bool content_same(const struct rundir_content *a, const struct rundir_content *b)
{
    return a->plane.generation == b->plane.generation && a->plane.published == b->plane.published &&
           a->fab->head->content == b->fab->head->content;
}

size_t rundir_content_matrices(void)
{
    return atomic_load(&matrices);
}

/* ---- known planes ------------------------------------------------------------------------------------ */

/* Drop published content without users. */
static void snapshots_forget(struct rundir_snapshots *snapshots)
{
    struct known_plane *plane = snapshots->planes, *next;
    snapshots->planes = NULL;
    fab_pending_clear(&snapshots->pending);
    for (; plane != NULL; plane = next) {
        next = plane->next;
        content_unlist(plane->content);
        free(plane);
    }
}

/* Find a plane by name; NULL: never seen. */
static struct known_plane *snapshots_find(const struct rundir_snapshots *snapshots, const char *name)
{
    struct known_plane *plane;
    DL_FOREACH(snapshots->planes, plane)
    {
        if (strcmp(plane->name, name) == 0)
            return plane;
    }
    return NULL;
}

/*
 * ---- trust ------------------------------------------------------------------------------------------
 *
 * Users are compared by number: a name may wait for a directory server. The service's user is the owner of
 * the run directory, if only root could have created it there; or this process's own user.
 */

static bool only_its_owner_writes(const struct stat *st)
{
    return (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool trust_directory(struct rundir_snapshots *snapshots, int fd)
{
    struct stat dir, parent;
    if (fstat(fd, &dir) != 0 || !only_its_owner_writes(&dir))
        return false;
    snapshots->service = dir.st_uid;
    if (dir.st_uid == 0 || dir.st_uid == geteuid())
        return true;
    return fstatat(fd, "..", &parent, 0) == 0 && parent.st_uid == 0 && only_its_owner_writes(&parent);
}

static bool trust_file(const struct rundir_snapshots *snapshots, const struct stat *st)
{
    return S_ISREG(st->st_mode) && only_its_owner_writes(st) &&
           (st->st_uid == 0 || st->st_uid == snapshots->service);
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

static struct known_plane *snapshots_find_or_add(struct rundir_snapshots *snapshots, const char *name)
{
    struct known_plane *plane = snapshots_find(snapshots, name);
    if (plane == NULL && (plane = calloc(1, sizeof(*plane))) != NULL) {
        snprintf(plane->name, sizeof(plane->name), "%s", name);
        DL_APPEND(snapshots->planes, plane);
    }
    return plane;
}

/*
 * Make the content of a new file the plane's, unless it is known already (a starting daemon writes its files
 * again).
 */
static void take_content(struct known_plane *plane, struct rundir_content *content)
{
    if (plane->content != NULL && content_same(plane->content, content)) {
        content_unlist(content);
        return;
    }
    content_unlist(plane->content);
    plane->content = content;
}

/* The file's state before and after opening must be equal, or it is unknown which file was opened. */
static void refresh_plane(struct rundir_snapshots *snapshots, const char *name)
{
    struct known_plane *plane = snapshots_find_or_add(snapshots, name);
    char path[4096];
    if (plane == NULL ||
        snprintf(path, sizeof(path), "%s/%s" SNAP_SUFFIX, snapshots->rundir, name) >= (int)sizeof(path))
        return;
    for (unsigned tries = 0; tries < 8; tries++) {
        struct stat before, after;
        struct pmixfab *fab = NULL;
        if (stat(path, &before) != 0)
            return; /* renamed meanwhile */
        plane->seen = true;
        plane->gone = false;
        if (snapshots->trusted_only && !trust_file(snapshots, &before)) {
            fab_log(PMIXFAB_LOG_WARNING, "%s: writable by users other than root and %u: not trusted", path,
                    (unsigned)snapshots->service);
            plane->readable = false;
            memset(&plane->file, 0, sizeof(plane->file));
            return;
        }
        if (same_file(&before, &plane->file))
            return;
        int rc = pmixfab_open_rundir(snapshots->rundir, name, &fab);
        if (stat(path, &after) != 0 || !same_file(&before, &after)) {
            pmixfab_close(fab);
            continue;
        }
        struct rundir_content *content = rc == PMIXFAB_OK ? content_new(fab, path) : NULL;
        plane->readable = content != NULL;
        if (content != NULL)
            take_content(plane, content);
        if (content != NULL || rc != PMIXFAB_ERR_NOMEM)
            plane->file = after;
        return;
    }
}

/* An invalid `pending` announces nothing: the changes themselves are seen. */
static void refresh_pending(struct rundir_snapshots *snapshots, int dir)
{
    struct stat st;
    int fd = openat(dir, FAB_RUNDIR_PENDING, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    if (fstat(fd, &st) != 0 || (snapshots->trusted_only && !trust_file(snapshots, &st)))
        fab_log(PMIXFAB_LOG_WARNING,
                "%s/" FAB_RUNDIR_PENDING ": writable by users other than root and %u: ignored",
                snapshots->rundir, (unsigned)snapshots->service);
    else if (fab_pending_read(fd, &snapshots->pending) != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_WARNING, "%s/" FAB_RUNDIR_PENDING " cannot be read: ignored", snapshots->rundir);
    close(fd);
}

/*
 * ---- all planes -----------------------------------------------------------------------------------------
 */

static uint64_t newest_generation(const struct rundir_snapshots *snapshots)
{
    const struct known_plane *plane;
    uint64_t newest = 0;
    DL_FOREACH(snapshots->planes, plane)
    {
        if (plane->readable && plane->content->plane.generation > newest)
            newest = plane->content->plane.generation;
    }
    return newest;
}

/* A missing file means that its plane was removed only if there are newer ones. */
static void settle_missing(struct rundir_snapshots *snapshots)
{
    struct known_plane *plane;
    DL_FOREACH(snapshots->planes, plane)
    {
        plane->readable &= plane->seen;
    }
    const uint64_t newest = newest_generation(snapshots);
    DL_FOREACH(snapshots->planes, plane)
    {
        if (plane->seen)
            continue;
        memset(&plane->file, 0, sizeof(plane->file));
        if (plane->content != NULL && newest > plane->content->plane.generation)
            plane->gone = true;
    }
}

/*
 * Look again. PMIXFAB_ERR_NOTFOUND, _PERM (or not trusted), _IO: the directory cannot be read, and no plane
 * is readable. Invalid files are logged and skipped.
 */
static int snapshots_refresh(struct rundir_snapshots *snapshots, struct fab_err *err)
{
    struct known_plane *plane;
    int rc = PMIXFAB_OK;
    DIR *dir = opendir(snapshots->rundir);
    fab_pending_clear(&snapshots->pending);
    DL_FOREACH(snapshots->planes, plane)
    {
        plane->seen = false;
    }
    if (dir == NULL) {
        rc = errno == ENOENT || errno == ENOTDIR ? PMIXFAB_ERR_NOTFOUND
             : errno == EACCES                   ? PMIXFAB_ERR_PERM
                                                 : PMIXFAB_ERR_IO;
        fab_fail(err, rc, "%s: cannot be read: %s: check that fabricd runs here", snapshots->rundir,
                 strerror(errno));
    } else if (snapshots->trusted_only && !trust_directory(snapshots, dirfd(dir))) {
        rc = fab_fail(err, PMIXFAB_ERR_PERM,
                      "%s: writable by users other than root and the service's user: not trusted",
                      snapshots->rundir);
        closedir(dir);
    } else {
        char name[SNAP_NAME_MAX + 1];
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
            if (fab_snapshot_plane_of(entry->d_name, name))
                refresh_plane(snapshots, name);
        /* after the files: planes that are in place by then are a part of the pending generation, or
         * precede it */
        refresh_pending(snapshots, dirfd(dir));
        closedir(dir);
    }
    settle_missing(snapshots);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------------- */

int rundir_snapshots_new(const char *rundir, struct rundir_snapshots **out)
{
    *out = NULL;
    if (rundir == NULL || rundir[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    struct rundir_snapshots *snapshots = calloc(1, sizeof(*snapshots));
    if (snapshots == NULL)
        return PMIXFAB_ERR_NOMEM;
    pthread_mutex_init(&snapshots->lock, NULL);
    snapshots->trusted_only = true;
    snapshots->rundir = strdup(rundir);
    snapshots->order = event_order_new();
    if (snapshots->rundir == NULL || snapshots->order == NULL) {
        rundir_snapshots_free(snapshots);
        return PMIXFAB_ERR_NOMEM;
    }
    *out = snapshots;
    return PMIXFAB_OK;
}

void rundir_snapshots_free(struct rundir_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    snapshots_forget(snapshots);
    event_order_free(snapshots->order);
    free(snapshots->rundir);
    pthread_mutex_destroy(&snapshots->lock);
    free(snapshots);
}

void rundir_snapshots_for_objects(struct rundir_snapshots *snapshots,
                                  bool (*wanted)(const char *plane, void *cbdata), void *cbdata)
{
    snapshots->trusted_only = false;
    snapshots->wanted = wanted;
    snapshots->cbdata = cbdata;
}

/* ---- planes ----------------------------------------------------------------------------------------- */

static int planes_cmp(const void *left, const void *right)
{
    const struct rundir_content *const *one = left, *const *other = right;
    const struct pmixfab_plane *a = &(*one)->plane, *b = &(*other)->plane;
    if (a->is_default != b->is_default)
        return a->is_default ? -1 : 1;
    if (a->is_default && a->generation != b->generation)
        return a->generation > b->generation ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool planes_list(const struct rundir_snapshots *snapshots, struct rundir_planes *out)
{
    struct known_plane *plane;
    uint32_t room = 0;
    DL_COUNT(snapshots->planes, plane, room);
    out->planes = calloc((size_t)room + 1, sizeof(*out->planes));
    out->contents = calloc((size_t)room + 1, sizeof(*out->contents));
    if (out->planes == NULL || out->contents == NULL)
        return false;
    DL_FOREACH(snapshots->planes, plane)
    {
        if (plane->readable)
            out->contents[out->n++] = plane->content;
    }
    qsort(out->contents, out->n, sizeof(*out->contents), planes_cmp);
    for (uint32_t i = 0; i < out->n; i++)
        out->planes[i] = out->contents[i]->fab;
    return true;
}

int rundir_planes_get(struct rundir_snapshots *snapshots, struct rundir_planes *out, struct fab_err *err)
{
    *out = (struct rundir_planes){.of = snapshots};
    pthread_mutex_lock(&snapshots->lock);
    int rc = snapshots_refresh(snapshots, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (!planes_list(snapshots, out))
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for the planes");
    if (out->n == 0)
        return fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: no readable snapshot is there", snapshots->rundir);
    return PMIXFAB_OK;
}

void rundir_planes_put(struct rundir_planes *planes)
{
    free(planes->planes);
    free(planes->contents);
    pthread_mutex_unlock(&planes->of->lock);
}

struct rundir_content *rundir_snapshots_last(const struct rundir_snapshots *snapshots, const char *plane,
                                             bool *gone)
{
    const struct known_plane *known = snapshots_find(snapshots, plane);
    *gone = known != NULL && known->gone;
    return known == NULL ? NULL : known->content;
}

void rundir_snapshots_forget(struct rundir_snapshots *snapshots)
{
    pthread_mutex_lock(&snapshots->lock);
    snapshots_forget(snapshots);
    pthread_mutex_unlock(&snapshots->lock);
}

struct rundir_content *rundir_planes_pin(const struct rundir_planes *planes, uint32_t i)
{
    planes->contents[i]->pins++;
    return planes->contents[i];
}

void rundir_snapshots_unpin(struct rundir_snapshots *snapshots, struct rundir_content *content)
{
    pthread_mutex_lock(&snapshots->lock);
    content->pins--;
    free_unneeded(content);
    pthread_mutex_unlock(&snapshots->lock);
}

/* ---- answers ---------------------------------------------------------------------------------------- */

/* List the planes in the form for answers; free it with free(). */
static struct fab_answer_plane *planes_to_answer(const struct rundir_planes *planes)
{
    struct fab_answer_plane *list = calloc((size_t)planes->n + 1, sizeof(*list));
    for (uint32_t i = 0; list != NULL && i < planes->n; i++) {
        list[i].fab = planes->planes[i];
        list[i].path = planes->contents[i]->path;
        list[i].info = planes->contents[i]->plane;
    }
    return list;
}

void rundir_answer(struct rundir_snapshots *snapshots, const char *host, const pmix_proc_t *requestor,
                   pmix_fabric_operation_t op, const pmix_info_t *directives, const pmix_query_t *queries,
                   size_t n, struct fab_answered *out, struct fab_err *err)
{
    struct rundir_planes planes;
    rundir_planes_get(snapshots, &planes, err);
    struct fab_answer_plane *list = planes_to_answer(&planes);
    const struct fab_answer_set set = {.planes = list, .n = planes.n, .stale = -1, .host = host};
    *out = (struct fab_answered){.status = list == NULL ? PMIX_ERR_NOMEM : PMIX_ERR_UNREACH};
    if (list != NULL && planes.n > 0 && queries != NULL)
        fab_answer_query(&set, queries, n, out);
    else if (list != NULL && planes.n > 0)
        fab_answer_fabric(&set, requestor, op, directives, n, out);
    free(list);
    rundir_planes_put(&planes);
}

/* ---- changes ---------------------------------------------------------------------------------------- */

/* Return the state of a plane with content, for the order of events. */
static struct order_plane plane_order(const struct known_plane *plane)
{
    return (struct order_plane){.name = plane->name,
                                .index = plane->content->plane.index,
                                .generation = plane->content->plane.generation,
                                .published = plane->content->plane.published,
                                .gone = plane->gone};
}

static bool is_wanted(const struct rundir_snapshots *snapshots, const char *plane)
{
    return snapshots->wanted == NULL || snapshots->wanted(plane, snapshots->cbdata);
}

/*
 * Write the results of the last refresh for the wanted planes, for the order of events; nothing if the
 * directory cannot be read. PMIXFAB_ERR_NOMEM.
 */
static int snapshots_order(struct rundir_snapshots *snapshots)
{
    struct fab_pending pending = {.generation = snapshots->pending.generation};
    struct order_plane *found = NULL;
    struct known_plane *plane;
    uint32_t n = 0;
    const uint64_t newest = newest_generation(snapshots);
    int rc = PMIXFAB_ERR_NOMEM;
    DL_COUNT(snapshots->planes, plane, n);
    found = calloc((size_t)n + 1, sizeof(*found));
    pending.planes = calloc((size_t)snapshots->pending.n + 1, sizeof(*pending.planes));
    if (found == NULL || pending.planes == NULL)
        goto cleanup;
    n = 0;
    DL_FOREACH(snapshots->planes, plane)
    {
        if (plane->content != NULL && (plane->readable || plane->gone) && is_wanted(snapshots, plane->name)) {
            found[n] = plane_order(plane);
            /* a plane ends with the generation without it */
            if (plane->gone && newest > found[n].generation)
                found[n].generation = newest;
            n++;
        }
    }
    for (uint32_t i = 0; i < snapshots->pending.n; i++)
        if (is_wanted(snapshots, snapshots->pending.planes[i].name))
            pending.planes[pending.n++] = snapshots->pending.planes[i];
    rc = event_order_look(snapshots->order, found, n, &pending, fab_now_ms());

cleanup:
    free(found);
    free(pending.planes);
    return rc;
}

static void snapshots_know(struct rundir_snapshots *snapshots, const struct known_plane *plane)
{
    const struct order_plane known = plane_order(plane);
    event_order_know(snapshots->order, &known);
}

void rundir_snapshots_know(struct rundir_snapshots *snapshots, const char *name)
{
    pthread_mutex_lock(&snapshots->lock);
    const struct known_plane *plane = snapshots_find(snapshots, name);
    if (plane != NULL && plane->content != NULL)
        snapshots_know(snapshots, plane);
    snapshots->watched = true;
    pthread_mutex_unlock(&snapshots->lock);
}

bool rundir_snapshots_look(struct rundir_snapshots *snapshots)
{
    const struct known_plane *plane;
    pthread_mutex_lock(&snapshots->lock);
    snapshots_refresh(snapshots, NULL);
    DL_FOREACH(snapshots->planes, plane)
    {
        if (!snapshots->watched && plane->content != NULL)
            snapshots_know(snapshots, plane);
    }
    snapshots->watched = true;
    if (snapshots_order(snapshots) != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_ERROR, "%s: out of memory: changes are reported late", snapshots->rundir);
    const bool waits = event_order_waits(snapshots->order);
    pthread_mutex_unlock(&snapshots->lock);
    return waits;
}

bool rundir_snapshots_next(struct rundir_snapshots *snapshots, struct order_step *step)
{
    pthread_mutex_lock(&snapshots->lock);
    const bool any = event_order_next(snapshots->order, step);
    pthread_mutex_unlock(&snapshots->lock);
    return any;
}

bool rundir_snapshots_changed(struct rundir_snapshots *snapshots)
{
    struct order_step step;
    bool changed = false;
    while (rundir_snapshots_next(snapshots, &step))
        changed |= !step.pending;
    return changed;
}
