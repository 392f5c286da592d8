#include "fabricd/host/job/jobs.h"

#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"
#include "fabricd/host/job/job_info.h"
#include "fabricd/host/job/rank_process.h"
#include "fabricd/server/server.h"
#include "guard/guard.h"

#define PATIENCE_MS 2000 /* from SIGTERM to SIGKILL */

static struct host_job *host_jobs;
static unsigned long n_jobs;
static bool no_more_jobs;
static void (*on_job_end)(const struct host_job *job);

void jobs_on_end(void (*fn)(const struct host_job *job))
{
    on_job_end = fn;
}

struct host_job *jobs_first(void)
{
    return host_jobs;
}

struct host_job *jobs_find(const char *nspace)
{
    struct host_job *job;
    DL_FOREACH(host_jobs, job)
    {
        if (strcmp(job->nspace, nspace) == 0) /* an empty name is any to PMIX_CHECK_NSPACE() */
            return job;
    }
    return NULL;
}

struct host_proc *jobs_find_proc(const pmix_proc_t *proc)
{
    struct host_job *job = jobs_find(proc->nspace);
    return job != NULL && proc->rank < job->n ? &job->procs[proc->rank] : NULL;
}

/* ---- the end ------------------------------------------------------------------------------------ */

static void job_free(struct host_job *job)
{
    for (uint32_t i = 0; job->procs != NULL && i < job->n; i++)
        process_close(&job->procs[i]);
    timer_free(job->patience);
    free(job->procs);
    free(job);
}

/* On the library's thread: it knows the job no more, and no process of it. The loop has let go of all but the
 * memory. */
static void job_on_forgotten(pmix_status_t status, void *cbdata)
{
    struct host_job *job = cbdata;
    const struct pmix_guard *guard = guard_find();
    if (status != PMIX_ERR_INIT && guard != NULL) /* there is a library */
        guard->job_forgotten(job->nspace);
    free(job->procs);
    free(job);
}

static void job_forget(struct host_job *job)
{
    for (uint32_t i = 0; i < job->n; i++)
        process_close(&job->procs[i]);
    timer_free(job->patience);
    PMIx_server_deregister_nspace(job->nspace, job_on_forgotten, job);
}

/* The library may read it until it calls back. */
struct told {
    pmix_proc_t affected;
    pmix_info_t *info;
    size_t n;
};

static void told_free(pmix_status_t status, void *cbdata)
{
    struct told *told = cbdata;
    (void)status;
    PMIX_INFO_FREE(told->info, told->n);
    free(told);
}

/* An event, to everybody who has registered for it. */
static void job_tell(const struct host_job *job, pmix_rank_t rank, pmix_status_t code, pmix_status_t status,
                     int exit_code)
{
    struct told *told = calloc(1, sizeof(*told));
    if (told != NULL)
        PMIX_INFO_CREATE(told->info, 4);
    if (told == NULL || told->info == NULL) {
        log_error("out of memory: the end of %s:%u is not announced", job->nspace, rank);
        free(told);
        return;
    }
    PMIX_LOAD_PROCID(&told->affected, job->nspace, rank);
    PMIX_INFO_LOAD(&told->info[0], PMIX_EVENT_AFFECTED_PROC, &told->affected, PMIX_PROC);
    PMIX_INFO_LOAD(&told->info[1], PMIX_JOB_TERM_STATUS, &status, PMIX_STATUS);
    PMIX_INFO_LOAD(&told->info[2], PMIX_EXIT_CODE, &exit_code, PMIX_INT);
    PMIX_INFO_LOAD(&told->info[3], PMIX_NSPACE, job->nspace, PMIX_STRING);
    told->n = 4;
    pmix_status_t rc =
        PMIx_Notify_event(code, &told->affected, PMIX_RANGE_SESSION, told->info, told->n, told_free, told);
    if (rc != PMIX_SUCCESS)
        told_free(rc, told);
}

