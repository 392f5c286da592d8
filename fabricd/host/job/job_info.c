#include "fabricd/host/job/job_info.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/server/server.h"
#include "fabricd/server/server_answers.h"

#define MOST_JOB_INFOS 20

/* Infos being written one after the other. */
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

/* An array of infos as the value of one; it is filled by the caller. */
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

/* "0,1,2": all ranks are here. free() it. */
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
    infos_put(infos, PMIX_IOF_LOCAL_OUTPUT, &no, PMIX_BOOL); /* output.c writes, and not the library */
    if (job->parent.nspace[0] == '\0')
        return;
    infos_put(infos, PMIX_PARENT_ID, &job->parent, PMIX_PROC);
    infos_put(infos, PMIX_SPAWNED, &yes, PMIX_BOOL);
}

/* As one line; free() it. */
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
    if (spawned) /* some ask for their own, some for their job's */
        infos_put(&inside, PMIX_PARENT_ID, &proc->job->parent, PMIX_PROC);
    return true;
}

pmix_status_t job_info_register(const struct host_job *job, const pmix_app_t *apps, size_t n_apps)
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
