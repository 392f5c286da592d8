/* job_streams.c - forwarding of output, writing to standard input, and PMIx_Log. */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric-host/host.h"
#include "fabric-host/job/jobs.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "pmix/relay/thread.h"

/* ---- output ------------------------------------------------------------------------------------- */

struct pull {
    pmix_iof_channel_t channels;
    size_t n;
    pmix_proc_t procs[];
};

/* The library stores the pull requests and selects from the output that it gets; it gets only output that was
 * requested. */
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

/*
 * PMIx 4.2.2 frees its record when this returns, so the answer cannot wait for the loop. So a pull for an
 * unknown job gets no output and no error.
 */
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
    if (jobs_post(streams_pull, pull))
        return PMIX_OPERATION_SUCCEEDED;
    free(pull);
    return PMIX_ERR_NOMEM;
}

/* ---- input -------------------------------------------------------------------------------------- */

/* A request; the library keeps it until its answer. */
struct push {
    const pmix_proc_t *procs;
    size_t n;
    const pmix_byte_object_t *bytes; /* NULL: end of input */
    pmix_status_t status;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
};

/* A wildcard means the process of the job that reads pushed input. */
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
    if (jobs_post(streams_push, push))
        return PMIX_SUCCESS;
    free(push);
    return PMIX_ERR_NOMEM;
}

/* ---- PMIx_Log --------------------------------------------------------------------------------------- */

/* The library owns the data until the answer. */
struct logging {
    pmix_proc_t source;
    const pmix_info_t *data;
    size_t n;
    bool tagged, timed, once;
    time_t time;
    pmix_status_t status;
    pmix_op_cbfunc_t cbfunc;
    void *cbdata;
};

static void log_on_answer(pmix_status_t status, void *cbdata)
{
    struct logging *l = cbdata;
    (void)status;
    l->cbfunc(l->status, l->cbdata);
    free(l);
}

static pmix_status_t log_text(const struct logging *l, pmix_iof_channel_t channel, const char *text)
{
    struct host_proc *proc = jobs_find_proc(&l->source);
    char *line = NULL, stamp[32] = "";
    size_t size = 0;
    struct tm tm;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL)
        return PMIX_ERR_NOMEM;
    if (l->timed && localtime_r(&l->time, &tm) != NULL)
        strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S ", &tm);
    fputs(stamp, out);
    if (l->tagged && (proc == NULL || !proc->job->tagged))
        fprintf(out, "[%s,%u]<%s>: ", l->source.nspace, l->source.rank,
                channel == PMIX_FWD_STDERR_CHANNEL ? "stderr" : "stdout");
    fprintf(out, "%s%s", text, text[0] != '\0' && text[strlen(text) - 1] == '\n' ? "" : "\n");
    const pmix_status_t rc = fclose(out) == 0 ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
    if (rc == PMIX_SUCCESS)
        output_text(proc, channel, line, size);
    free(line);
    return rc;
}

static pmix_status_t log_one(const struct logging *l, const pmix_info_t *info)
{
    const bool out = PMIX_CHECK_KEY(info, PMIX_LOG_STDOUT);
    if (PMIX_CHECK_KEY(info, PMIX_LOG_SYSLOG) || PMIX_CHECK_KEY(info, PMIX_LOG_LOCAL_SYSLOG))
        return PMIX_SUCCESS; /* the library has done it */
    if (!out && !PMIX_CHECK_KEY(info, PMIX_LOG_STDERR))
        return PMIX_ERR_NOT_SUPPORTED;
    if (info->value.type != PMIX_STRING || info->value.data.string == NULL)
        return PMIX_ERR_BAD_PARAM;
    return log_text(l, out ? PMIX_FWD_STDOUT_CHANNEL : PMIX_FWD_STDERR_CHANNEL, info->value.data.string);
}

static void log_on_loop(void *arg)
{
    struct logging *l = arg;
    size_t done = 0;
    pmix_status_t failed = PMIX_SUCCESS;
    for (size_t i = 0; i < l->n && !(l->once && done > 0); i++) {
        const pmix_status_t rc = log_one(l, &l->data[i]);
        if (rc == PMIX_SUCCESS)
            done++;
        else
            failed = rc;
    }
    l->status = failed == PMIX_SUCCESS || (l->once && done > 0) ? PMIX_SUCCESS
                : done > 0                                      ? PMIX_ERR_PARTIAL_SUCCESS
                                                                : failed;
    fab_on_pmix_thread(log_on_answer, l);
}

void host_log(const pmix_proc_t *client, const pmix_info_t data[], size_t ndata,
              const pmix_info_t directives[], size_t ndirs, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct logging *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        log_error("out of memory: a log message of %s:%u is lost", client->nspace, client->rank);
        return;
    }
    *l = (struct logging){.source = *client,
                          .data = data,
                          .n = ndata,
                          .time = (time_t)(clock_now(CLOCK_REALTIME) / 1000000),
                          .cbfunc = cbfunc,
                          .cbdata = cbdata};
    for (size_t i = 0; i < ndirs; i++) {
        if (PMIX_CHECK_KEY(&directives[i], PMIX_LOG_TAG_OUTPUT))
            l->tagged = PMIX_INFO_TRUE(&directives[i]);
        else if (PMIX_CHECK_KEY(&directives[i], PMIX_LOG_TIMESTAMP_OUTPUT))
            l->timed = PMIX_INFO_TRUE(&directives[i]);
        else if (PMIX_CHECK_KEY(&directives[i], PMIX_LOG_ONCE))
            l->once = PMIX_INFO_TRUE(&directives[i]);
        else if (PMIX_CHECK_KEY(&directives[i], PMIX_LOG_TIMESTAMP) && directives[i].value.type == PMIX_TIME)
            l->time = directives[i].value.data.time;
    }
    if (jobs_post(log_on_loop, l))
        return;
    log_error("out of memory: a log message of %s:%u is lost", client->nspace, client->rank);
    free(l);
}
