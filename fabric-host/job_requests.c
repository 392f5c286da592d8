/*
 * job_requests.c - handle requests of programs and tools to start, signal and end jobs. Also handle
 * notifications of the library's thread about their processes.
 */
#include <pmix.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fabric-host/host.h"
#include "fabric-host/job/jobs.h"
#include "fabricd/base/log.h"
#include "pmix/relay/thread.h"

/* ---- PMIx_Spawn ------------------------------------------------------------------------------------- */

/* A request; the library keeps infos and applications until its answer. */
struct spawning {
    pmix_proc_t caller;
    const pmix_info_t *info;
    size_t n_info;
    /* a copy, with the working directories from the directives; all else belongs to the library */
    pmix_app_t *apps;
    size_t n_apps;
    pmix_status_t status;
    pmix_nspace_t nspace;
    pmix_spawn_cbfunc_t cbfunc;
    void *cbdata;
};

static const char *spawn_folder(const pmix_info_t *info, size_t n, const char *folder)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_WDIR) && info[i].value.type == PMIX_STRING)
            folder = info[i].value.data.string;
    return folder;
}

/* Return the channel that this directive forwards to the spawner. */
static pmix_iof_channel_t spawn_channel(const pmix_info_t *info)
{
    return PMIX_CHECK_KEY(info, PMIX_FWD_STDOUT)   ? PMIX_FWD_STDOUT_CHANNEL
           : PMIX_CHECK_KEY(info, PMIX_FWD_STDERR) ? PMIX_FWD_STDERR_CHANNEL
                                                   : PMIX_FWD_NO_CHANNELS;
}

/* Return whether the key is known otherwise: the library handles it, or it always holds. */
static bool spawn_is_known(const pmix_info_t *info)
{
    static const char *const keys[] = {PMIX_NOTIFY_COMPLETION, PMIX_SETUP_APP_ENVARS, PMIX_FWD_STDDIAG,
                                       PMIX_WDIR};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (PMIX_CHECK_KEY(info, keys[i]))
            return true;
    return variables_is_directive(info);
}

/* Read PMIX_STDIN_TGT: one rank, or all. Applications give a rank or a process. */
static bool spawn_target(const pmix_info_t *info, pmix_rank_t *out)
{
    if (info->value.type == PMIX_PROC_RANK)
        *out = info->value.data.rank;
    else if (info->value.type == PMIX_PROC && info->value.data.proc != NULL)
        *out = info->value.data.proc->rank;
    else
        return false;
    return true;
}

static pmix_status_t spawn_direct(struct job_order *order, const pmix_info_t *info)
{
    if (spawn_channel(info) != PMIX_FWD_NO_CHANNELS) {
        if (!PMIX_INFO_TRUE(info))
            order->away &= (pmix_iof_channel_t)~spawn_channel(info);
    } else if (PMIX_CHECK_KEY(info, PMIX_FWD_STDIN)) {
        if (PMIX_INFO_TRUE(info) && order->input_to == PMIX_RANK_INVALID)
            order->input_to = 0;
    } else if (PMIX_CHECK_KEY(info, PMIX_STDIN_TGT)) {
        return spawn_target(info, &order->input_to) ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM;
    } else if (PMIX_CHECK_KEY(info, PMIX_IOF_TAG_OUTPUT) || PMIX_CHECK_KEY(info, PMIX_TAG_OUTPUT)) {
        order->tagged = PMIX_INFO_TRUE(info);
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_RECOVERABLE)) {
        order->recoverable = PMIX_INFO_TRUE(info);
    } else if (PMIX_CHECK_KEY(info, PMIX_PARENT_ID)) {
        if (info->value.type != PMIX_PROC || info->value.data.proc == NULL)
            return PMIX_ERR_BAD_PARAM;
        order->parent = info->value.data.proc;
    } else if (!spawn_is_known(info) && PMIX_INFO_IS_REQUIRED(info)) {
        return PMIX_ERR_NOT_SUPPORTED;
    }
    return PMIX_SUCCESS;
}

