/* source.c - the planes of a command, from a run directory or as a PMIx tool; names that are near. */
#include <ctype.h>
#include <fcntl.h>
#include <pmix_tool.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"
#include "topo/base/nearest_words.h"

/* ---- fabricctl as a PMIx tool ---- */

#define CONNECT_SECONDS 30

static bool connected;

/* PMIx has no deadline for a server that accepts a connection and then sends nothing. */
static void on_alarm(int signal_number)
{
    static const char text[] = "fabricctl: no answer: the PMIx server of --uri: check that it is a fabricd "
                               "with the same security (munge)\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)signal_number;
    (void)ignored;
    _exit(CTL_FAILED);
}

/*
 * PMIx writes lines of its own to standard error that mislead an operator (4.2.2 reports a BAD-PARAM for
 * every query). fabricctl reports failures itself. Set the variable to 2 to see these lines.
 */
static void silence_library(void)
{
    char text[16];
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    snprintf(text, sizeof text, "%d", fd);
    setenv("PMIX_OUTPUT_STDERR_FD", text, 0);
}

/* Connect as a tool, once. */
static enum ctl_exit pmix_connect(const char *uri)
{
    struct sigaction action = {.sa_handler = on_alarm};
    pmix_info_t info[2];
    pmix_proc_t self;
    pmix_status_t rc;
    uint32_t retries = 1;
    if (connected)
        return CTL_DONE;
    silence_library();
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_URI, uri, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_CONNECT_MAX_RETRIES, &retries, PMIX_UINT32);
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm(CONNECT_SECONDS);
    rc = PMIx_tool_init(&self, info, 2);
    alarm(0);
    PMIX_INFO_DESTRUCT(&info[0]);
    PMIX_INFO_DESTRUCT(&info[1]);
    if (rc != PMIX_SUCCESS)
        return ctl_error(
            "cannot connect: %s: %s; check that fabricd runs, and that this is the line in its fabricd.uri",
            uri, PMIx_Error_string(rc));
    connected = true;
    return CTL_DONE;
}

static void pmix_disconnect(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    if (!connected)
        return;
    connected = false;
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm(CONNECT_SECONDS);
    PMIx_tool_finalize();
    alarm(0);
}

/* NULL: the default plane. */
static int pmix_open(const char *plane, struct pmixfab **out)
{
    pmix_info_t directive;
    int rc;
    if (plane == NULL)
        return pmixfab_open_pmix(NULL, 0, out);
    PMIX_INFO_LOAD(&directive, PMIX_FABRIC_PLANE, plane, PMIX_STRING);
    rc = pmixfab_open_pmix(&directive, 1, out);
    PMIX_INFO_DESTRUCT(&directive);
    return rc;
}

/* ---- open the planes of a command ---- */

/* The library's messages: the first one about a skipped plane, and the last error. */
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

/*
 * Explain a failure. A message about a skipped plane is more helpful than "no plane". If there is no such
 * message, write the code in words.
 */
static void source_explain(const struct ctl *ctl, int code, char reason[static CTL_REASON_SIZE])
{
    pthread_mutex_lock(&said_lock);
    if (said_skipped[0] != '\0' || said_error[0] != '\0')
        snprintf(reason, CTL_REASON_SIZE, "%s", said_skipped[0] != '\0' ? said_skipped : said_error);
    else
        snprintf(reason, CTL_REASON_SIZE, "%s: %s: check that fabricd runs (systemctl status fabricd)",
                 ctl_source_location(ctl), pmixfab_strerror(code));
    said_skipped[0] = said_error[0] = '\0';
    pthread_mutex_unlock(&said_lock);
}

static int list_planes(const struct ctl *ctl, char ***names, size_t *n)
{
    return ctl->uri != NULL ? pmixfab_list_pmix(names, n) : pmixfab_list_rundir(ctl->rundir, names, n);
}

static int source_open_plane(const struct ctl *ctl, const char *name, struct pmixfab **out)
{
    return ctl->uri != NULL ? pmix_open(name, out) : pmixfab_open_rundir(ctl->rundir, name, out);
}

/* Report that the plane does not exist, with the planes that do. */
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
    return ctl->uri != NULL ? pmix_connect(ctl->uri) : CTL_DONE;
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
    /* INVAL: no plane can have this name. */
    if ((rc == PMIXFAB_ERR_NOTFOUND || rc == PMIXFAB_ERR_INVAL) && ctl->plane != NULL)
        status = no_such_plane(ctl);
    else
        status = ctl_error("cannot read plane %s: %s", ctl->plane != NULL ? ctl->plane : "(default)", reason);
    ctl_view_close(view);
    return status;
}

