#include "fabricd/host/host_control.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/host/host_post.h"
#include "fabricd/host/job/jobs.h"
#include "fabricd/host/job/rank_process.h"
#include "pmix/relay/thread.h"

/* What was asked for; the library keeps targets and directives until it has its answer. */
struct control {
    pmix_proc_t own; /* the requestor's job: where no target is named */
    const pmix_proc_t *targets;
    size_t n;
    const pmix_info_t *directives;
    size_t n_directives;
    pmix_status_t status;
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

/* ---- directives --------------------------------------------------------------------------------- */

enum control_act { CONTROL_NOTHING, CONTROL_SIGNAL, CONTROL_TERMINATE, CONTROL_KILL };

/* Which of them it is, and its signal; an error: it is one that this host does not do, or a wrong number. */
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
    /* A name for the request, by which nobody needs to cancel what is done at once. */
    if (PMIX_CHECK_KEY(info, PMIX_JOB_CTRL_ID))
        return PMIX_SUCCESS;
    return strncmp(info->key, "pmix.jctrl.", 11) == 0 || PMIX_INFO_IS_REQUIRED(info) ? PMIX_ERR_NOT_SUPPORTED
                                                                                     : PMIX_SUCCESS;
}

/* Nothing is done unless all of it can be. */
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

/* ---- on the loop -------------------------------------------------------------------------------- */

/* All of a job; its end is then not one of a process that failed by itself. */
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
    proc->told |= act != CONTROL_SIGNAL;
    process_signal(proc, signo);
    if (act == CONTROL_TERMINATE)
        process_signal(proc, SIGCONT); /* one that is stopped hears nothing else */
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

/* ---- on the library's thread -------------------------------------------------------------------- */

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
    if (host_post(control_on_loop, control))
        return PMIX_SUCCESS;
    free(control);
    return PMIX_ERR_NOMEM;
}
