/*
 * pmdl_component.c - the PMIx component pmdl/fabricd: the processes of a job have the fabric's data at their
 * start, with any launcher.
 *
 * Function and reasons: docs/design/component.md. It never makes a launch fail: every hook returns
 * PMIX_SUCCESS.
 */
#include "mca/pmdl/pmdl_component.h"

#include <string.h>

#include <pmix_version.h>
#include <src/event/pmix_event.h>
#include <src/include/pmix_globals.h>
#include <src/mca/mca.h>
#include <src/server/pmix_server_ops.h>

#include "mca/job/job.h"
#include "mca/library/library.h"
#include "mca/library/shapes.h"
#include "mca/pmdl/news.h"
#include "mca/pmdl/own.h"
#include "mca/pmdl/pmdl_environment.h"
#include "mca/pmdl/slots.h"
#include "place/environment.h"
#include "pmix/rundir/snapshots.h"
#include "topo/base/library_log.h"

#define DEFAULT_RUNDIR "/run/fabricd"

struct pmdl_settings pmdl_settings;
static struct rundir_snapshots *snapshots;
static unsigned wanted_env; /* enum fab_env */
static enum fab_env_from env_order[FAB_ENV_FROMS];
static pmix_event_t start;

static bool pmdl_fits(void)
{
    return mca_same_library("pmdl", MCA_BUILT_FOR);
}

static void pmdl_on_log(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)level, (void)cbdata;
    pmdl_say("%s", line);
}

/* ---- hooks ------------------------------------------------------------------------------------------ */

static void pmdl_watch(void)
{
    if (!pmdl_news_start(snapshots, pmdl_settings.rundir))
        pmdl_say("%s cannot be watched: changes are not announced", pmdl_settings.rundir);
}

/* On the library's thread, until its initialization is over. */
static void pmdl_on_start(int fd, short what, void *arg)
{
    const struct timeval soon = {.tv_usec = 1000};
    (void)fd, (void)what, (void)arg;
    if (mca_library_is_up())
        pmdl_watch();
    else
        pmix_event_evtimer_add(&start, &soon);
}

/*
 * A scheduler's own process has its data when its initialization is over; changes are watched from then on.
 */
static void pmdl_start_own(void)
{
    pmdl_own_put(snapshots);
    pmix_event_evtimer_set(pmix_globals.evbase, &start, pmdl_on_start, NULL);
    pmdl_on_start(-1, 0, NULL);
}

static pmix_status_t pmdl_init(void)
{
    if (snapshots == NULL && rundir_snapshots_new(pmdl_settings.rundir, &snapshots) != PMIXFAB_OK) {
        pmdl_say("no run directory is set, or no memory: declined");
        return PMIX_ERR_NOT_AVAILABLE;
    }
    if (fab_env_parse(pmdl_settings.env, &wanted_env) != PMIXFAB_OK)
        pmdl_say("env = %s: a word is none of " FAB_ENV_WORDS ": it and the rest are ignored",
                 pmdl_settings.env);
    if (fab_env_order_parse(pmdl_settings.env_order, env_order) != PMIXFAB_OK)
        pmdl_say("env_order = %s: a word is twice, or not site, fabricd or library: it and the rest are "
                 "ignored",
                 pmdl_settings.env_order);
    pmixfab_set_log(pmdl_on_log, NULL);
    pmdl_slots_take(snapshots, pmdl_settings.fabric, pmdl_settings.query, false);
    if (pmdl_settings.query && pmix_host_server.fabric == NULL && PMIX_PEER_IS_SCHEDULER(pmix_globals.mypeer))
        pmdl_start_own();
    return PMIX_SUCCESS;
}

static void pmdl_finalize(void)
{
    pmdl_slots_give_back();
    pmdl_news_stop();
    pmdl_environment_forget(NULL);
    rundir_snapshots_free(snapshots);
    snapshots = NULL;
    pmixfab_set_log(NULL, NULL);
}

static void pmdl_say_line(const char *line)
{
    pmdl_say("%s", line);
}

static void pmdl_tell(pmix_namespace_t *job)
{
    struct rundir_planes planes;
    struct fab_job_here here = {0};
    struct fab_launch_told told = {.plane = UINT32_MAX};
    struct fab_err err = {""};
    rundir_planes_get(snapshots, &planes, &err);
    if (planes.n > 0)
        mca_job_tell(job, planes.planes, planes.n, strcmp(pmdl_settings.coordinates, "standard") == 0, &here,
                     &told, pmdl_say_line);
    else
        pmdl_say("%s: no launch information is set: %s", job->nspace, err.text);
    if (wanted_env != 0 && told.plane != UINT32_MAX)
        pmdl_environment_keep(job->nspace, &planes, told.plane, told.host, &here);
    fab_job_here_free(&here);
    rundir_planes_put(&planes);
}