static void job_ended(struct host_job *job)
{
    job_tell(job, job->failed == PMIX_RANK_UNDEF ? PMIX_RANK_WILDCARD : job->failed, PMIX_EVENT_JOB_END,
             job->status, job->exit_code);
    log_info("job %s has ended: %s", job->nspace, PMIx_Error_string(job->status));
    DL_DELETE(host_jobs, job);
    if (on_job_end != NULL)
        on_job_end(job);
    job_forget(job);
}

/* What its end says; PMIX_SUCCESS: all is well. */
static pmix_status_t job_end_of(const struct host_proc *proc, int status)
{
    if (proc->aborted)
        return PMIX_ERR_PROC_REQUESTED_ABORT;
    if (WIFSIGNALED(status))
        return proc->job->ending || proc->told ? PMIX_ERR_PROC_KILLED_BY_CMD : PMIX_ERR_PROC_ABORTED_BY_SIG;
    if (proc->connected && !proc->finalized)
        return PMIX_ERR_PROC_TERM_WO_SYNC;
    return WEXITSTATUS(status) == 0 ? PMIX_SUCCESS : PMIX_ERR_EXIT_NONZERO_TERM;
}

static pmix_proc_state_t state_of(pmix_status_t end)
{
    switch (end) {
    case PMIX_SUCCESS:
        return PMIX_PROC_STATE_TERMINATED;
    case PMIX_ERR_PROC_REQUESTED_ABORT:
        return PMIX_PROC_STATE_CALLED_ABORT;
    case PMIX_ERR_PROC_KILLED_BY_CMD:
        return PMIX_PROC_STATE_KILLED_BY_CMD;
    case PMIX_ERR_PROC_ABORTED_BY_SIG:
        return PMIX_PROC_STATE_ABORTED_BY_SIG;
    case PMIX_ERR_PROC_TERM_WO_SYNC:
        return PMIX_PROC_STATE_TERM_WO_SYNC;
    default:
        return PMIX_PROC_STATE_TERM_NON_ZERO;
    }
}

static void job_fails(struct host_job *job, const struct host_proc *proc, pmix_status_t end)
{
    if (job->failed == PMIX_RANK_UNDEF) {
        job->failed = proc->rank;
        job->status = end;
        job->exit_code = proc->exit_code == 0 ? 1 : proc->exit_code; /* it has not ended well */
    }
    if (!job->ending)
        job_tell(job, proc->rank, end, end, proc->exit_code);
    if (!job->recoverable)
        jobs_terminate(job);
}

static void job_on_proc_end(struct host_proc *proc, int status)
{
    struct host_job *job = proc->job;
    const pmix_status_t end = job_end_of(proc, status);
    proc->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    proc->state = state_of(end);
    job->running--;
    log_debug("%s:%u has ended: %s, exit code %d", job->nspace, proc->rank, PMIx_Error_string(end),
              proc->exit_code);
    if (end != PMIX_SUCCESS)
        job_fails(job, proc, end);
    if (job->running == 0)
        job_ended(job);
}

void jobs_kill(struct host_job *job)
{
    job->ending = true;
    for (uint32_t i = 0; i < job->n; i++)
        process_signal(&job->procs[i], SIGKILL);
}

static void job_on_impatience(void *arg)
{
    jobs_kill(arg);
}

void jobs_terminate(struct host_job *job)
{
    if (job->ending)
        return;
    job->ending = true;
    for (uint32_t i = 0; i < job->n; i++) {
        process_signal(&job->procs[i], SIGTERM);
        process_signal(&job->procs[i], SIGCONT); /* one that is stopped hears nothing else */
    }
    timer_after(job->patience, PATIENCE_MS);
}

void jobs_terminate_all(void)
{
    no_more_jobs = true;
    for (struct host_job *job = host_jobs; job != NULL; job = job->next)
        jobs_terminate(job);
}

/* ---- the start ---------------------------------------------------------------------------------- */

