/* jobs.c - the lifetime of a job: its start, its registration with the library, its end. */
#include "fabric-host/job/jobs.h"

#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/server/server.h"
#include "fabricd/server/server_answers.h"
#include "guard/guard.h"

#define PATIENCE_MS    2000 /* from SIGTERM to SIGKILL */
#define MOST_JOB_INFOS 20

static struct event_base *jobs_base;
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
        if (strcmp(job->nspace, nspace) == 0) /* PMIX_CHECK_NSPACE() would match an empty name with any */
            return job;
    }
    return NULL;
}

struct host_proc *jobs_find_proc(const pmix_proc_t *proc)
{
    struct host_job *job = jobs_find(proc->nspace);
    return job != NULL && proc->rank < job->n ? &job->procs[proc->rank] : NULL;
}

/* ---- the loop ----------------------------------------------------------------------------------- */

struct job_letter {
    struct timer *timer;
    void (*fn)(void *arg);
    void *arg;
};

void jobs_init(struct event_base *base)
{
    jobs_base = base;
}

static void job_on_letter(void *arg)
{
    struct job_letter letter = *(struct job_letter *)arg;
    timer_free(letter.timer);
    free(arg);
    letter.fn(letter.arg);
}

bool jobs_post(void (*fn)(void *arg), void *arg)
{
    struct job_letter *letter = malloc(sizeof(*letter));
    if (letter == NULL)
        return false;
    *letter = (struct job_letter){.timer = timer_new(jobs_base, job_on_letter, letter), .fn = fn, .arg = arg};
    if (letter->timer == NULL) {
        free(letter);
        return false;
    }
    timer_fire(letter->timer);
    return true;
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

/* Runs on the library's thread, when the library has dropped the job and its processes. The loop has released
 * all but the memory. */
static void job_on_forgotten(pmix_status_t status, void *cbdata)
{
    struct host_job *job = cbdata;
    const struct pmix_guard *guard = guard_find();
    if (status != PMIX_ERR_INIT && guard != NULL) /* otherwise there is no library */
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

/* Kept until the library calls back, since it reads it. */
struct announcement {
    pmix_proc_t affected;
    pmix_info_t *info;
    size_t n;
};

static void job_announced(pmix_status_t status, void *cbdata)
{
    struct announcement *announced = cbdata;
    (void)status;
    PMIX_INFO_FREE(announced->info, announced->n);
    free(announced);
}

/* Send an event to all processes that have registered for it. */
static void job_announce(const struct host_job *job, pmix_rank_t rank, pmix_status_t code,
                         pmix_status_t status, int exit_code)
{
    struct announcement *announced = calloc(1, sizeof(*announced));
    if (announced != NULL)
        PMIX_INFO_CREATE(announced->info, 4);
    if (announced == NULL || announced->info == NULL) {
        log_error("out of memory: the end of %s:%u is not announced", job->nspace, rank);
        free(announced);
        return;
    }
    PMIX_LOAD_PROCID(&announced->affected, job->nspace, rank);
    PMIX_INFO_LOAD(&announced->info[0], PMIX_EVENT_AFFECTED_PROC, &announced->affected, PMIX_PROC);
    PMIX_INFO_LOAD(&announced->info[1], PMIX_JOB_TERM_STATUS, &status, PMIX_STATUS);
    PMIX_INFO_LOAD(&announced->info[2], PMIX_EXIT_CODE, &exit_code, PMIX_INT);
    PMIX_INFO_LOAD(&announced->info[3], PMIX_NSPACE, job->nspace, PMIX_STRING);
    announced->n = 4;
    pmix_status_t rc = PMIx_Notify_event(code, &announced->affected, PMIX_RANGE_SESSION, announced->info,
                                         announced->n, job_announced, announced);
    if (rc != PMIX_SUCCESS)
        job_announced(rc, announced);
}

static void job_ended(struct host_job *job)
{
    job_announce(job, job->failed == PMIX_RANK_UNDEF ? PMIX_RANK_WILDCARD : job->failed, PMIX_EVENT_JOB_END,
                 job->status, job->exit_code);
    log_info("job %s has ended: %s", job->nspace, PMIx_Error_string(job->status));
    DL_DELETE(host_jobs, job);
    if (on_job_end != NULL)
        on_job_end(job);
    job_forget(job);
}

/* Return the status of the end; PMIX_SUCCESS: no error. */
static pmix_status_t job_end_of(const struct host_proc *proc, int status)
{
    if (proc->aborted)
        return PMIX_ERR_PROC_REQUESTED_ABORT;
    if (WIFSIGNALED(status))
        return proc->job->ending || proc->ending ? PMIX_ERR_PROC_KILLED_BY_CMD : PMIX_ERR_PROC_ABORTED_BY_SIG;
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
        job->exit_code = proc->exit_code == 0 ? 1 : proc->exit_code; /* report the failure */
    }
    if (!job->ending)
        job_announce(job, proc->rank, end, end, proc->exit_code);
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
        process_signal(&job->procs[i], SIGCONT); /* a stopped process handles no other signal */
    }
    timer_after(job->patience, PATIENCE_MS);
}

