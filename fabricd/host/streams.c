#include "fabricd/host/streams.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/host/host_post.h"
#include "fabricd/host/job/jobs.h"
#include "fabricd/host/job/rank_process.h"
#include "pmix/relay/thread.h"

/* ---- output ------------------------------------------------------------------------------------- */

struct pull {
    pmix_iof_channel_t channels;
    size_t n;
    pmix_proc_t procs[];
};

/* The library keeps who pulled, and picks of what it is given; it is given what somebody has asked for. */
static void streams_pull(void *arg)
{
    const struct pull *pull = arg;
    for (size_t i = 0; i < pull->n; i++) {
        struct host_job *job = jobs_find(pull->procs[i].nspace);
        if (job != NULL)
            job->pulled |= pull->channels;
    }
    free(arg);
}

static bool is_stop(const pmix_info_t directives[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&directives[i], PMIX_IOF_STOP))
            return true;
    return false;
}

/* 4.2.2 lets go of its record when this returns, so the answer cannot wait for the loop: who pulls of a job
 * that is not there hears nothing. */
pmix_status_t host_iof_pull(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t directives[],
                            size_t ndirs, pmix_iof_channel_t channels, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)cbfunc, (void)cbdata;
    if (is_stop(directives, ndirs)) /* the library has stopped by itself */
        return PMIX_OPERATION_SUCCEEDED;
    if (nprocs == 0)
        return PMIX_ERR_BAD_PARAM;
    struct pull *pull = malloc(sizeof(*pull) + nprocs * sizeof(*procs));
    if (pull == NULL)
        return PMIX_ERR_NOMEM;
    *pull = (struct pull){.channels = channels, .n = nprocs};
    memcpy(pull->procs, procs, nprocs * sizeof(*procs));
    if (host_post(streams_pull, pull))
        return PMIX_OPERATION_SUCCEEDED;
    free(pull);
    return PMIX_ERR_NOMEM;
}

/* ---- input -------------------------------------------------------------------------------------- */

/* What was asked for; the library keeps it until it has its answer. */
struct push {
    const pmix_proc_t *procs;
    size_t n;
    const pmix_byte_object_t *bytes; /* NULL: that was all */
    pmix_status_t status;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
};

/* A wildcard is whoever of the job reads what is pushed. */
static pmix_status_t streams_write(const pmix_proc_t *target, const pmix_byte_object_t *bytes)
{
    struct host_job *job = jobs_find(target->nspace);
    pmix_status_t status = job == NULL ? PMIX_ERR_NOT_FOUND : PMIX_ERR_NOT_AVAILABLE;
    for (uint32_t i = 0; job != NULL && i < job->n; i++) {
        if (target->rank != PMIX_RANK_WILDCARD && target->rank != i)
            continue;
        const pmix_status_t rc = bytes == NULL ? process_input(&job->procs[i], "", 0)
                                               : process_input(&job->procs[i], bytes->bytes, bytes->size);
        if (rc != PMIX_ERR_NOT_AVAILABLE)
            status = rc;
    }
    return status;
}

static void streams_on_pushed(pmix_status_t status, void *cbdata)
{
    struct push *push = cbdata;
    (void)status;
    push->cbfunc(push->status, push->cbdata);
    free(push);
}

static void streams_push(void *arg)
{
    struct push *push = arg;
    for (size_t i = 0; i < push->n; i++) {
        const pmix_status_t rc = streams_write(&push->procs[i], push->bytes);
        if (rc != PMIX_SUCCESS)
            push->status = rc;
    }
    fab_on_pmix_thread(streams_on_pushed, push);
}

pmix_status_t host_push_stdin(const pmix_proc_t *source, const pmix_proc_t targets[], size_t ntargets,
                              const pmix_info_t directives[], size_t ndirs, const pmix_byte_object_t *bo,
                              pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct push *push = malloc(sizeof(*push));
    (void)source, (void)directives, (void)ndirs;
    if (push == NULL)
        return PMIX_ERR_NOMEM;
    *push = (struct push){.procs = targets,
                          .n = ntargets,
                          .bytes = bo,
                          .status = ntargets == 0 ? PMIX_ERR_BAD_PARAM : PMIX_SUCCESS,
                          .cbfunc = cbfunc,
                          .cbdata = cbdata};
    if (host_post(streams_push, push))
        return PMIX_SUCCESS;
    free(push);
    return PMIX_ERR_NOMEM;
}
