/*
 * source.c - open the planes that a command is about.
 */
#include "source.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t reason_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_reason[256];

static void keep_reason(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    if (level > PMIXFAB_LOG_WARNING)
        return;
    pthread_mutex_lock(&reason_lock);
    snprintf(last_reason, sizeof last_reason, "%s", line);
    pthread_mutex_unlock(&reason_lock);
}

void ctl_source_log(void)
{
    pmixfab_set_log(keep_reason, NULL);
}

/* What the library said last, or else the code in words. */
static void explain(int code, char *buf, size_t size)
{
    pthread_mutex_lock(&reason_lock);
    snprintf(buf, size, "%s", last_reason[0] != '\0' ? last_reason : pmixfab_strerror(code));
    last_reason[0] = '\0';
    pthread_mutex_unlock(&reason_lock);
}

static const char *place(const struct ctl *ctl)
{
    return ctl->uri != NULL ? ctl->uri : ctl->rundir;
}

static int list_planes(const struct ctl *ctl, char ***names, size_t *n)
{
    return ctl->uri != NULL ? pmixfab_list_pmix(names, n) : pmixfab_list_rundir(ctl->rundir, names, n);
}

static int open_plane(const struct ctl *ctl, const char *name, struct pmixfab **out)
{
    return ctl->uri != NULL ? ctl_pmix_open(name, out) : pmixfab_open_rundir(ctl->rundir, name, out);
}

/* The planes that there are, for a message. */
static enum ctl_exit no_such_plane(const struct ctl *ctl)
{
    char have[256] = "";
    char **names = NULL;
    size_t n = 0, used = 0;

    if (list_planes(ctl, &names, &n) != 0)
        return ctl_error("no plane is published: %s: is fabricd running? (systemctl status fabricd)",
                         place(ctl));
    for (size_t i = 0; i < n && used < sizeof have; i++)
        used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", i > 0 ? ", " : "", names[i]);
    pmixfab_list_free(names, n);
    return ctl_error("no plane %s: %s: there is %s", ctl->plane, place(ctl), have);
}

static enum ctl_exit connect_source(const struct ctl *ctl, struct ctl_view *view)
{
    *view = (struct ctl_view){0};
    return ctl->uri != NULL ? ctl_pmix_connect(ctl->uri) : CTL_DONE;
}

enum ctl_exit ctl_view_one(const struct ctl *ctl, struct ctl_view *view)
{
    enum ctl_exit status = connect_source(ctl, view);
    char reason[256];
    int rc;

    if (status != CTL_DONE)
        return status;
    view->planes = calloc(1, sizeof(struct pmixfab *));
    if (view->planes == NULL)
        return ctl_nomem();
    rc = open_plane(ctl, ctl->plane, &view->planes[0]);
    if (rc == 0) {
        view->n = 1;
        return CTL_DONE;
    }
    explain(rc, reason, sizeof reason);
    if (rc == PMIXFAB_ERR_NOTFOUND && ctl->plane != NULL)
        status = no_such_plane(ctl);
    else if (rc == PMIXFAB_ERR_NOTFOUND)
        status = ctl_error("no plane is published: %s: is fabricd running? (systemctl status fabricd)",
                           place(ctl));
    else
        status = ctl_error("cannot read plane %s: %s: %s", ctl->plane != NULL ? ctl->plane : "(default)",
                           place(ctl), reason);
    ctl_view_close(view);
    return status;
}

/* Open those listed. One that vanished since is no failure: a plane may retire at any moment. */
static enum ctl_exit open_listed(const struct ctl *ctl, char *const *names, size_t n, struct ctl_view *view)
{
    char reason[256];

    view->planes = calloc(n, sizeof(struct pmixfab *));
    if (view->planes == NULL)
        return ctl_nomem();
    for (size_t i = 0; i < n; i++) {
        int rc = open_plane(ctl, names[i], &view->planes[view->n]);

        if (rc == 0) {
            view->n++;
        } else if (rc != PMIXFAB_ERR_NOTFOUND) {
            explain(rc, reason, sizeof reason);
            ctl_view_close(view);
            return ctl_error("cannot read plane %s: %s: %s", names[i], place(ctl), reason);
        }
    }
    return CTL_DONE;
}

enum ctl_exit ctl_view_any(const struct ctl *ctl, struct ctl_view *view, char *reason)
{
    enum ctl_exit status = connect_source(ctl, view);
    char **names = NULL;
    size_t n = 0;
    int rc;

    reason[0] = '\0';
    if (status != CTL_DONE)
        return status;
    rc = list_planes(ctl, &names, &n);
    if (rc != 0) {
        explain(rc, reason, 256);
        return CTL_DONE;
    }
    /* a file that is no snapshot is skipped, not hidden */
    pthread_mutex_lock(&reason_lock);
    if (last_reason[0] != '\0')
        ctl_error("warning: %s", last_reason);
    last_reason[0] = '\0';
    pthread_mutex_unlock(&reason_lock);
    status = open_listed(ctl, names, n, view);
    pmixfab_list_free(names, n);
    return status;
}

enum ctl_exit ctl_view_all(const struct ctl *ctl, struct ctl_view *view)
{
    char reason[256];
    enum ctl_exit status;

    if (ctl->plane != NULL)
        return ctl_view_one(ctl, view);
    status = ctl_view_any(ctl, view, reason);
    if (status == CTL_DONE && view->n == 0) {
        ctl_view_close(view);
        return ctl_error("no plane is published: %s: %s; is fabricd running? (systemctl status fabricd)",
                         place(ctl), reason[0] != '\0' ? reason : "empty");
    }
    return status;
}

void ctl_view_close(struct ctl_view *view)
{
    for (size_t i = 0; i < view->n; i++)
        pmixfab_close(view->planes[i]);
    free(view->planes);
    *view = (struct ctl_view){0};
}

void ctl_source_end(void)
{
    ctl_pmix_disconnect();
    pmixfab_set_log(NULL, NULL);
}
