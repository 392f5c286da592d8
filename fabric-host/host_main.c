/* host_main.c - read the command line of fabric-host, and create and end its parts. */
#include <argp.h>
#include <pmix.h>
#include <pmix_server.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric-host/data/kv.h"
#include "fabric-host/host.h"
#include "fabric-host/job/jobs.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/notify.h"
#include "fabricd/process/process.h"
#include "fabricd/server/long_poll.h"
#include "fabricd/server/server.h"
#include "fabricd/server/server_rundir.h"
#include "guard/guard.h"
#include "guard/guard_enter.h"

struct host {
    struct config config; /* the server's part of it: role, rundir, scheduler, store, host, log */
    unsigned copies;
    bool foreground, recoverable, tagged;
    char **argv; /* the program to start; NULL: none */
    struct loop loop;
    struct process_lock *lock;
    struct served *served; /* the fabric's snapshots */
    struct server_rundir *fabric;
    bool serving;
    pmix_nspace_t program; /* the job of the command line, "": none */
    int exit_code;
};

/* ---- the command line --------------------------------------------------------------------------- */

enum { OPT_RUNDIR = 256, OPT_SCHEDULER, OPT_STORE, OPT_LOG, OPT_RECOVERABLE, OPT_TAG, OPT_USAGE };

static const struct argp_option host_options[] = {
    {"copies", 'n', "N", 0, "the number of processes of PROGRAM (default 1)", 0},
    {"recoverable", OPT_RECOVERABLE, NULL, 0, "keep the other processes running when one fails", 0},
    {"tag-output", OPT_TAG, NULL, 0, "begin each line of output with job, rank and stream", 0},
    {"scheduler", OPT_SCHEDULER, "DIR", 0,
     "the run directory of fabricd, of a node or of the scheduler (default /run/fabricd)", 0},
    {"rundir", OPT_RUNDIR, "DIR", 0,
     "the run directory, for URI and database (default $XDG_RUNTIME_DIR/fabricd-host, or "
     "/tmp/fabricd-host.UID)",
     0},
    {"store", OPT_STORE, "FILE", 0, "the database of published values (default host.db in the run directory)",
     0},
    {"log", OPT_LOG, "LEVEL", 0, "error, warning, info (the default) or debug", 0},
    {"foreground", 'f', NULL, 0, "stay in the foreground and log to standard error (always so with PROGRAM)",
     0},
    {"help", 'h', NULL, 0, "this help", -1},
    {"usage", OPT_USAGE, NULL, OPTION_HIDDEN, NULL, -1},
    {NULL, '?', NULL, OPTION_HIDDEN, NULL, -1},
    {"version", 'V', NULL, 0, "print the version", -1},
    {0},
};

static enum pmixfab_level host_log_level(const char *name, struct argp_state *state)
{
    static const char *const names[] = {[PMIXFAB_LOG_ERROR] = "error",
                                        [PMIXFAB_LOG_WARNING] = "warning",
                                        [PMIXFAB_LOG_INFO] = "info",
                                        [PMIXFAB_LOG_DEBUG] = "debug"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i] != NULL && strcmp(name, names[i]) == 0)
            return (enum pmixfab_level)i;
    argp_error(state, "--log %s: give error, warning, info or debug", name);
    return PMIXFAB_LOG_INFO;
}

static unsigned host_copies(const char *text, struct argp_state *state)
{
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || n < 1 || n > JOBS_MOST_PROCS)
        argp_error(state, "-n %s: give a number from 1 to %d", text, JOBS_MOST_PROCS);
    return (unsigned)n;
}

