/*
 * source.c - open the planes that a command is about.
 */
#include "fabricctl/core/source.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the library said: the first thing it passed over, and the last error. */
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said_skipped[400], said_error[400];

static void source_on_log(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    pthread_mutex_lock(&said_lock);
    if (level == PMIXFAB_LOG_ERROR)
        snprintf(said_error, sizeof said_error, "%s", line);
    else if (level == PMIXFAB_LOG_WARNING && said_skipped[0] == '\0')
        snprintf(said_skipped, sizeof said_skipped, "%s", line);
    pthread_mutex_unlock(&said_lock);
}

const char *ctl_source_location(const struct ctl *ctl)
{
    return ctl->uri != NULL ? ctl->uri : ctl->rundir;
}

void ctl_source_log(void)
{
    pmixfab_set_log(source_on_log, NULL);
}

/* Why something failed: what was passed over says more than that nothing is left; else the code in words. */
static void source_explain(const struct ctl *ctl, int code, char reason[static CTL_REASON_SIZE])
{
    pthread_mutex_lock(&said_lock);
    if (said_skipped[0] != '\0' || said_error[0] != '\0')
        snprintf(reason, CTL_REASON_SIZE, "%s", said_skipped[0] != '\0' ? said_skipped : said_error);
    else
        snprintf(reason, CTL_REASON_SIZE, "%s: %s: is fabricd running? (systemctl status fabricd)",
                 ctl_source_location(ctl), pmixfab_strerror(code));
    said_skipped[0] = said_error[0] = '\0';
    pthread_mutex_unlock(&said_lock);
}

/* What was passed over is told, even when the rest is fine. */
static void source_warn(void)
{
    pthread_mutex_lock(&said_lock);
    if (said_skipped[0] != '\0')
        ctl_error("warning: %s", said_skipped);
    said_skipped[0] = said_error[0] = '\0';
    pthread_mutex_unlock(&said_lock);
}

static int list_planes(const struct ctl *ctl, char ***names, size_t *n)
{
    return ctl->uri != NULL ? pmixfab_list_pmix(names, n) : pmixfab_list_rundir(ctl->rundir, names, n);
}

static int source_open_plane(const struct ctl *ctl, const char *name, struct pmixfab **out)
{
    return ctl->uri != NULL ? ctl_pmix_open(name, out) : pmixfab_open_rundir(ctl->rundir, name, out);
}

/* The planes that there are, for a message. */
static enum ctl_exit no_such_plane(const struct ctl *ctl)
{
    char have[256] = "", reason[CTL_REASON_SIZE];
    char **names = NULL;
    size_t n = 0, used = 0;
    int rc = list_planes(ctl, &names, &n);

    if (rc != 0) {
        source_explain(ctl, rc, reason);
        return ctl_error("no plane %s: %s", ctl->plane, reason);
    }
    for (size_t i = 0; i < n && used < sizeof have; i++)
        used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", i > 0 ? ", " : "", names[i]);
    pmixfab_list_free(names, n);
    return ctl_error("no plane %s: %s: there is %s", ctl->plane, ctl_source_location(ctl), have);
}

static enum ctl_exit connect_source(const struct ctl *ctl, struct ctl_view *view)
{
    *view = (struct ctl_view){0};
    return ctl->uri != NULL ? ctl_pmix_connect(ctl->uri) : CTL_DONE;
}

enum ctl_exit ctl_view_one(const struct ctl *ctl, struct ctl_view *view)
{
    enum ctl_exit status = connect_source(ctl, view);
    char reason[CTL_REASON_SIZE];
    int rc;

    if (status != CTL_DONE)
        return status;
    view->planes = calloc(1, sizeof(struct pmixfab *));
    if (view->planes == NULL)
        return ctl_nomem();
    rc = source_open_plane(ctl, ctl->plane, &view->planes[0]);
    if (rc == 0) {
        view->n = 1;
        return CTL_DONE;
    }
    source_explain(ctl, rc, reason);
    /* INVAL: nothing can be called so. */
    if ((rc == PMIXFAB_ERR_NOTFOUND || rc == PMIXFAB_ERR_INVAL) && ctl->plane != NULL)
        status = no_such_plane(ctl);
    else
        status = ctl_error("cannot read plane %s: %s", ctl->plane != NULL ? ctl->plane : "(default)", reason);
    ctl_view_close(view);
    return status;
}

/* Open those listed. One that vanished since is no failure: a plane may retire at any moment. */
static enum ctl_exit open_listed(const struct ctl *ctl, char *const *names, size_t n, struct ctl_view *view)
{
    char reason[CTL_REASON_SIZE];

    view->planes = calloc(n, sizeof(struct pmixfab *));
    if (view->planes == NULL)
        return ctl_nomem();
    for (size_t i = 0; i < n; i++) {
        int rc = source_open_plane(ctl, names[i], &view->planes[view->n]);

        if (rc == 0) {
            view->n++;
        } else if (rc != PMIXFAB_ERR_NOTFOUND) {
            source_explain(ctl, rc, reason);
            ctl_view_close(view);
            return ctl_error("cannot read plane %s: %s", names[i], reason);
        }
    }
    return CTL_DONE;
}

enum ctl_exit ctl_view_any(const struct ctl *ctl, struct ctl_view *view, char reason[static CTL_REASON_SIZE])
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
        source_explain(ctl, rc, reason);
        return CTL_DONE;
    }
    source_warn();
    status = open_listed(ctl, names, n, view);
    pmixfab_list_free(names, n);
    return status;
}

enum ctl_exit ctl_view_all(const struct ctl *ctl, struct ctl_view *view)
{
    char reason[CTL_REASON_SIZE];
    enum ctl_exit status;

    if (ctl->plane != NULL)
        return ctl_view_one(ctl, view);
    status = ctl_view_any(ctl, view, reason);
    if (status != CTL_DONE || view->n > 0)
        return status;
    if (reason[0] == '\0') /* the last one retired between the list and the opening */
        source_explain(ctl, PMIXFAB_ERR_NOTFOUND, reason);
    ctl_view_close(view);
    return ctl_error("no plane to read: %s", reason);
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