void jobs_terminate_all(void)
{
    no_more_jobs = true;
    for (struct host_job *job = host_jobs; job != NULL; job = job->next)
        jobs_terminate(job);
}

/* ---- job data for PMIx_Get: the library passes them to each process at its start -------------------- */

/* An array of infos that is being filled. */
struct infos {
    pmix_info_t *at;
    size_t n;
};

static void infos_put(struct infos *infos, const char *key, const void *value, pmix_data_type_t type)
{
    PMIX_INFO_LOAD(&infos->at[infos->n], key, value, type);
    infos->n++;
}

static void infos_u32(struct infos *infos, const char *key, uint32_t value)
{
    infos_put(infos, key, &value, PMIX_UINT32);
}

static void infos_u16(struct infos *infos, const char *key, uint16_t value)
{
    infos_put(infos, key, &value, PMIX_UINT16);
}

static void infos_rank(struct infos *infos, const char *key, pmix_rank_t value)
{
    infos_put(infos, key, &value, PMIX_PROC_RANK);
}

/* Put an array of infos as a value; the caller fills it. */
static bool infos_array(struct infos *infos, const char *key, size_t size, struct infos *inside)
{
    pmix_info_t *info = &infos->at[infos->n];
    pmix_data_array_t *array;
    PMIX_DATA_ARRAY_CREATE(array, size, PMIX_INFO);
    if (array == NULL || array->array == NULL) {
        free(array);
        return false;
    }
    PMIX_LOAD_KEY(info->key, key);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = array;
    infos->n++;
    *inside = (struct infos){.at = array->array};
    return true;
}

/* ---- the job ------------------------------------------------------------------------------------ */

/* "0,1,2": all ranks are on this host. free() it. */
static char *ranks_text(uint32_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (uint32_t i = 0; out != NULL && i < n; i++)
        fprintf(out, "%s%u", i > 0 ? "," : "", i);
    if (out != NULL)
        fclose(out);
    return text;
}

static void put_maps(struct infos *infos, const char *host, const char *ranks)
{
    char *regex = NULL, *ppn = NULL;
    if (PMIx_generate_regex(host, &regex) == PMIX_SUCCESS)
        infos_put(infos, PMIX_NODE_MAP, regex, PMIX_STRING);
    if (PMIx_generate_ppn(ranks, &ppn) == PMIX_SUCCESS)
        infos_put(infos, PMIX_PROC_MAP, ppn, PMIX_STRING);
    free(regex);
    free(ppn);
    infos_put(infos, PMIX_LOCAL_PEERS, ranks, PMIX_STRING);
}

static void put_job(struct infos *infos, const struct host_job *job, size_t n_apps, const char *ranks)
{
    const bool yes = true, no = false;
    put_maps(infos, answer_host(), ranks);
    infos_put(infos, PMIX_JOBID, job->nspace, PMIX_STRING);
    infos_put(infos, PMIX_NSPACE, job->nspace, PMIX_STRING);
    infos_put(infos, PMIX_HOSTNAME, answer_host(), PMIX_STRING);
    infos_put(infos, PMIX_SERVER_NSPACE, server_self()->nspace, PMIX_STRING);
    infos_rank(infos, PMIX_SERVER_RANK, server_self()->rank);
    infos_u32(infos, PMIX_NODEID, 0);
    infos_u32(infos, PMIX_NUM_NODES, 1);
    infos_u32(infos, PMIX_JOB_SIZE, job->n);
    infos_u32(infos, PMIX_UNIV_SIZE, job->n);
    infos_u32(infos, PMIX_MAX_PROCS, job->n);
    infos_u32(infos, PMIX_LOCAL_SIZE, job->n);
    infos_u32(infos, PMIX_NODE_SIZE, job->n);
    infos_u32(infos, PMIX_JOB_NUM_APPS, (uint32_t)n_apps);
    infos_rank(infos, PMIX_LOCALLDR, 0);
    /* rank_output.c writes the output, not the library */
    infos_put(infos, PMIX_IOF_LOCAL_OUTPUT, &no, PMIX_BOOL);
    if (job->parent.nspace[0] == '\0')
        return;
    infos_put(infos, PMIX_PARENT_ID, &job->parent, PMIX_PROC);
    infos_put(infos, PMIX_SPAWNED, &yes, PMIX_BOOL);
}

