#include "fabricd/host/host_log.h"

#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/host/host_post.h"
#include "fabricd/host/job/jobs.h"
#include "fabricd/host/job/rank_output.h"
#include "pmix/relay/thread.h"

/* What is to be written is the library's until it is answered. */
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
        log_error("out of memory: what %s:%u wants logged is lost", client->nspace, client->rank);
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
    if (host_post(log_on_loop, l))
        return;
    log_error("out of memory: what %s:%u wants logged is lost", client->nspace, client->rank);
    free(l);
}
