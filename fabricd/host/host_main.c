/* host_main.c - the role host: its parts, made and ended. */
#include <pmix.h>
#include <pmix_server.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/host/data/kv.h"
#include "fabricd/host/host.h"
#include "fabricd/host/host_module.h"
#include "fabricd/host/host_post.h"
#include "fabricd/host/job/jobs.h"
#include "fabricd/host/job/rank_output.h"
#include "fabricd/process/process.h"
#include "fabricd/server/long_poll.h"
#include "fabricd/server/server.h"
#include "fabricd/server/server_rundir.h"
#include "guard/guard.h"

struct host {
    struct config *config;
    struct loop loop;
    struct process_lock *lock;
    struct served *served; /* the fabric's snapshots */
    struct server_rundir *fabric;
    bool serving;
    pmix_nspace_t program; /* the job of the command line, "": none */
    int exit_code;
};

static struct host *the_host; /* for what is told of jobs */

static void host_on_hangup(void *arg)
{
    (void)arg;
    log_info("SIGHUP: the role host reads its configuration at its start only");
}

/* ---- the command line's program ----------------------------------------------------------------- */

/* Of clients and tools, on the library's thread. */
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
    const struct config *config = host->config;
    char **program = config->program;
    if (program == NULL)
        return PMIXFAB_OK;
    const pmix_app_t app = {.cmd = program[0], .argv = program, .maxprocs = (int)config->copies};
    const struct job_order order = {.apps = &app,
                                    .n_apps = 1,
                                    .recoverable = config->recoverable,
                                    .tagged = config->tagged,
                                    .inherits = true,
                                    .input_to = PMIX_RANK_INVALID};
    pmix_status_t rc = jobs_start(host->loop.base, &order, host->program);
    return rc == PMIX_SUCCESS ? PMIXFAB_OK
                              : fab_fail(err, PMIXFAB_ERR_NOTFOUND, "%s cannot be started: %s", program[0],
                                         PMIx_Error_string(rc));
}

/* ---- start and stop ----------------------------------------------------------------------------- */

/* Jobs end before the server does: by SIGTERM, or a while later by SIGKILL. */
static void host_end_jobs(struct host *host)
{
    jobs_terminate_all();
    while (jobs_first() != NULL && event_base_loop(host->loop.base, EVLOOP_ONCE) == 0)
        ;
}

static void host_stop(struct host *host)
{
    host_end_jobs(host);
    process_remove_uri(host->config, host->lock);
    if (host->serving)
        server_stop();
    kv_stop();
    server_rundir_stop(host->fabric);
    served_free(host->served);
    loop_free(&host->loop);
    process_unlock(host->lock);
}

/* The PMIx library lets go of connections in an order that libevent finds odd, and nothing comes of it. */
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

/* The loop hears of a signal only when it comes round, which it does not while output waits to be read. */
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

/* Who connects is asked of the kernel, by a repair of the library; and jobs ask for what was tried with one
 * version of it. */
static int host_guard(struct fab_err *err)
{
    char why[GUARD_WHY] = "they are switched off (FABRICD_NO_REPAIR)";
    const struct pmix_guard *guard = guard_find();
    if ((guard != NULL && guard->is_off()) || guard_why_not(GUARD_JOBS, why))
        return fab_fail(
            err, PMIXFAB_ERR_UNSUPPORTED,
            "the role host needs PMIx 4.2.2 and fabricd's repairs of it, and %s: not all that a job "
            "asks for would be done",
            why);
    event_set_log_callback(host_on_event_log);
    return PMIXFAB_OK;
}

static int host_start(struct host *host, struct fab_err *err)
{
    const struct config *config = host->config;
    int rc = host_guard(err);
    if (rc == PMIXFAB_OK)
        rc = process_lock(config, &host->lock, err);
    if (rc == PMIXFAB_OK && loop_new(&host->loop) != PMIXFAB_OK)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "the event loop cannot be made");
    if (rc != PMIXFAB_OK)
        return rc;
    host_take_signals();
    host_post_to(host->loop.base);
    /* Output for a tool that has left is kept by the library for the next one: a million pieces, else. */
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

int host_run(struct config *config)
{
    struct host host = {.config = config};
    struct fab_err err = {""};
    the_host = &host;
    host.loop.on_hangup = host_on_hangup;
    signal(SIGCHLD, SIG_DFL); /* who starts us may ignore it, and then nobody's end is to be had */
    int rc = host_start(&host, &err);
    if (rc != PMIXFAB_OK)
        log_error("%s", err.text);
    process_ready(rc == PMIXFAB_OK);
    if (rc == PMIXFAB_OK) {
        if (config->program == NULL)
            log_info("host: serving at %s", server_uri());
        event_base_dispatch(host.loop.base);
    }
    host_stop(&host);
    if (rc != PMIXFAB_OK)
        return 1;
    return host.exit_code != 0 && (host.exit_code & 0xff) == 0 ? 1
                                                               : host.exit_code; /* a byte is what is told */
}
