/*
 * pmix_main.c - the program fabricd-pmix: a PMIx server that answers from the run directory of fabricd.
 *
 * It reads the run directory and sends no requests to fabricd, except to find out whether it runs. Without
 * fabricd it continues to serve, and marks its data as stale. It has no state that must not be lost.
 */
#include <argp.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pmix.h>
#include <pmix_server.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd-pmix/pmix_fresh.h"
#include "fabricd-pmix/pmix_memory.h"
#include "fabricd-pmix/pmix_starter.h"
#include "fabricd-pmix/sandbox.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/notify.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/watch.h"
#include "fabricd/pmix/pmix_link.h"
#include "fabricd/process/process.h"
#include "fabricd/server/relayed_requests.h"
#include "fabricd/server/server.h"
#include "fabricd/server/server_answers.h"
#include "fabricd/server/server_rundir.h"
#include "fabricd/server/subscribers.h"
#include "guard/guard.h"
#include "guard/guard_enter.h"
#include "pmix/relay/thread.h"
#include "topo/snapshot/snapshot.h"

#define PULSE_MS    500 /* between status updates, each of which shows that the library's thread runs */
#define WAIT_MS     200 /* between checks for fabricd's settings, at the start */
#define FAILED_MS   1000
#define EXIT_CONFIG 2 /* a permanent error: the unit does not restart it */

/* The command line. */
static struct {
    const char *rundir, *folder, *daemon, *user;
} options = {.rundir = FAB_DEFAULT_RUNDIR};

static struct {
    struct config config; /* of the server; its run directory is the folder for the library's files */
    char *settings;       /* their text */
    struct loop loop;
    struct served *served;
    struct server_rundir *source;
    struct pmix_fresh *fresh;
    struct timer *pulse;
    struct watch *daemon; /* the end of fabricd, if it is the parent */
    struct pmix_state state;
    char said[PMIX_STATUS_MAX];
    atomic_bool serving;
} pmix;

static pmix_server_module_t pmix_module = {
    .lookup = answer_relayed,
    .query = answer_query,
    .fabric = answer_fabric,
};

/* ---- the command line ------------------------------------------------------------------------------- */

enum { OPT_RUNDIR = 256, OPT_FOLDER, OPT_CHILD, OPT_USER };

static const struct argp_option pmix_options[] = {
    {"rundir", OPT_RUNDIR, "DIR", 0, "the run directory of fabricd (default /run/fabricd)", 0},
    {"folder", OPT_FOLDER, "DIR", 0, "the folder for its own files (default: pmix in the run directory)", 0},
    {"child-of", OPT_CHILD, "PID", OPTION_HIDDEN, NULL, 0}, /* started by fabricd */
    {"user", OPT_USER, "UID:GID", OPTION_HIDDEN, NULL, 0},  /* the user to change to */
    {"version", 'V', NULL, 0, "print the version", -1},
    {0},
};

