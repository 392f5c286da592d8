/* job_query.c - PMIx_Query_info for the host's own jobs. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric-host/host.h"
#include "fabric-host/job/jobs.h"
#include "fabricd/server/server_answers.h"
#include "pmix/answers/answers.h"
#include "pmix/relay/thread.h"

/* ---- answers ------------------------------------------------------------------------------------ */

/* For all jobs. */
static pmix_status_t query_namespaces(const struct host_job *none, pmix_value_t *value)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    (void)none;
    if (out == NULL)
        return PMIX_ERR_NOMEM;
    for (const struct host_job *job = jobs_first(); job != NULL; job = job->next)
        fprintf(out, "%s%s", job == jobs_first() ? "" : ",", job->nspace);
    if (fclose(out) != 0) {
        free(text);
        return PMIX_ERR_NOMEM;
    }
    value->type = PMIX_STRING;
    value->data.string = text;
    return PMIX_SUCCESS;
}

/* PMIX_SUCCESS while no process has failed. */
static pmix_status_t query_status(const struct host_job *job, pmix_value_t *value)
{
    value->type = PMIX_STATUS;
    value->data.status = job->status;
    return PMIX_SUCCESS;
}

static pmix_status_t query_size(const struct host_job *job, pmix_value_t *value)
{
    value->type = PMIX_UINT32;
    value->data.uint32 = job->n;
    return PMIX_SUCCESS;
}

/* For a script it is the interpreter; for an ended process there is none. */
static char *query_executable(pid_t pid)
{
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    const ssize_t n = pid == 0 ? -1 : readlink(link, path, sizeof(path));
    return n < 0 ? NULL : strndup(path, (size_t)n);
}

static pmix_status_t query_procs(const struct host_job *job, pmix_value_t *value)
{
    pmix_data_array_t *array;
    PMIX_DATA_ARRAY_CREATE(array, job->n, PMIX_PROC_INFO);
    if (array == NULL || array->array == NULL) {
        free(array);
        return PMIX_ERR_NOMEM;
    }
    pmix_proc_info_t *info = array->array;
    for (uint32_t i = 0; i < job->n; i++) {
        const struct host_proc *proc = &job->procs[i];
        PMIX_LOAD_PROCID(&info[i].proc, job->nspace, proc->rank);
        info[i].hostname = strdup(answer_host());
        info[i].executable_name = query_executable(proc->pid);
        info[i].pid = proc->pid;
        info[i].exit_code = proc->exit_code;
        info[i].state = proc->state;
    }
    value->type = PMIX_DATA_ARRAY;
    value->data.darray = array;
    return PMIX_SUCCESS;
}

/* ---- queries ------------------------------------------------------------------------------------ */

static const struct job_key {
    const char *key;
    bool all; /* it needs no job */
    pmix_status_t (*answer)(const struct host_job *job, pmix_value_t *value);
} job_keys[] = {
    {PMIX_QUERY_NAMESPACES, true, query_namespaces},
    {PMIX_QUERY_JOB_STATUS, false, query_status},
    {PMIX_QUERY_PROC_TABLE, false, query_procs},
    {PMIX_QUERY_LOCAL_PROC_TABLE, false, query_procs}, /* all processes are local */
    {PMIX_JOB_SIZE, false, query_size},
    {PMIX_LOCAL_SIZE, false, query_size},
};

static const struct job_key *query_find(const char *key)
{
    for (size_t i = 0; i < sizeof(job_keys) / sizeof(job_keys[0]); i++)
        if (strcmp(job_keys[i].key, key) == 0)
            return &job_keys[i];
    return NULL;
}

static pmix_status_t query_job(const pmix_query_t *query, const struct host_job **job)
{
    const char *nspace = NULL;
    for (size_t i = 0; i < query->nqual; i++) {
        const pmix_info_t *info = &query->qualifiers[i];
        if (PMIX_CHECK_KEY(info, PMIX_NSPACE) && info->value.type == PMIX_STRING)
            nspace = info->value.data.string;
        else if (PMIX_CHECK_KEY(info, PMIX_PROCID) && info->value.type == PMIX_PROC)
            nspace = info->value.data.proc == NULL ? NULL : info->value.data.proc->nspace;
    }
    if (nspace == NULL || nspace[0] == '\0')
        return PMIX_ERR_BAD_PARAM; /* the library does not identify the caller */
    *job = jobs_find(nspace);
    return *job == NULL ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS;
}

/* The library owns the queries until the answer. */
struct asked {
    const pmix_query_t *queries;
    size_t n, n_keys;
    struct fab_answered answer;
    pmix_info_cbfunc_t cbfunc;
    void *cbdata;
};

static void query_on_answered(pmix_status_t status, void *cbdata)
{
    struct asked *asked = cbdata;
    (void)status;
    fab_answer_send(&asked->answer, asked->cbfunc, asked->cbdata);
    free(asked);
}

static pmix_status_t query_one(const pmix_query_t *query, const char *key, pmix_info_t *out)
{
    const struct job_key *found = query_find(key);
    const struct host_job *job = NULL;
    pmix_status_t rc = found == NULL ? PMIX_ERR_NOT_FOUND
                       : found->all  ? PMIX_SUCCESS
                                     : query_job(query, &job);
    if (rc != PMIX_SUCCESS)
        return rc;
    PMIX_LOAD_KEY(out->key, key);
    return found->answer(job, &out->value);
}

static void query_on_loop(void *arg)
{
    struct asked *asked = arg;
    struct fab_answered *answer = &asked->answer;
    answer->info = calloc(asked->n_keys, sizeof(*answer->info));
    answer->allocated = answer->info == NULL ? 0 : asked->n_keys;
    answer->status = answer->info == NULL ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
    for (size_t i = 0; i < asked->n; i++) {
        char *const *keys = asked->queries[i].keys;
        for (size_t k = 0; answer->status == PMIX_SUCCESS && keys != NULL && keys[k] != NULL; k++)
            answer->status = query_one(&asked->queries[i], keys[k], &answer->info[answer->n++]);
    }
    fab_on_pmix_thread(query_on_answered, asked);
}

pmix_status_t host_query(pmix_proc_t *proc, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cbfunc,
                         void *cbdata)
{
    size_t n_keys = 0;
    bool about_jobs = false;
    for (size_t i = 0; i < n; i++)
        for (char **key = queries[i].keys; key != NULL && *key != NULL; key++, n_keys++)
            about_jobs |= query_find(*key) != NULL;
    if (!about_jobs)
        return answer_query(proc, queries, n, cbfunc, cbdata);
    if (n_keys > ANSWERS_MAX_LARGE)
        return PMIX_ERR_OUT_OF_RESOURCE;
    struct asked *asked = calloc(1, sizeof(*asked));
    if (asked == NULL)
        return PMIX_ERR_NOMEM;
    *asked = (struct asked){.queries = queries, .n = n, .n_keys = n_keys, .cbfunc = cbfunc, .cbdata = cbdata};
    if (jobs_post(query_on_loop, asked))
        return PMIX_SUCCESS;
    free(asked);
    return PMIX_ERR_NOMEM;
}
