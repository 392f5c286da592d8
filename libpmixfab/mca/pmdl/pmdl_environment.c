#include "mca/pmdl/pmdl_environment.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/util/pmix_environ.h>

#include "place/environment.h"
#include "topo/base/cpus.h"

struct env_job {
    struct env_job *next;
    struct rundir_content *content;
    struct rundir_snapshots *snapshots;
    uint32_t host;
    struct fab_job_here here;
    pmix_nspace_t nspace;
};

/* For the host's threads. A forked child takes no lock, and each change of the list is a single store. */
static pthread_mutex_t env_lock = PTHREAD_MUTEX_INITIALIZER;
static struct env_job *env_jobs;

void pmdl_environment_keep(const char *nspace, struct rundir_planes *planes, uint32_t plane, uint32_t host,
                           struct fab_job_here *here)
{
    struct env_job *job = calloc(1, sizeof(*job));
    struct rundir_content *content = job == NULL ? NULL : rundir_planes_pin(planes, plane);
    if (content == NULL) {
        free(job);
        return;
    }
    *job = (struct env_job){.content = content, .snapshots = planes->of, .host = host, .here = *here};
    *here = (struct fab_job_here){0};
    PMIX_LOAD_NSPACE(job->nspace, nspace);
    pthread_mutex_lock(&env_lock);
    job->next = env_jobs;
    __atomic_store_n(&env_jobs, job, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&env_lock);
}

void pmdl_environment_forget(const char *nspace)
{
    struct env_job *gone = NULL, **at = &env_jobs;
    pthread_mutex_lock(&env_lock);
    while (*at != NULL) {
        struct env_job *job = *at;
        if (nspace != NULL && strncmp(job->nspace, nspace, PMIX_MAX_NSLEN) != 0) {
            at = &job->next;
            continue;
        }
        __atomic_store_n(at, job->next, __ATOMIC_RELEASE);
        job->next = gone;
        gone = job;
    }
    pthread_mutex_unlock(&env_lock);
    while (gone != NULL) {
        struct env_job *job = gone;
        gone = job->next;
        rundir_snapshots_unpin(job->snapshots, job->content);
        fab_job_here_free(&job->here);
        free(job);
    }
}

/* Return the binding of this process as a list. */
static const char *env_own_mask(char *text, size_t size)
{
    cpu_set_t sets[FAB_CPUS_MAX / CPU_SETSIZE];
    struct fab_cpus cpus = {{0}};
    if (sched_getaffinity(0, sizeof(sets), sets) != 0)
        return NULL;
    for (unsigned cpu = 0; cpu < FAB_CPUS_MAX; cpu++)
        if (CPU_ISSET_S(cpu, sizeof(sets), sets))
            fab_cpus_add(&cpus, cpu);
    return fab_cpus_text(&cpus, text, size) ? text : NULL;
}

/* Choose for a single process whose place among the others was unknown before. */
static uint32_t env_nearest_alone(const struct env_job *job, uint32_t local_rank)
{
    char text[4096];
    struct pmixfab_nearest nearest;
    const char *mask = env_own_mask(text, sizeof(text));
    if (mask == NULL ||
        pmixfab_nearest(job->content->fab, job->host, local_rank, &mask, 1, &nearest) != PMIXFAB_OK)
        return job->here.nearest[local_rank].device;
    return nearest.device;
}

/*
 * Slurm passes an environment without the user's, and then lets the result override the user's. The user's
 * settings cannot be seen there, so the names get a prefix of ours.
 */
static const char *env_prefix(char *const *env)
{
    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        if (strncmp(env[i], "PATH=", 5) == 0)
            return "";
    return "FABRICD_";
}

static void env_set_of(const struct env_job *job, pmix_rank_t rank, bool forked, unsigned wanted, char ***env)
{
    struct fab_env_setting settings[FAB_ENV_SETTINGS];
    char name[64];
    uint32_t r = 0;
    while (r < job->here.n && job->here.ranks[r] != rank)
        r++;
    if (r == job->here.n)
        return;
    uint32_t device =
        forked && job->here.cpus[r] == NULL ? env_nearest_alone(job, r) : job->here.nearest[r].device;
    unsigned n = fab_env_settings(job->content->fab, device, wanted, *env, settings);
    const char *prefix = env_prefix(*env);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s%s", prefix, settings[i].name);
        (void)pmix_setenv(name, settings[i].value, false, env);
    }
}

void pmdl_environment_set(const pmix_proc_t *proc, unsigned wanted, char ***env)
{
    const bool forked = getpid() != pmix_globals.pid;
    if (!forked)
        pthread_mutex_lock(&env_lock);
    for (const struct env_job *job = __atomic_load_n(&env_jobs, __ATOMIC_ACQUIRE); job != NULL;
         job = job->next)
        if (strncmp(job->nspace, proc->nspace, PMIX_MAX_NSLEN) == 0) {
            env_set_of(job, proc->rank, forked, wanted, env);
            break;
        }
    if (!forked)
        pthread_mutex_unlock(&env_lock);
}