/* Read an application's own directives: its working directory and its environment. */
static pmix_status_t spawn_app(const struct spawning *s, pmix_app_t *app)
{
    app->cwd = (char *)spawn_folder(s->info, s->n_info, app->cwd);
    app->cwd = (char *)spawn_folder(app->info, app->ninfo, app->cwd);
    for (size_t i = 0; i < app->ninfo; i++)
        if (!spawn_is_known(&app->info[i]) && PMIX_INFO_IS_REQUIRED(&app->info[i]))
            return PMIX_ERR_NOT_SUPPORTED;
    return PMIX_SUCCESS;
}

static void spawn_free(struct spawning *s)
{
    free(s->apps);
    free(s);
}

static void spawn_on_answer(pmix_status_t status, void *cbdata)
{
    struct spawning *s = cbdata;
    (void)status;
    s->cbfunc(s->status, s->status == PMIX_SUCCESS ? s->nspace : NULL, s->cbdata);
    spawn_free(s);
}

static void spawn_on_loop(void *arg)
{
    struct spawning *s = arg;
    struct job_order order = {.apps = s->apps,
                              .n_apps = s->n_apps,
                              .info = s->info,
                              .n_info = s->n_info,
                              .parent = &s->caller,
                              .input_to = PMIX_RANK_INVALID};
    /*
     * A tool with a directive gets all output that it does not refuse, and its library writes the output.
     * The library of a program would discard the output.
     */
    if (s->n_info > 0 && jobs_find(s->caller.nspace) == NULL)
        order.away = PMIX_FWD_STDOUT_CHANNEL | PMIX_FWD_STDERR_CHANNEL;
    s->status = PMIX_SUCCESS;
    for (size_t i = 0; s->status == PMIX_SUCCESS && i < s->n_info; i++)
        s->status = spawn_direct(&order, &s->info[i]);
    for (size_t i = 0; s->status == PMIX_SUCCESS && i < s->n_apps; i++)
        s->status = spawn_app(s, &s->apps[i]);
    if (s->status == PMIX_SUCCESS)
        s->status = jobs_start(&order, s->nspace);
    fab_on_pmix_thread(spawn_on_answer, s);
}

pmix_status_t host_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                         const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc, void *cbdata)
{
    struct spawning *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return PMIX_ERR_NOMEM;
    *s = (struct spawning){
        .caller = *proc, .info = info, .n_info = ninfo, .n_apps = napps, .cbfunc = cbfunc, .cbdata = cbdata};
    s->apps = calloc(napps + 1, sizeof(*s->apps));
    if (s->apps != NULL && napps > 0)
        memcpy(s->apps, apps, napps * sizeof(*apps));
    if (s->apps != NULL && jobs_post(spawn_on_loop, s))
        return PMIX_SUCCESS;
    spawn_free(s);
    return PMIX_ERR_NOMEM;
}

/* ---- PMIx_Job_control: a request is done as a whole, or not at all ---------------------------------- */

/* A request; the library keeps targets and directives until its answer. */
struct control {
    pmix_proc_t own; /* the requestor's job: the default target */
    const pmix_proc_t *targets;
    size_t n;
    const pmix_info_t *directives;
    size_t n_directives;
    pmix_status_t status;
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

enum control_act { CONTROL_NOTHING, CONTROL_SIGNAL, CONTROL_TERMINATE, CONTROL_KILL };

/* Read the action and its signal. Error: this host does not support it, or the number is invalid. */
static pmix_status_t control_read(const pmix_info_t *info, enum control_act *act, int *signo)
{
    static const struct {
        const char *key;
        enum control_act act;
        int signo;
    } known[] = {{PMIX_JOB_CTRL_PAUSE, CONTROL_SIGNAL, SIGSTOP},
                 {PMIX_JOB_CTRL_RESUME, CONTROL_SIGNAL, SIGCONT},
                 {PMIX_JOB_CTRL_TERMINATE, CONTROL_TERMINATE, SIGTERM},
                 {PMIX_JOB_CTRL_KILL, CONTROL_KILL, SIGKILL}};
    *act = CONTROL_NOTHING;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (PMIX_CHECK_KEY(info, known[i].key)) {
            *act = PMIX_INFO_TRUE(info) ? known[i].act : CONTROL_NOTHING;
            *signo = known[i].signo;
            return PMIX_SUCCESS;
        }
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_SIGNAL)) {
        *act = CONTROL_SIGNAL;
        *signo = info->value.type == PMIX_INT ? info->value.data.integer : 0;
        return *signo > 0 && *signo <= SIGRTMAX ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM;
    }
    /* An id for later cancellation, which is not needed: requests are done at once. */
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_ID))
        return PMIX_SUCCESS;
    return strncmp(info->key, "pmix.jctrl.", 11) == 0 || PMIX_INFO_IS_REQUIRED(info) ? PMIX_ERR_NOT_SUPPORTED
                                                                                     : PMIX_SUCCESS;
}