/* Open the listed planes. A plane that vanished since is no failure: a plane may retire at any moment. */
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
    /* Skipped planes are reported even if the others can be read. */
    pthread_mutex_lock(&said_lock);
    if (said_skipped[0] != '\0')
        ctl_error("warning: %s", said_skipped);
    said_skipped[0] = said_error[0] = '\0';
    pthread_mutex_unlock(&said_lock);
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
    if (reason[0] == '\0') /* the last plane retired between the list and the opening */
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
    pmix_disconnect();
    pmixfab_set_log(NULL, NULL);
}

/* ---- the near name for a name that does not exist ---- */

struct each {
    unsigned kinds;
    void (*fn)(const char *name, void *cbdata);
    void *cbdata;
};

static void each_of_plane(const struct each *each, const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    const char *name;
    char text[CTL_SUGGESTION];
    uint32_t first, n;
    if (pmixfab_plane(fab, &plane) != 0)
        return;
    if ((each->kinds & CTL_PLANES) != 0)
        each->fn(plane.name, each->cbdata);
    for (uint32_t i = 0; (each->kinds & CTL_HOSTS) != 0 && i < plane.n_hosts; i++)
        if (pmixfab_host(fab, i, &name, &first, &n) == 0)
            each->fn(name, each->cbdata);
    for (uint32_t i = 0; (each->kinds & (CTL_SWITCHES | CTL_RAILS)) != 0 && i < plane.n_switches; i++) {
        if (pmixfab_switch(fab, i, &sw) != 0)
            continue;
        if ((each->kinds & CTL_SWITCHES) != 0)
            each->fn(sw.name, each->cbdata);
        snprintf(text, sizeof text, "rail%u", (unsigned)sw.rail);
        if ((each->kinds & CTL_RAILS) != 0 && sw.rail != UINT32_MAX)
            each->fn(text, each->cbdata);
    }
    for (uint32_t i = 0; (each->kinds & CTL_DEVICES) != 0 && i < plane.n_devices; i++)
        if (pmixfab_device(fab, i, &device) == 0) {
            snprintf(text, sizeof text, "%s:%s", device.host, device.name);
            each->fn(text, each->cbdata);
        }
    for (uint32_t i = 0; (each->kinds & CTL_GROUPS) != 0 && i < plane.n_groups; i++)
        if (pmixfab_group_name(fab, i) != NULL)
            each->fn(pmixfab_group_name(fab, i), each->cbdata);
}

void ctl_each_name(const struct ctl *ctl, unsigned kinds, void (*fn)(const char *name, void *cbdata),
                   void *cbdata)
{
    const struct each each = {kinds, fn, cbdata};
    char reason[CTL_REASON_SIZE];
    struct ctl_view view;
    if (ctl_view_any(ctl, &view, reason) == CTL_DONE)
        for (size_t i = 0; i < view.n; i++)
            each_of_plane(&each, view.planes[i]);
    ctl_view_close(&view);
}

/* Return the name in small letters, without leading zeros of numbers: node1 is near Node0001. */
static void plain_name(const char *name, char plain[static CTL_SUGGESTION])
{
    size_t n = 0;
    for (size_t i = 0; name[i] != '\0' && n + 1 < CTL_SUGGESTION; i++)
        if (name[i] != '0' ||
            (i > 0 && isdigit((unsigned char)name[i - 1]) && n > 0 && isdigit((unsigned char)plain[n - 1])) ||
            !isdigit((unsigned char)name[i + 1]))
            plain[n++] = (char)tolower((unsigned char)name[i]);
    plain[n] = '\0';
}

struct nearest_name {
    const char *word;
    char plain[CTL_SUGGESTION], name[CTL_SUGGESTION];
    size_t best;
    bool is_one;
};

static void on_name(const char *name, void *cbdata)
{
    struct nearest_name *nearest = cbdata;
    char plain[CTL_SUGGESTION];
    nearest->is_one |= strcmp(name, nearest->word) == 0;
    plain_name(name, plain);
    if (fab_is_nearer(nearest->plain, plain, &nearest->best))
        snprintf(nearest->name, sizeof nearest->name, "%s", name);
}

const char *ctl_suggest(const struct ctl *ctl, const char *word, unsigned kinds,
                        char text[static CTL_SUGGESTION])
{
    struct nearest_name nearest = {.word = word, .best = FAB_NEAR + 1};
    text[0] = '\0';
    plain_name(word, nearest.plain);
    ctl_each_name(ctl, kinds, on_name, &nearest);
    if (nearest.name[0] != '\0' && !nearest.is_one &&
        snprintf(text, CTL_SUGGESTION, "; did you mean %s?", nearest.name) >= CTL_SUGGESTION)
        text[0] = '\0';
    return text;
}