/* Return the command as one line; free() it. */
static char *command_line(char *const *argv)
{
    char *line = NULL;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    for (size_t i = 0; out != NULL && argv[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? " " : "", argv[i]);
    if (out != NULL)
        fclose(out);
    return line;
}

static bool put_app(struct infos *infos, const pmix_app_t *app, uint32_t number, pmix_rank_t first)
{
    struct infos inside;
    char *alone[] = {app->cmd, NULL}, *argv = command_line(app->argv != NULL ? app->argv : alone);
    const bool made = argv != NULL && infos_array(infos, PMIX_APP_INFO_ARRAY, 4, &inside);
    if (made) {
        infos_u32(&inside, PMIX_APPNUM, number);
        infos_u32(&inside, PMIX_APP_SIZE, (uint32_t)app->maxprocs);
        infos_rank(&inside, PMIX_APPLDR, first);
        infos_put(&inside, PMIX_APP_ARGV, argv, PMIX_STRING);
    }
    free(argv);
    return made;
}

static bool put_proc(struct infos *infos, const struct host_proc *proc, pmix_rank_t first)
{
    const bool spawned = proc->job->parent.nspace[0] != '\0';
    struct infos inside;
    if (!infos_array(infos, PMIX_PROC_DATA, 9 + spawned, &inside))
        return false;
    infos_rank(&inside, PMIX_RANK, proc->rank);
    infos_rank(&inside, PMIX_GLOBAL_RANK, proc->rank);
    infos_rank(&inside, PMIX_APP_RANK, proc->rank - first);
    infos_u32(&inside, PMIX_APPNUM, proc->app);
    infos_u16(&inside, PMIX_LOCAL_RANK, (uint16_t)proc->rank);
    infos_u16(&inside, PMIX_NODE_RANK, (uint16_t)proc->rank);
    infos_u32(&inside, PMIX_NODEID, 0);
    infos_put(&inside, PMIX_HOSTNAME, answer_host(), PMIX_STRING);
    infos_put(&inside, PMIX_SPAWNED, &spawned, PMIX_BOOL);
    if (spawned) /* some callers query this of their process, some of their job */
        infos_put(&inside, PMIX_PARENT_ID, &proc->job->parent, PMIX_PROC);
    return true;
}

static pmix_status_t job_info_register(const struct host_job *job, const pmix_app_t *apps, size_t n_apps)
{
    const size_t room = MOST_JOB_INFOS + n_apps + job->n;
    struct infos infos = {.n = 0};
    char *ranks = ranks_text(job->n);
    pmix_status_t rc = PMIX_ERR_NOMEM;
    PMIX_INFO_CREATE(infos.at, room);
    if (infos.at == NULL || ranks == NULL)
        goto cleanup;
    put_job(&infos, job, n_apps, ranks);
    bool good = true;
    pmix_rank_t first = 0;
    for (uint32_t app = 0, rank = 0; good && app < n_apps; app++) {
        good = put_app(&infos, &apps[app], app, first);
        for (; good && rank < job->n && job->procs[rank].app == app; rank++)
            good = put_proc(&infos, &job->procs[rank], first);
        first = rank;
    }
    if (good)
        rc = PMIx_server_register_nspace(job->nspace, (int)job->n, infos.at, infos.n, NULL, NULL);
    if (rc == PMIX_OPERATION_SUCCEEDED)
        rc = PMIX_SUCCESS;
cleanup:
    if (infos.at != NULL)
        PMIX_INFO_FREE(infos.at, room);
    free(ranks);
    return rc;
}

/* ---- the start ---------------------------------------------------------------------------------- */

static struct host_job *job_new(const struct job_order *order, uint32_t n)
{
    struct host_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return NULL;
    job->procs = calloc(n, sizeof(*job->procs));
    job->patience = timer_new(jobs_base, job_on_impatience, job);
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

/* Register the job and each of its processes with the library, before one of them can connect. */
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

/* End the started processes of a job of which one could not be started. Such a job is not reported. */
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
        on_job_end(job); /* started processes may have published values */
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

pmix_status_t jobs_start(const struct job_order *order, pmix_nspace_t nspace)
{
    uint32_t n;
    pmix_status_t rc = no_more_jobs ? PMIX_ERR_NOT_AVAILABLE : job_count(order, &n);
    if (rc != PMIX_SUCCESS)
        return rc;
    struct host_job *job = job_new(order, n);
    if (job == NULL)
        return PMIX_ERR_NOMEM;
    rc = job_register(job, order);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < job->n; i++) {
        rc = process_start(jobs_base, &job->procs[i], order);
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