static error_t host_take_option(int key, char *arg, struct argp_state *state)
{
    struct host *host = state->input;
    switch (key) {
    case 'n':
        host->copies = host_copies(arg, state);
        return 0;
    case OPT_RECOVERABLE:
        host->recoverable = true;
        return 0;
    case OPT_TAG:
        host->tagged = true;
        return 0;
    case OPT_SCHEDULER:
        host->config.scheduler = arg;
        return 0;
    case OPT_RUNDIR:
        host->config.rundir = arg;
        return 0;
    case OPT_STORE:
        host->config.store = arg;
        return 0;
    case OPT_LOG:
        host->config.log = host_log_level(arg, state);
        return 0;
    case 'f':
        host->foreground = true;
        return 0;
    case 'V':
        printf("fabric-host %s\n", pmixfab_version());
        exit(0);
    case 'h':
    case '?':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        return 0;
    case OPT_USAGE:
        argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
        return 0;
    case ARGP_KEY_ARG: /* this and all following arguments are the program's */
        host->argv = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Find the user's folders as absolute paths, since a background process changes its working directory. */
static void host_find_places(struct host *host, int argc, char **argv)
{
    static const struct argp argp = {
        .options = host_options,
        .parser = host_take_option,
        .args_doc = "[PROGRAM [ARGUMENT...]]",
        .doc = "fabric-host starts PROGRAM on this host and serves PMIx to its processes, with the fabric of "
               "fabricd. "
               "Without PROGRAM it serves PMIx tools until it is stopped.\vSee fabric-host(1).",
    };
    static char rundir[4096], store[4096 + 16], name[256];
    const char *base = getenv("XDG_RUNTIME_DIR");
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, host);
    if (base != NULL && base[0] == '/')
        snprintf(rundir, sizeof(rundir), "%s/fabricd-host", base);
    else
        snprintf(rundir, sizeof(rundir), "/tmp/fabricd-host.%u", (unsigned)geteuid());
    if (host->config.rundir == NULL)
        host->config.rundir = rundir;
    snprintf(store, sizeof(store), "%.4095s/host.db", host->config.rundir);
    if (host->config.store == NULL)
        host->config.store = store;
    if (gethostname(name, sizeof(name) - 1) != 0)
        snprintf(name, sizeof(name), "localhost");
    host->config.host = name;
    host->foreground |= host->argv != NULL;
}

static struct host *the_host; /* for callbacks about jobs */

static void host_on_hangup(void *arg)
{
    (void)arg;
    log_info("SIGHUP: ignored: fabric-host has no configuration");
}

/* ---- the program of the command line ------------------------------------------------------------ */

/* For clients and tools, on the library's thread. */
static void host_on_left(const pmix_proc_t *who)
{
    long_poll_left(who);
    kv_left(who);
}

static void host_on_job_end(const struct host_job *job)
{
    pmix_proc_t all;
    PMIX_LOAD_PROCID(&all, job->nspace, PMIX_RANK_WILDCARD);
    kv_ended(&all);
    if (strcmp(job->nspace, the_host->program) == 0) {
        the_host->exit_code = job->exit_code;
        event_base_loopbreak(the_host->loop.base);
    }
}

static int host_start_program(struct host *host, struct fab_err *err)
{
    char **program = host->argv;
    if (program == NULL)
        return PMIXFAB_OK;
    const pmix_app_t app = {.cmd = program[0], .argv = program, .maxprocs = (int)host->copies};
    const struct job_order order = {.apps = &app,
                                    .n_apps = 1,
                                    .recoverable = host->recoverable,
                                    .tagged = host->tagged,
                                    .inherits = true,
                                    .input_to = PMIX_RANK_INVALID};
    pmix_status_t rc = jobs_start(&order, host->program);
    return rc == PMIX_SUCCESS ? PMIXFAB_OK
                              : fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s cannot be started: %s", program[0],
                                         PMIx_Error_string(rc));
}

/* ---- start and stop ----------------------------------------------------------------------------- */

/* End all jobs before the server: by SIGTERM, after a while by SIGKILL. */
static void host_end_jobs(struct host *host)
{
    jobs_terminate_all();
    while (jobs_first() != NULL && event_base_loop(host->loop.base, EVLOOP_ONCE) == 0)
        ;
}

static void host_stop(struct host *host)
{
    host_end_jobs(host);
    process_remove_uri(&host->config, host->lock);
    if (host->serving)
        server_stop();
    kv_stop();
    server_rundir_stop(host->fabric);
    served_free(host->served);
    loop_free(&host->loop);
    process_unlock(host->lock);
}

/* Ignore libevent's warnings about the order in which the PMIx library closes connections; they are harmless.
 */
