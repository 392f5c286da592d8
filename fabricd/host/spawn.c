#include "fabricd/host/spawn.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/host/host_post.h"
#include "fabricd/host/job/jobs.h"
#include "fabricd/host/job/variables.h"
#include "pmix/relay/thread.h"

/* What was asked for; the library keeps infos and applications until it has its answer. */
struct spawning {
    pmix_proc_t caller;
    const pmix_info_t *info;
    size_t n_info;
    pmix_app_t *apps; /* with the folders that the directives name; all else is the library's */
    size_t n_apps;
    pmix_status_t status;
    pmix_nspace_t nspace;
    pmix_spawn_cbfunc_t cbfunc;
    void *cbdata;
};

/* ---- directives --------------------------------------------------------------------------------- */

static const char *spawn_folder(const pmix_info_t *info, size_t n, const char *otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_WDIR) && info[i].value.type == PMIX_STRING)
            otherwise = info[i].value.data.string;
    return otherwise;
}

/* The channel that this directive sends to the one who spawns. */
static pmix_iof_channel_t spawn_channel(const pmix_info_t *info)
{
    return PMIX_CHECK_KEY(info, PMIX_FWD_STDOUT)   ? PMIX_FWD_STDOUT_CHANNEL
           : PMIX_CHECK_KEY(info, PMIX_FWD_STDERR) ? PMIX_FWD_STDERR_CHANNEL
                                                   : PMIX_FWD_NO_CHANNELS;
}

/* Other keys that are known: those that are followed by the library, or always. */
static bool spawn_is_known(const pmix_info_t *info)
{
    static const char *const keys[] = {PMIX_NOTIFY_COMPLETION, PMIX_SETUP_APP_ENVARS, PMIX_FWD_STDDIAG,
                                       PMIX_WDIR};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (PMIX_CHECK_KEY(info, keys[i]))
            return true;
    return variables_is_directive(info);
}

/* PMIX_STDIN_TGT: one rank, or all. Applications name it as a rank or as a process. */
static bool spawn_target(const pmix_info_t *info, pmix_rank_t *out)
{
    if (info->value.type == PMIX_PROC_RANK)
        *out = info->value.data.rank;
    else if (info->value.type == PMIX_PROC && info->value.data.proc != NULL)
        *out = info->value.data.proc->rank;
    else
        return false;
    return true;
}

static pmix_status_t spawn_direct(struct job_order *order, const pmix_info_t *info)
{
    if (spawn_channel(info) != PMIX_FWD_NO_CHANNELS) {
        if (!PMIX_INFO_TRUE(info))
            order->away &= (pmix_iof_channel_t)~spawn_channel(info);
    } else if (PMIX_CHECK_KEY(info, PMIX_FWD_STDIN)) {
        if (PMIX_INFO_TRUE(info) && order->input_to == PMIX_RANK_INVALID)
            order->input_to = 0;
    } else if (PMIX_CHECK_KEY(info, PMIX_STDIN_TGT)) {
        return spawn_target(info, &order->input_to) ? PMIX_SUCCESS : PMIX_ERR_BAD_PARAM;
    } else if (PMIX_CHECK_KEY(info, PMIX_IOF_TAG_OUTPUT) || PMIX_CHECK_KEY(info, PMIX_TAG_OUTPUT)) {
        order->tagged = PMIX_INFO_TRUE(info);
    } else if (PMIX_CHECK_KEY(info, PMIX_JOB_RECOVERABLE)) {
        order->recoverable = PMIX_INFO_TRUE(info);
    } else if (PMIX_CHECK_KEY(info, PMIX_PARENT_ID)) {
        if (info->value.type != PMIX_PROC || info->value.data.proc == NULL)
            return PMIX_ERR_BAD_PARAM;
        order->parent = info->value.data.proc;
    } else if (!spawn_is_known(info) && PMIX_INFO_IS_REQUIRED(info)) {
        return PMIX_ERR_NOT_SUPPORTED;
    }
    return PMIX_SUCCESS;
}

/* An application's own directives: its folder and its variables. */
static pmix_status_t spawn_app(const struct spawning *s, pmix_app_t *app)
{
    app->cwd = (char *)spawn_folder(s->info, s->n_info, app->cwd);
    app->cwd = (char *)spawn_folder(app->info, app->ninfo, app->cwd);
    for (size_t i = 0; i < app->ninfo; i++)
        if (!spawn_is_known(&app->info[i]) && PMIX_INFO_IS_REQUIRED(&app->info[i]))
            return PMIX_ERR_NOT_SUPPORTED;
    return PMIX_SUCCESS;
}

/* ---- on the loop -------------------------------------------------------------------------------- */

static void spawn_free(struct spawning *s)
{
    free(s->apps);
    free(s);
}

static void spawn_on_answer(pmix_status_t status, void *cbdata)
{
    struct spawning *s = cbdata;
    (void)status;
    s->cbfunc(s->status, s->status == PMIX_SUCCESS ? s->nspace : NULL, s->cbdata);
    spawn_free(s);
}

static void spawn_on_loop(void *arg)
{
    struct spawning *s = arg;
    struct job_order order = {.apps = s->apps,
                              .n_apps = s->n_apps,
                              .info = s->info,
                              .n_info = s->n_info,
                              .parent = &s->caller,
                              .input_to = PMIX_RANK_INVALID};
    /* To a tool that gave a directive the library sends all that it does not refuse, and the tool's own
     * library writes it; a program's own library would throw it away. */
    if (s->n_info > 0 && jobs_find(s->caller.nspace) == NULL)
        order.away = PMIX_FWD_STDOUT_CHANNEL | PMIX_FWD_STDERR_CHANNEL;
    s->status = PMIX_SUCCESS;
    for (size_t i = 0; s->status == PMIX_SUCCESS && i < s->n_info; i++)
        s->status = spawn_direct(&order, &s->info[i]);
    for (size_t i = 0; s->status == PMIX_SUCCESS && i < s->n_apps; i++)
        s->status = spawn_app(s, &s->apps[i]);
    if (s->status == PMIX_SUCCESS)
        s->status = jobs_start(host_loop(), &order, s->nspace);
    fab_on_pmix_thread(spawn_on_answer, s);
}

/* ---- on the library's thread -------------------------------------------------------------------- */

pmix_status_t host_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                         const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc, void *cbdata)
{
    struct spawning *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return PMIX_ERR_NOMEM;
    *s = (struct spawning){
        .caller = *proc, .info = info, .n_info = ninfo, .n_apps = napps, .cbfunc = cbfunc, .cbdata = cbdata};
    s->apps = calloc(napps + 1, sizeof(*s->apps));
    if (s->apps != NULL && napps > 0)
        memcpy(s->apps, apps, napps * sizeof(*apps));
    if (s->apps != NULL && host_post(spawn_on_loop, s))
        return PMIX_SUCCESS;
    spawn_free(s);
    return PMIX_ERR_NOMEM;
}