static error_t pmix_take_option(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case OPT_RUNDIR:
        options.rundir = arg;
        return 0;
    case OPT_FOLDER:
        options.folder = arg;
        return 0;
    case OPT_CHILD:
        options.daemon = arg;
        return 0;
    case OPT_USER:
        options.user = arg;
        return 0;
    case 'V':
        printf(PMIX_PROGRAM " %s\n", pmixfab_version());
        exit(0);
    case ARGP_KEY_ARG:
        argp_error(state, "\"%s\": fabricd-pmix takes no arguments except options", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the status ------------------------------------------------------------------------------------- */

/* Runs on the library's thread: it shows that this thread and the loop, which has posted it, both run. */
static void pmix_on_alive(pmix_status_t status, void *line)
{
    (void)status;
    notify_send(NOTIFY_ALIVE);
    if (line != NULL)
        starter_say(line);
    free(line);
}

/* Send the status. A child sends each one, as a sign of life; a unit writes its file only when it has
 * changed. */
static void pmix_say(void)
{
    const struct pmix_guard *guard = guard_find();
    char line[PMIX_STATUS_MAX];
    pmix.state.connected = guard != NULL ? guard->connected() : 0;
    pmix.state.subscribers = subscribers_count();
    pmix_state_write(&pmix.state, line);
    const bool says = starter_is_daemon() || strcmp(line, pmix.said) != 0;
    memcpy(pmix.said, line, sizeof(line));
    fab_on_pmix_thread(pmix_on_alive, says ? strdup(line) : NULL);
}

static void pmix_on_raised(uint64_t generation, void *arg)
{
    (void)arg;
    pmix.state.generation = generation;
    if (pmix.serving)
        pmix_say();
}

static void pmix_on_served(void *arg)
{
    (void)arg;
    subscribers_notify();
}

static void pmix_on_looked(void *arg)
{
    (void)arg;
    pmix_fresh_look(pmix.fresh);
}

static void pmix_on_fresh(bool stale, void *arg)
{
    (void)arg;
    served_set_stale(pmix.served, stale);
    subscribers_notify();
}

static bool same_members(const struct config *a, const struct config *b)
{
    return a->n_tool_users == b->n_tool_users &&
           (a->n_tool_users == 0 ||
            memcmp(a->tool_users, b->tool_users, a->n_tool_users * sizeof(*a->tool_users)) == 0);
}

/* fabricd was restarted with other settings: end, and let the starter of this process start the next one. */
static void pmix_look_at_settings(void)
{
    struct config config;
    struct fab_err err = {""};
    char *text = NULL;
    config_init(&config);
    const int rc = pmix_settings_read(options.rundir, &config, &text, &err);
    if (rc == PMIXFAB_OK && text != NULL && strcmp(text, pmix.settings) != 0) {
        log_set_level(config.log);
        config.log = pmix.config.log;
        if (config.role != pmix.config.role || config.remote != pmix.config.remote ||
            config.pmix_port != pmix.config.pmix_port || config.foreign_tools != pmix.config.foreign_tools ||
            !same_members(&config, &pmix.config) ||
            strcmp(config.host != NULL ? config.host : "",
                   pmix.config.host != NULL ? pmix.config.host : "") != 0 ||
            strcmp(config.pmix_listen != NULL ? config.pmix_listen : "",
                   pmix.config.pmix_listen != NULL ? pmix.config.pmix_listen : "") != 0) {
            log_info("fabricd has other settings: restarting");
            event_base_loopbreak(pmix.loop.base);
        }
        free(pmix.settings);
        pmix.settings = text;
        text = NULL;
    }
    free(text);
    config_destroy(&config);
}

static void pmix_on_pulse(void *arg)
{
    (void)arg;
    timer_after(pmix.pulse, PULSE_MS);
    if (!starter_is_daemon())
        pmix_look_at_settings();
    pmix_say();
}

/* ---- start and stop --------------------------------------------------------------------------------- */

/* Change to another user, for good. */
static int pmix_become(const char *ids)
{
    char *end;
    const unsigned long user = strtoul(ids, &end, 10), group = *end == ':' ? strtoul(end + 1, NULL, 10) : 0;
    if (group == 0 || user == 0)
        return -1;
    if (setgroups(0, NULL) != 0 || setresgid((gid_t)group, (gid_t)group, (gid_t)group) != 0 ||
        setresuid((uid_t)user, (uid_t)user, (uid_t)user) != 0)
        return -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* undone by the change of the user */
    return 0;
}

/* Wait until fabricd has written its settings. */
static int pmix_wait_for_settings(struct fab_err *err)
{
    bool said = false;
    for (;;) {
        const int rc = pmix_settings_read(options.rundir, &pmix.config, &pmix.settings, err);
        if (rc != PMIXFAB_ERR_NOTFOUND)
            return rc == PMIXFAB_OK && pmix.settings == NULL
                       ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory")
                       : rc;
        if (!said)
            log_info("waiting for fabricd: %s", err->text);
        said = true;
        notify_send(NOTIFY_ALIVE);
        if (starter_has_ended(0))
            return PMIXFAB_ERR_UNREACH;
        clock_sleep(WAIT_MS * 1000);
    }
}

/* Without the guard one refused connection ends the server. On this host that affects its clients only; with
 * remote = yes any host could do it. Tests may switch the guard off. */
static int pmix_look_for_guard(struct fab_err *err)
{
    char why[GUARD_WHY];
    pmix.state.guarded = !guard_why_not(GUARD_CONNECTIONS, why) && !guard_why_not(GUARD_REQUESTS, why);
    if (pmix.state.guarded)
        return PMIXFAB_OK;
    if (pmix.config.remote)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                        "remote = yes needs all repairs of the PMIx library, and %s: any host could end the "
                        "server; install another library (docs/versions.md), or set remote = no",
                        why);
    log_warning("some repairs of the PMIx library are off, and %s: docs/versions.md lists the calls of tools "
                "that fail",
                why);
    return PMIXFAB_OK;
}

static void pmix_on_hangup(void *arg)
{
    (void)arg;
}

static void pmix_on_daemon_end(int fd, void *arg)
{
    (void)fd, (void)arg;
    event_base_loopbreak(pmix.loop.base);
}

static int pmix_prepare(struct fab_err *err)
{
    pmix.loop.on_hangup = pmix_on_hangup;
    pmix.served = served_new();
    if (loop_new(&pmix.loop) != PMIXFAB_OK || pmix.served == NULL ||
        subscribers_start(pmix.loop.base, pmix.served) != PMIXFAB_OK ||
        (pmix.pulse = timer_new(pmix.loop.base, pmix_on_pulse, NULL)) == NULL ||
        (starter_is_daemon() && (pmix.daemon = watch_new(pmix.loop.base, STDIN_FILENO, WATCH_READ,
                                                         pmix_on_daemon_end, NULL)) == NULL))
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    timer_free(pmix.loop.alive); /* the library's thread sends it, not the loop alone */
    pmix.loop.alive = NULL;
    int rc = pmix_fresh_start(pmix.loop.base, options.rundir, starter_is_daemon(), pmix_on_fresh, NULL,
                              &pmix.fresh, err);
    if (rc == PMIXFAB_OK)
        rc = server_rundir_start(
            pmix.loop.base, options.rundir, pmix.served,
            &(struct server_rundir_calls){pmix_on_served, pmix_on_raised, pmix_on_looked, NULL}, &pmix.source,
            err);
    return rc;
}

/* Restrict this process before a client can reach it, in case a client takes it over. */
static int pmix_serve(struct fab_err *err)
{
    const int given = starter_take_socket();
    /* on failure the server's start reports it. NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
    mkdir(options.folder, 0755);
    const unsigned holds = sandbox_enter(options.rundir, options.folder);
    int rc = starter_open_status(options.folder, err);
    if (rc == PMIXFAB_OK)
        rc = pmix_look_for_guard(err);
    if (rc == PMIXFAB_OK)
        rc = pmix_prepare(err);
    if (rc != PMIXFAB_OK)
        return rc;
    pmix_memory_open(options.folder);
    server_listen_on(given);
    rc = server_start(&pmix.config, pmix.served, &pmix_module, err);
    if (rc != PMIXFAB_OK)
        return rc;
    pmix.serving = true;
    const int listening = server_listening();
    if (listening >= 0 && !server_took_over())
        starter_keep_socket(listening);
    pmix.state.filtered = (holds & SANDBOX_FILTERED) != 0 && sandbox_close();
    pmix.state.confined = (holds & SANDBOX_CONFINED) != 0;
    pmix.state.bounded = (holds & SANDBOX_BOUNDED) != 0;
    snprintf(pmix.state.uri, sizeof(pmix.state.uri), "%s", server_uri());
    struct served_set *set = served_get(pmix.served);
    pmix.state.generation = set == NULL ? 0 : set->generation;
    served_set_put(set);
    return PMIXFAB_OK;
}

static int pmix_run(void)
{
    struct fab_err err = {""};
    config_init(&pmix.config);
    pmix.state.pid = getpid();
    int rc = pmix_wait_for_settings(&err);
    if (rc == PMIXFAB_OK) {
        log_set_level(pmix.config.log);
        rc = config_text(&pmix.config.rundir, options.folder);
    }
    if (rc == PMIXFAB_OK)
        rc = pmix_serve(&err);
    if (rc != PMIXFAB_OK) {
        char line[PMIX_STATUS_MAX];
        if (!starter_is_daemon()) /* fabricd reports it */
            log_error("%s", err.text);
        snprintf(pmix.state.failed, sizeof(pmix.state.failed), "%.290s", err.text);
        pmix_state_write(&pmix.state, line);
        starter_say(line);
        if (!starter_is_daemon())
            clock_sleep(FAILED_MS * 1000); /* before the manager starts the next */
        return rc == PMIXFAB_ERR_UNSUPPORTED || rc == PMIXFAB_ERR_PERM || rc == PMIXFAB_ERR_NOTFOUND
                   ? EXIT_CONFIG
                   : 1;
    }
    log_line(starter_is_daemon() ? PMIXFAB_LOG_DEBUG : PMIXFAB_LOG_INFO, "serving at %s", server_uri());
    notify_send("READY=1");
    pmix_on_pulse(NULL);
    event_base_dispatch(pmix.loop.base);
    notify_send("STOPPING=1");
    if (starter_is_daemon()) { /* fabricd may end, too: remove the library's files now */
        subscribers_stop();
        server_stop();
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = pmix_options,
        .parser = pmix_take_option,
        .doc =
            "fabricd-pmix is the PMIx server of fabricd: it answers the fabric calls of schedulers and tools "
            "from the files in the run directory of fabricd.\vSee fabricd-pmix(8)."};
    char folder[PATH_MAX];
    signals_ignore();
    guard_enter(argv);
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    snprintf(folder, sizeof(folder), "%s/pmix", options.rundir);
    if (options.folder == NULL)
        options.folder = folder;
    log_open(PMIXFAB_LOG_INFO, 0);
    if (!starter_open(options.daemon))
        return 1;
    umask(022);
    process_descriptors();
    if ((options.user != NULL && pmix_become(options.user) != 0) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        log_error("cannot change to the user %s: %s", options.user != NULL ? options.user : "of its own",
                  strerror(errno));
        return EXIT_CONFIG;
    }
    _exit(pmix_run()); /* the system releases memory that the library's threads still use */
}
