#include "fabricd/host/marks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/log.h"
#include "fabricd/host/host_post.h"
#include "fabricd/host/job/jobs.h"
#include "fabricd/host/job/rank_process.h"
#include "pmix/relay/thread.h"

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
    if (host_post(mark_on_loop, mark))
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

/* ---- abort -------------------------------------------------------------------------------------- */

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

/* Whole namespaces end in order; single processes are killed, and what follows from that is their job's. */
static void abort_one(const pmix_proc_t *target)
{
    struct host_job *job = jobs_find(target->nspace);
    struct host_proc *proc = jobs_find_proc(target);
    if (job != NULL && target->rank == PMIX_RANK_WILDCARD)
        jobs_terminate(job);
    if (proc == NULL)
        return;
    proc->told = true;
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
    bool own = a->n == 0; /* else others' jobs are ended, and the caller's goes on */
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
    if (a->procs != NULL && host_post(abort_on_loop, a))
        return PMIX_SUCCESS;
    abortion_free(a);
    return PMIX_ERR_NOMEM;
}