/* Check the whole request before anything is done. */
static pmix_status_t control_check(const struct control *control)
{
    bool any = false;
    for (size_t i = 0; i < control->n_directives; i++) {
        enum control_act act;
        int signo;
        const pmix_status_t status = control_read(&control->directives[i], &act, &signo);
        if (status != PMIX_SUCCESS)
            return status;
        any |= act != CONTROL_NOTHING;
    }
    if (!any)
        return PMIX_ERR_NOT_SUPPORTED;
    for (size_t i = 0; i < control->n; i++) {
        const pmix_proc_t *target = &control->targets[i];
        if (target->rank == PMIX_RANK_WILDCARD ? jobs_find(target->nspace) == NULL
                                               : jobs_find_proc(target) == NULL)
            return PMIX_ERR_NOT_FOUND;
    }
    return PMIX_SUCCESS;
}

/* Apply to a whole job; its end then does not count as the failure of a process. */
static void control_job(struct host_job *job, enum control_act act, int signo)
{
    if (act == CONTROL_TERMINATE)
        jobs_terminate(job);
    else if (act == CONTROL_KILL)
        jobs_kill(job);
    else
        for (uint32_t i = 0; i < job->n; i++)
            process_signal(&job->procs[i], signo);
}

static void control_one(const pmix_proc_t *target, enum control_act act, int signo)
{
    if (target->rank == PMIX_RANK_WILDCARD) {
        control_job(jobs_find(target->nspace), act, signo);
        return;
    }
    struct host_proc *proc = jobs_find_proc(target);
    proc->ending |= act != CONTROL_SIGNAL;
    process_signal(proc, signo);
    if (act == CONTROL_TERMINATE)
        process_signal(proc, SIGCONT); /* a stopped process handles no other signal */
}

static void control_on_answer(pmix_status_t status, void *cbdata)
{
    struct control *control = cbdata;
    (void)status;
    control->cbfunc(control->status, NULL, 0, control->cbdata, NULL, NULL);
    free(control);
}

static void control_on_loop(void *arg)
{
    struct control *control = arg;
    if (control->n == 0) {
        control->targets = &control->own;
        control->n = 1;
    }
    control->status = control_check(control);
    for (size_t i = 0; control->status == PMIX_SUCCESS && i < control->n_directives; i++) {
        enum control_act act;
        int signo;
        control_read(&control->directives[i], &act, &signo);
        for (size_t k = 0; act != CONTROL_NOTHING && k < control->n; k++)
            control_one(&control->targets[k], act, signo);
    }
    fab_on_pmix_thread(control_on_answer, control);
}

pmix_status_t host_job_control(const pmix_proc_t *requestor, const pmix_proc_t targets[], size_t ntargets,
                               const pmix_info_t directives[], size_t ndirs, pmix_info_cbfunc_t cbfunc,
                               void *cbdata)
{
    struct control *control = malloc(sizeof(*control));
    if (control == NULL)
        return PMIX_ERR_NOMEM;
    *control = (struct control){.targets = targets,
                                .n = ntargets,
                                .directives = directives,
                                .n_directives = ndirs,
                                .cbfunc = cbfunc,
                                .cbdata = cbdata};
    PMIX_LOAD_PROCID(&control->own, requestor->nspace, PMIX_RANK_WILDCARD);
    if (jobs_post(control_on_loop, control))
        return PMIX_SUCCESS;
    free(control);
    return PMIX_ERR_NOMEM;
}

/* ---- connected, finalized ----------------------------------------------------------------------- */

struct mark {
    pmix_proc_t proc;
    bool finalized;
};