static void host_on_event_log(int severity, const char *text)
{
    log_line(severity == EVENT_LOG_ERR ? PMIXFAB_LOG_ERROR : PMIXFAB_LOG_DEBUG, "libevent: %s", text);
}

static void (*loops_handler)(int signo);

static void host_on_signal(int signo)
{
    output_will_end();
    loops_handler(signo);
}

/* Handle signals outside the loop, since the loop does not run while it waits for a reader of output. */
static void host_take_signals(void)
{
    static const int signals[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        struct sigaction action;
        sigaction(signals[i], NULL, &action);
        loops_handler = action.sa_handler;
        action.sa_handler = host_on_signal;
        sigaction(signals[i], &action, NULL);
    }
}

/* The guard gets the uid of a connection from the kernel; and jobs need repairs that were tested with one
 * version of the library. */
static int host_guard(struct fab_err *err)
{
    char why[GUARD_WHY] = "FABRICD_NO_REPAIR switches it off";
    const struct pmix_guard *guard = guard_find();
    if ((guard != NULL && guard->is_off()) || guard_why_not(GUARD_JOBS, why))
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                        "fabric-host needs PMIx 4.2.2 and its guard (libpmix-guard.so), and %s: it cannot "
                        "run jobs without them",
                        why);
    event_set_log_callback(host_on_event_log);
    return PMIXFAB_OK;
}

static int host_start(struct host *host, struct fab_err *err)
{
    const struct config *config = &host->config;
    int rc = host_guard(err);
    if (rc == PMIXFAB_OK)
        rc = process_lock(config, &host->lock, err);
    if (rc == PMIXFAB_OK && loop_new(&host->loop) != PMIXFAB_OK)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "cannot create the event loop");
    if (rc != PMIXFAB_OK)
        return rc;
    host_take_signals();
    jobs_init(host->loop.base);
    /* By default the library keeps output of a tool that has disconnected for the next one: a million pieces.
     */
    setenv("PMIX_MCA_pmix_max_iof_cache", "1", 0);
    host->served = served_new();
    rc = host->served == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory")
                              : server_rundir_start(host->loop.base, config->scheduler, host->served, NULL,
                                                    &host->fabric, err);
    if (rc == PMIXFAB_OK)
        rc = server_start(config, host->served, &host_module, err);
    if (rc != PMIXFAB_OK)
        return rc;
    host->serving = true;
    jobs_on_end(host_on_job_end);
    guard_find()->on_left(host_on_left);
    rc = kv_start(host->loop.base, config->store, err);
    if (rc == PMIXFAB_OK)
        rc = process_write_uri(config, server_uri(), err);
    return rc == PMIXFAB_OK ? host_start_program(host, err) : rc;
}

/* Returns the exit status. */
static int host_run(struct host *host)
{
    struct fab_err err = {""};
    the_host = host;
    host->loop.on_hangup = host_on_hangup;
    signal(SIGCHLD, SIG_DFL); /* a caller may have set SIG_IGN, and then no exit status is available */
    const int rc = host_start(host, &err);
    if (rc != PMIXFAB_OK)
        log_error("%s", err.text);
    process_ready(rc == PMIXFAB_OK);
    if (rc == PMIXFAB_OK) {
        if (host->argv == NULL)
            log_info("host: serving at %s", server_uri());
        event_base_dispatch(host->loop.base);
    }
    host_stop(host);
    if (rc != PMIXFAB_OK)
        return 1;
    /* An exit status has 8 bits only. */
    return host->exit_code != 0 && (host->exit_code & 0xff) == 0 ? 1 : host->exit_code;
}

int main(int argc, char **argv)
{
    struct host host = {
        .copies = 1,
        .config = {.role = ROLE_HOST, .scheduler = (char[]){"/run/fabricd"}, .log = PMIXFAB_LOG_INFO}};
    guard_enter(argv);
    signals_ignore(); /* inherited by children */
    notify_open();
    host_find_places(&host, argc, argv);
    log_open(host.config.log, 0);
    if (!host.foreground && process_daemonize(&host.config) != PMIXFAB_OK)
        return 1;
    process_descriptors();
    return host_run(&host);
}