static struct host_job *job_new(struct event_base *base, const struct job_order *order, uint32_t n)
{
    struct host_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return NULL;
    job->procs = calloc(n, sizeof(*job->procs));
    job->patience = timer_new(base, job_on_impatience, job);
    if (job->procs == NULL || job->patience == NULL) {
        job_free(job);
        return NULL;
    }
    snprintf(job->nspace, sizeof(job->nspace), "%.200s@%lu", server_self()->nspace, ++n_jobs);
    if (order->parent != NULL)
        job->parent = *order->parent;
    job->recoverable = order->recoverable;
    job->tagged = order->tagged;
    job->away = order->away;
    job->failed = PMIX_RANK_UNDEF;
    for (uint32_t app = 0; app < order->n_apps; app++)
        for (int i = 0; i < order->apps[app].maxprocs; i++, job->n++)
            job->procs[job->n] = (struct host_proc){.job = job,
                                                    .rank = job->n,
                                                    .app = app,
                                                    .on_end = job_on_proc_end,
                                                    .state = PMIX_PROC_STATE_PREPPED};
    return job;
}

/* The library is told of the job and of each process, before one of them can connect. */
static pmix_status_t job_register(struct host_job *job, const struct job_order *order)
{
    pmix_status_t rc = job_info_register(job, order->apps, order->n_apps);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < job->n; i++) {
        pmix_proc_t name;
        PMIX_LOAD_PROCID(&name, job->nspace, i);
        rc = PMIx_server_register_client(&name, geteuid(), getegid(), NULL, NULL, NULL);
        if (rc == PMIX_OPERATION_SUCCEEDED)
            rc = PMIX_SUCCESS;
    }
    return rc;
}

/* One that cannot be started ends those that were: nobody is told of a job that never was. */
static void job_undo(struct host_job *job)
{
    for (uint32_t i = 0; i < job->n; i++) {
        struct host_proc *proc = &job->procs[i];
        if (proc->pid == 0)
            continue;
        process_signal(proc, SIGKILL);
        waitpid(proc->pid, NULL, 0);
        proc->pid = 0;
    }
    if (on_job_end != NULL)
        on_job_end(job); /* those that were may have published */
    job_forget(job);
}

static pmix_status_t job_count(const struct job_order *order, uint32_t *n)
{
    *n = 0;
    for (size_t i = 0; i < order->n_apps; i++) {
        const pmix_app_t *app = &order->apps[i];
        if (app->cmd == NULL || app->cmd[0] == '\0')
            return PMIX_ERR_JOB_NO_EXE_SPECIFIED;
        if (app->maxprocs < 1 || app->maxprocs > JOBS_MOST_PROCS)
            return PMIX_ERR_BAD_PARAM;
        *n += (uint32_t)app->maxprocs;
        if (*n > JOBS_MOST_PROCS)
            return PMIX_ERR_JOB_INSUFFICIENT_RESOURCES;
    }
    return *n == 0 ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS;
}

pmix_status_t jobs_start(struct event_base *base, const struct job_order *order, pmix_nspace_t nspace)
{
    uint32_t n;
    pmix_status_t rc = no_more_jobs ? PMIX_ERR_NOT_AVAILABLE : job_count(order, &n);
    if (rc != PMIX_SUCCESS)
        return rc;
    struct host_job *job = job_new(base, order, n);
    if (job == NULL)
        return PMIX_ERR_NOMEM;
    rc = job_register(job, order);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < job->n; i++) {
        rc = process_start(base, &job->procs[i], order);
        job->running += rc == PMIX_SUCCESS;
    }
    if (rc != PMIX_SUCCESS) {
        job_undo(job);
        return rc;
    }
    DL_APPEND(host_jobs, job);
    PMIX_LOAD_NSPACE(nspace, job->nspace);
    log_info("job %s: %u processes of %s", job->nspace, job->n, order->apps[0].cmd);
    return PMIX_SUCCESS;
}
