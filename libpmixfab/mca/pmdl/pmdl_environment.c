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

#include "mca/library/shapes.h"
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

static unsigned env_of_job(const struct env_job *job, pmix_rank_t rank, bool forked, unsigned wanted,
                           char *const *env, struct fab_env_setting out[FAB_ENV_SETTINGS])
{
    uint32_t r = 0;
    while (r < job->here.n && job->here.ranks[r] != rank)
        r++;
    if (r == job->here.n)
        return 0;
    uint32_t device =
        forked && job->here.cpus[r] == NULL ? env_nearest_alone(job, r) : job->here.nearest[r].device;
    return fab_env_settings(job->content->fab, device, wanted, env, out);
}

/* Write our settings for a process with this environment. */
static unsigned env_ours(const pmix_proc_t *proc, unsigned wanted, char *const *env,
                         struct fab_env_setting out[FAB_ENV_SETTINGS])
{
    const bool forked = getpid() != pmix_globals.pid;
    unsigned n = 0;
    if (!forked)
        pthread_mutex_lock(&env_lock);
    for (const struct env_job *job = __atomic_load_n(&env_jobs, __ATOMIC_ACQUIRE); job != NULL;
         job = job->next)
        if (strncmp(job->nspace, proc->nspace, PMIX_MAX_NSLEN) == 0) {
            n = env_of_job(job, proc->rank, forked, wanted, env, out);
            break;
        }
    if (!forked)
        pthread_mutex_unlock(&env_lock);
    return n;
}

/* ---- whose value counts ----------------------------------------------------------------------------- */

/* The variables of the process that is about to be forked, before the library's components set them. */
static struct {
    bool noted;
    pmix_proc_t proc;
    char *values[FAB_ENV_VARIABLES]; /* NULL: not set */
} env_site;

/* Return the value of a variable; NULL: it is not set. */
static const char *env_value(char *const *env, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        if (strncmp(env[i], name, n) == 0 && (env[i][n] == '=' || env[i][n] == '\0'))
            return env[i] + n + (env[i][n] == '=');
    return NULL;
}

void pmdl_environment_note(const pmix_proc_t *proc, char *const *env)
{
    env_site.noted = true;
    env_site.proc = *proc;
    for (unsigned v = 0; v < FAB_ENV_VARIABLES; v++) {
        const char *value = env_value(env, fab_env_variable(v));
        free(env_site.values[v]);
        env_site.values[v] = value == NULL ? NULL : strdup(value);
    }
}

/* Return the environment without the variables that have an order. free() the array alone; NULL: no memory.
 */
static char **env_others(char *const *env)
{
    size_t n = 0, kept = 0;
    while (env != NULL && env[n] != NULL)
        n++;
    char **others = calloc(n + 1, sizeof(*others));
    for (size_t i = 0; others != NULL && i < n; i++) {
        char *one[] = {env[i], NULL};
        bool ordered = false;
        for (unsigned v = 0; v < FAB_ENV_VARIABLES; v++)
            ordered |= env_value(one, fab_env_variable(v)) != NULL;
        if (!ordered)
            others[kept++] = env[i];
    }
    return others;
}

static const char *env_setting(const struct fab_env_setting *settings, unsigned n, const char *name)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(settings[i].name, name) == 0)
            return settings[i].value;
    return NULL;
}

void pmdl_environment_set(const pmix_proc_t *proc, unsigned wanted,
                          const enum fab_env_from order[FAB_ENV_FROMS], char ***env)
{
    struct fab_env_setting ours[FAB_ENV_SETTINGS];
    const char *prefix = env_prefix(*env);
    const bool noted = env_site.noted && PMIX_CHECK_PROCID(&env_site.proc, proc);
    env_site.noted = false;
    if (*prefix != '\0') { /* the user's settings cannot be seen */
        const unsigned n = env_ours(proc, wanted, *env, ours);
        for (unsigned i = 0; i < n; i++) {
            char name[64];
            snprintf(name, sizeof(name), "%s%s", prefix, ours[i].name);
            (void)mca_setenv(name, ours[i].value, false, env);
        }
        return;
    }
    char **others = env_others(*env);
    const unsigned n = others == NULL || wanted == 0 ? 0 : env_ours(proc, wanted, others, ours);
    free(others);
    for (unsigned v = 0; v < FAB_ENV_VARIABLES; v++) {
        const char *name = fab_env_variable(v), *now = env_value(*env, name);
        const char *site = noted ? env_site.values[v] : now;
        const bool others_set = noted && now != NULL && (site == NULL || strcmp(now, site) != 0);
        const char *const values[FAB_ENV_FROMS] = {[FAB_ENV_SITE] = site,
                                                   [FAB_ENV_FABRICD] = env_setting(ours, n, name),
                                                   [FAB_ENV_LIBRARY] = others_set ? now : NULL};
        const char *chosen = fab_env_choose(order, values);
        if (chosen != NULL && (now == NULL || strcmp(chosen, now) != 0))
            (void)mca_setenv(name, chosen, true, env);
    }
}
