/* api_rundir.c - the planes that a fabricd has published in its run directory, in files NAME.snap. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "topo/base/library_log.h"
#include "topo/snapshot/reader.h"

#define MEND_MS 500 /* maximum wait for the daemon */

/* A published plane that was opened and is valid. */
struct found {
    char name[SNAP_NAME_MAX + 1];
    struct pmixfab *fab;
};

/* Open one plane. If a file contains another plane than the one in its name, another program wrote it. */
static int rundir_try_plane(const char *rundir, const char *plane, struct pmixfab **out, struct fab_err *err)
{
    char *path = NULL;

    *out = NULL;
    if (asprintf(&path, "%s/%s" SNAP_SUFFIX, rundir, plane) < 0)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for a path");
    int rc = fab_reader_open(path, out, err);
    if (rc == 0) {
        const char *name = fab_reader_string(*out, (*out)->meta->name);
        if (strcmp(name, plane) != 0) {
            rc = fab_fail(err, PMIXFAB_ERR_CONFLICT, "%s: holds plane %s: remove it", path, name);
            pmixfab_close(*out);
            *out = NULL;
        }
    }
    free(path);
    return rc;
}

/*
 * Ask fabricd to write a damaged file again (docs/control.md, mend). Return false if no answer arrives in
 * time.
 */
static bool rundir_ask(const char *rundir)
{
    static const char request[] = "{\"op\":\"mend\"}\n";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[64];
    const int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", rundir);
    int fd = n < 0 || (size_t)n >= sizeof(address.sun_path)
                 ? -1
                 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    struct pollfd one = {.fd = fd, .events = POLLIN};
    const bool answered =
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
        send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(request) - 1 &&
        poll(&one, 1, MEND_MS) > 0 && recv(fd, answer, sizeof(answer), 0) > 0;
    close(fd);
    return answered;
}

static int rundir_open_plane(const char *rundir, const char *plane, struct pmixfab **out, struct fab_err *err)
{
    struct fab_err again = {""};
    int rc = rundir_try_plane(rundir, plane, out, err);
    if (rc == PMIXFAB_OK || rc == PMIXFAB_ERR_NOTFOUND || rc == PMIXFAB_ERR_NOMEM || !rundir_ask(rundir))
        return rc;
    rc = rundir_try_plane(rundir, plane, out, &again);
    if (rc != PMIXFAB_OK)
        *err = again;
    return rc;
}

static void free_found(struct found *found, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pmixfab_close(found[i].fab);
    free(found);
}

/* Compare: the default plane first (of several the newest), then by index, then by name. */
static int compare_found(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    const struct snap_meta *x = a->fab->meta, *y = b->fab->meta;

    if (x->is_default != y->is_default)
        return x->is_default ? -1 : 1;
    if (x->is_default && a->fab->head->generation != b->fab->head->generation)
        return a->fab->head->generation > b->fab->head->generation ? -1 : 1;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return strcmp(a->name, b->name);
}

/*
 * Add the plane of a file of the directory, if it holds one. An invalid snapshot is logged, and *skipped
 * becomes its error (the first one's); a file that was renamed meanwhile is ignored. An error is returned
 * only if the file is not its cause.
 */
static int rundir_add_file(const char *rundir, const char *file, struct found **found, size_t *n,
                           int *skipped, struct fab_err *err)
{
    struct found one = {.fab = NULL};
    struct fab_err why = {""};

    if (!fab_snapshot_plane_of(file, one.name))
        return PMIXFAB_OK;
    int bad = rundir_open_plane(rundir, one.name, &one.fab, &why);
    if (bad == PMIXFAB_ERR_NOTFOUND)
        return PMIXFAB_OK;
    if (bad == PMIXFAB_ERR_NOMEM)
        return fab_fail(err, bad, "%s", why.text);
    if (bad != 0) {
        fab_log(PMIXFAB_LOG_WARNING, "skipped: %s", why.text);
        if (*skipped == 0)
            *skipped = bad;
        return PMIXFAB_OK;
    }
    struct found *grown = realloc(*found, (*n + 1) * sizeof(**found));
    if (grown == NULL) {
        pmixfab_close(one.fab);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: no memory for its planes", rundir);
    }
    *found = grown;
    grown[(*n)++] = one;
    return PMIXFAB_OK;
}