static void mark_on_loop(void *arg)
{
    const struct mark *mark = arg;
    struct host_proc *proc = jobs_find_proc(&mark->proc);
    if (proc != NULL) {
        proc->connected = true;
        proc->finalized = mark->finalized;
        if (proc->pid != 0)
            proc->state = PMIX_PROC_STATE_CONNECTED;
    }
    free(arg);
}

static pmix_status_t mark_post(const pmix_proc_t *proc, bool finalized)
{
    struct mark *mark = malloc(sizeof(*mark));
    if (mark == NULL)
        return PMIX_ERR_NOMEM;
    *mark = (struct mark){*proc, finalized};
    if (jobs_post(mark_on_loop, mark))
        return PMIX_OPERATION_SUCCEEDED;
    free(mark);
    return PMIX_ERR_NOMEM;
}

pmix_status_t host_client_connected(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t n,
                                    pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)object, (void)info, (void)n, (void)cbfunc, (void)cbdata;
    return mark_post(proc, false);
}

pmix_status_t host_client_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t cbfunc,
                                    void *cbdata)
{
    (void)object, (void)cbfunc, (void)cbdata;
    return mark_post(proc, true);
}

/* ---- PMIx_Abort -------------------------------------------------------------------------------------- */

struct abortion {
    pmix_proc_t caller;
    int status;
    char *message;
    pmix_proc_t *procs; /* n 0: all of the caller's namespace */
    size_t n;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
};

static void abortion_free(struct abortion *a)
{
    free(a->message);
    free(a->procs);
    free(a);
}

static void abort_on_done(pmix_status_t status, void *cbdata)
{
    struct abortion *a = cbdata;
    (void)status;
    a->cbfunc(PMIX_SUCCESS, a->cbdata);
    abortion_free(a);
}

/* Whole namespaces end in order; single processes are killed, and their job handles the failure. */
static void abort_one(const pmix_proc_t *target)
{
    struct host_job *job = jobs_find(target->nspace);
    struct host_proc *proc = jobs_find_proc(target);
    if (job != NULL && target->rank == PMIX_RANK_WILDCARD)
        jobs_terminate(job);
    if (proc == NULL)
        return;
    proc->ending = true;
    process_signal(proc, SIGKILL);
}

static void abort_on_loop(void *arg)
{
    struct abortion *a = arg;
    struct host_proc *caller = jobs_find_proc(&a->caller);
    pmix_proc_t all;
    log_warning("%s:%u aborts with status %d%s%s", a->caller.nspace, a->caller.rank, a->status,
                a->message == NULL ? "" : ": ", a->message == NULL ? "" : a->message);
    if (caller != NULL && caller->job->failed == PMIX_RANK_UNDEF) {
        caller->job->failed = a->caller.rank;
        caller->job->status = PMIX_ERR_JOB_ABORTED;
        caller->job->exit_code = a->status == 0 ? 1 : a->status;
    }
    PMIX_LOAD_PROCID(&all, a->caller.nspace, PMIX_RANK_WILDCARD);
    bool own = a->n == 0; /* otherwise other jobs are ended, and the caller's continues */
    for (size_t i = 0; i < a->n; i++) {
        own |= strcmp(a->procs[i].nspace, a->caller.nspace) == 0;
        abort_one(&a->procs[i]);
    }
    if (caller != NULL)
        caller->aborted |= own;
    if (a->n == 0)
        abort_one(&all);
    fab_on_pmix_thread(abort_on_done, a);
}

pmix_status_t host_abort(const pmix_proc_t *proc, void *object, int status, const char msg[],
                         pmix_proc_t procs[], size_t nprocs, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct abortion *a = calloc(1, sizeof(*a));
    (void)object;
    if (a == NULL)
        return PMIX_ERR_NOMEM;
    *a =
        (struct abortion){.caller = *proc, .status = status, .n = nprocs, .cbfunc = cbfunc, .cbdata = cbdata};
    a->message = msg == NULL ? NULL : strdup(msg);
    a->procs = calloc(nprocs + 1, sizeof(*a->procs));
    if (a->procs != NULL && nprocs > 0)
        memcpy(a->procs, procs, nprocs * sizeof(*procs));
    if (a->procs != NULL && jobs_post(abort_on_loop, a))
        return PMIX_SUCCESS;
    abortion_free(a);
    return PMIX_ERR_NOMEM;
}