static pmix_status_t pmdl_register_nspace(pmix_namespace_t *job)
{
    if (snapshots == NULL)
        return PMIX_SUCCESS;
    if (pmdl_settings.launch)
        pmdl_tell(job);
    if (job->nlocalprocs > 0)
        pmdl_slots_take(snapshots, pmdl_settings.fabric, pmdl_settings.query, true);
    if (pmdl_slots_have_fabric())
        pmdl_watch();
    return PMIX_SUCCESS;
}

/* Without priors: from our component pnet, before the library's components set variables. */
static pmix_status_t pmdl_setup_fork(const pmix_proc_t *proc, char ***env, char ***priors)
{
    if (wanted_env == 0 && (pmdl_settings.env_order == NULL || pmdl_settings.env_order[0] == '\0'))
        return PMIX_SUCCESS;
    if (priors == NULL)
        pmdl_environment_note(proc, *env);
    else
        pmdl_environment_set(proc, wanted_env, env_order, env);
    return PMIX_SUCCESS;
}

static void pmdl_deregister_nspace(pmix_namespace_t *job)
{
    pmdl_environment_forget(job->nspace);
}

static pmix_pmdl_module_t pmdl_module = {
    .name = "fabricd",
    .init = pmdl_init,
    .finalize = pmdl_finalize,
    .register_nspace = pmdl_register_nspace,
    .setup_fork = pmdl_setup_fork,
    .deregister_nspace = pmdl_deregister_nspace,
};

/* ---- entry points of the library ---------------------------------------------------------------------- */

static void pmdl_parameter(const char *name, const char *what, pmix_mca_base_var_type_t type, void *storage)
{
    mca_parameter("pmdl", name, what, type, storage);
}

static int pmdl_register_parameters(void)
{
    if (!pmdl_fits())
        return PMIX_ERR_NOT_AVAILABLE;
    pmdl_settings = (struct pmdl_settings){.rundir = DEFAULT_RUNDIR,
                                           .coordinates = "single",
                                           .env = NULL,
                                           .env_order = NULL,
                                           .launch = true,
                                           .fabric = true,
                                           .query = true};
    pmdl_parameter("rundir", "Run directory of the fabricd on this host", PMIX_MCA_BASE_VAR_TYPE_STRING,
                   &pmdl_settings.rundir);
    pmdl_parameter("coordinates",
                   "PMIX_FABRIC_COORDINATES in the jobs' information: \"single\", one pmix_coord_t of three "
                   "numbers, or \"standard\", an array of pmix_geometry_t",
                   PMIX_MCA_BASE_VAR_TYPE_STRING, &pmdl_settings.coordinates);
    pmdl_parameter("env",
                   "Libraries whose environment variables name the nearest device of each local process: a "
                   "list of " FAB_ENV_WORDS,
                   PMIX_MCA_BASE_VAR_TYPE_STRING, &pmdl_settings.env);
    pmdl_parameter(
        "env_order",
        "Whose value of such a variable a process gets, a list: \"site\" (its environment before), "
        "\"fabricd\", \"library\" (PMIx 7, for processes that are mapped to devices); default: this "
        "order",
        PMIX_MCA_BASE_VAR_TYPE_STRING, &pmdl_settings.env_order);
    pmdl_parameter("launch", "Add the fabric to the information of each job", PMIX_MCA_BASE_VAR_TYPE_BOOL,
                   &pmdl_settings.launch);
    pmdl_parameter("fabric",
                   "Answer the clients' PMIx_Fabric_register and _update, and announce changes to them, if "
                   "the host has no fabric function",
                   PMIX_MCA_BASE_VAR_TYPE_BOOL, &pmdl_settings.fabric);
    pmdl_parameter("query", "Answer queries for the fabric's keys, if the host has no fabric function",
                   PMIX_MCA_BASE_VAR_TYPE_BOOL, &pmdl_settings.query);
    return PMIX_SUCCESS;
}

static int pmdl_query(pmix_mca_base_module_t **module, int *priority)
{
    *module = NULL;
    *priority = 5;
    if (!pmdl_fits() || !PMIX_PEER_IS_SERVER(pmix_globals.mypeer))
        return PMIX_ERROR;
    *module = (pmix_mca_base_module_t *)&pmdl_module;
    return PMIX_SUCCESS;
}

MCA_COMPONENT(pmdl, pmdl_query, pmdl_register_parameters);