/*
 * Open every plane of a run directory, in the order of compare_found(). *skipped as above; 0: no file was
 * skipped.
 */
static int rundir_open_all(const char *rundir, struct found **out, size_t *n, int *skipped,
                           struct fab_err *err)
{
    struct found *found = NULL;
    int rc = PMIXFAB_OK;
    DIR *dir = opendir(rundir);

    *out = NULL;
    *n = 0;
    *skipped = 0;
    if (dir == NULL) {
        rc = errno == ENOENT || errno == ENOTDIR ? PMIXFAB_ERR_NOTFOUND
             : errno == EACCES                   ? PMIXFAB_ERR_PERM
                                                 : PMIXFAB_ERR_IO;
        return fab_fail(err, rc, "%s: cannot be read: %s: check that fabricd runs here", rundir,
                        strerror(errno));
    }
    for (struct dirent *entry; rc == 0 && (entry = readdir(dir)) != NULL;)
        rc = rundir_add_file(rundir, entry->d_name, &found, n, skipped, err);
    closedir(dir);
    if (rc != 0) {
        free_found(found, *n);
        *n = 0;
        return rc;
    }
    if (*n > 1)
        qsort(found, *n, sizeof(*found), compare_found);
    *out = found;
    return PMIXFAB_OK;
}

static int open_default(const char *rundir, struct pmixfab **out, struct fab_err *err)
{
    struct found *found;
    size_t n;
    int skipped;

    int rc = rundir_open_all(rundir, &found, &n, &skipped, err);
    if (rc != 0)
        return rc;
    if (n > 0 && found[0].fab->meta->is_default) {
        *out = found[0].fab;
        found[0].fab = NULL;
    } else if (skipped != 0) {
        rc = fab_fail(err, skipped, "%s: no good snapshot of a default plane (%s)", rundir,
                      pmixfab_strerror(skipped));
    } else {
        rc = fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s: no default plane is published there", rundir);
    }
    free_found(found, n);
    return rc;
}

int pmixfab_open_rundir(const char *rundir, const char *plane, struct pmixfab **out)
{
    struct fab_err err = {""};
    int rc;

    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = NULL;
    if (rundir == NULL)
        rundir = FAB_DEFAULT_RUNDIR;
    if (rundir[0] == '\0' || (plane != NULL && !fab_snapshot_name_ok(plane)))
        return PMIXFAB_ERR_INVAL;
    rc = plane != NULL ? rundir_open_plane(rundir, plane, out, &err) : open_default(rundir, out, &err);
    if (rc != 0)
        fab_log(PMIXFAB_LOG_ERROR, "%s", err.text);
    return rc;
}

int pmixfab_list_rundir(const char *rundir, char ***names, size_t *n)
{
    struct fab_err err = {""};
    struct found *found = NULL;
    size_t n_found = 0;
    int skipped;
    char **list = NULL;

    if (names == NULL || n == NULL)
        return PMIXFAB_ERR_INVAL;
    if (rundir == NULL)
        rundir = FAB_DEFAULT_RUNDIR;
    if (rundir[0] == '\0')
        return PMIXFAB_ERR_INVAL;
    int rc = rundir_open_all(rundir, &found, &n_found, &skipped, &err);
    if (rc == 0 && n_found == 0)
        rc = fab_fail(&err, PMIXFAB_ERR_NOTFOUND, "%s: no plane is published there", rundir);
    if (rc != 0)
        goto cleanup;
    list = calloc(n_found + 1, sizeof(*list));
    for (size_t i = 0; i < n_found; i++)
        if (list == NULL || (list[i] = strdup(found[i].name)) == NULL) {
            rc = fab_fail(&err, PMIXFAB_ERR_NOMEM, "%s: no memory for the names of its planes", rundir);
            goto cleanup;
        }
    *names = list;
    *n = n_found;
    list = NULL;

cleanup:
    if (rc != 0)
        fab_log(PMIXFAB_LOG_ERROR, "%s", err.text);
    pmixfab_list_free(list, n_found);
    free_found(found, n_found);
    return rc;
}

void pmixfab_list_free(char **names, size_t n)
{
    if (names == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}
