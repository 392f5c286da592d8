/*
 * pnet_component.c - the PMIx component pnet/fabricd. It answers a scheduler's own fabric calls in the
 * scheduler's process, from the run directory of the fabricd on its host. It also provides the inventory of
 * nodes, and launch information.
 *
 * Which calls are answered where, and why: docs/design/component.md.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <src/include/pmix_config.h>

#include <pmix_version.h>
#include <src/class/pmix_list.h>
#include <src/event/pmix_event.h>
#include <src/include/pmix_globals.h>
#include <src/mca/mca.h>
#include <src/mca/pmdl/base/base.h>
#include <src/mca/pnet/base/base.h>
#include <src/util/pmix_output.h>

#include "mca/library/library.h"
#include "mca/pnet/inventory_child.h"
#include "mca/pnet/plane_registry.h"
#include "mca/pnet/pnet_component.h"
#include "topo/base/library_log.h"

#define DEFAULT_RUNDIR "/run/fabricd"

static const char *rundir; /* the MCA parameter; the library's memory */
static struct pnet_registry *registry;
static pmix_pnet_module_t pnet_fabricd_module;

static void component_on_log(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)level, (void)cbdata;
    pnet_say("%s", line);
}

/*
 * ---- events -----------------------------------------------------------------------------------------
 *
 * Fabric events for the handlers of this process. This file starts the chain of handlers with its own final
 * callback, not by PMIx_Notify_event(). docs/design/component.md, "News", has the reason.
 */

static pthread_mutex_t announce_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t announce_changed = PTHREAD_COND_INITIALIZER;
static bool announce_stopped;

/* One event in the chain of handlers. */
struct announcement {
    pmix_event_t start;
    pmix_event_chain_t chain;
    bool finished;
};

#define N_FACTS 3 /* index, plane, generation */
#define N_SPARE 2 /* the library puts a handler's name and object there */

static struct announcement *announcement_new(bool pending, const struct order_change *change)
{
    struct announcement *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return NULL;
    PMIX_CONSTRUCT(&a->chain.super, pmix_list_item_t);
    a->chain.status = pending ? PMIX_FABRIC_UPDATE_PENDING : PMIX_FABRIC_UPDATED;
    a->chain.interim_status = PMIX_ERROR;
    a->chain.range = PMIX_RANGE_PROC_LOCAL;
    PMIX_LOAD_PROCID(&a->chain.source, pmix_globals.myid.nspace, pmix_globals.myid.rank);
    PMIX_INFO_CREATE(a->chain.info, N_FACTS + N_SPARE);
    if (a->chain.info == NULL) {
        free(a);
        return NULL;
    }
    a->chain.ninfo = N_FACTS;
    a->chain.nallocated = N_FACTS + N_SPARE;
    PMIX_INFO_LOAD(&a->chain.info[0], PMIX_FABRIC_INDEX, &change->index, PMIX_SIZE);
    PMIX_INFO_LOAD(&a->chain.info[1], PMIX_FABRIC_PLANE, change->name, PMIX_STRING);
    PMIX_INFO_LOAD(&a->chain.info[2], PMIXFAB_KEY_GENERATION, &change->generation, PMIX_UINT64);
    return a;
}

static void announcement_free(struct announcement *a)
{
    PMIX_INFO_FREE(a->chain.info, a->chain.nallocated);
    if (a->chain.results != NULL)
        PMIX_INFO_FREE(a->chain.results, a->chain.nresults);
    PMIX_DESTRUCT(&a->chain.super);
    free(a);
}

/* On the library's thread: the last handler has finished. */
static void announce_on_finished(pmix_status_t status, void *cbdata)
{
    struct announcement *a = cbdata;
    (void)status;
    pthread_mutex_lock(&announce_lock);
    a->finished = true;
    pthread_cond_broadcast(&announce_changed);
    pthread_mutex_unlock(&announce_lock);
}

/* On the library's thread. */
static void announce_on_start(int fd, short what, void *arg)
{
    struct announcement *a = arg;
    (void)fd, (void)what;
    a->chain.final_cbfunc = announce_on_finished;
    a->chain.final_cbdata = a;
    pmix_invoke_local_event_hdlr(&a->chain);
}

/*
 * Raise PMIX_FABRIC_UPDATE_PENDING or PMIX_FABRIC_UPDATED and wait for the handlers. Not on the library's
 * thread.
 */
static void announce(bool pending, const struct order_change *change, void *cbdata)
{
    struct announcement *a = announcement_new(pending, change);
    (void)cbdata;
    if (a == NULL)
        return;
    pmix_event_assign(&a->start, pmix_globals.evbase, -1, EV_WRITE, announce_on_start, a);
    pthread_mutex_lock(&announce_lock);
    if (!announce_stopped) {
        pmix_event_active(&a->start, EV_WRITE, 1);
        while (!a->finished && !announce_stopped)
            pthread_cond_wait(&announce_changed, &announce_lock);
    } else {
        a->finished = true;
    }
    bool finished = a->finished;
    pthread_mutex_unlock(&announce_lock);
    /* A handler may still return, so do not free its event; this happens only at the end of the library. */
    if (finished)
        announcement_free(a);
}

/* Allow announcements from now on; or stop waiting for any. */
static void announce_allow(bool allowed)
{
    pthread_mutex_lock(&announce_lock);
    announce_stopped = !allowed;
    pthread_cond_broadcast(&announce_changed);
    pthread_mutex_unlock(&announce_lock);
}

/* ---- callers ---------------------------------------------------------------------------------------- */

enum caller {
    CALLER_WAITS,   /* PMIx_Fabric_register of this process: the library waits for its own callback */
    CALLER_RETURNS, /* PMIx_Fabric_register_nb of this process */
    CALLER_REMOTE   /* a tool's or client's request, on the library's thread */
};

/*
 * Find the kind of caller. A callback in the host program: it called the non-blocking function. A callback in
 * the library comes with one of its objects: the blocking function's pmix_cb_t of this very fabric, or a
 * remote request's.
 */
static enum caller component_caller(const pmix_fabric_t *fabric, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    Dl_info library, callback;
    /* From 7 on PMIx_Fabric_register_nb refuses a call with neither, and a remote request has neither. */
    if (cbfunc == NULL)
        return PMIX_VERSION_MAJOR >= 7 && cbdata == NULL ? CALLER_REMOTE : CALLER_RETURNS;
    /* a static function of the library: its address is never that of a stub in another object */
    if (dladdr((void *)pmix_pnet_base_framework.framework_open, &library) == 0)
        return CALLER_REMOTE;
    if (dladdr((void *)cbfunc, &callback) == 0 || callback.dli_fbase != library.dli_fbase)
        return CALLER_RETURNS;
    const pmix_cb_t *cb = cbdata;
    if (((const pmix_object_t *)cbdata)->obj_class == PMIX_CLASS(pmix_cb_t) && cb->fabric == fabric)
        return CALLER_WAITS;
    return CALLER_REMOTE;
}

/* ---- the three calls -------------------------------------------------------------------------------- */

/* After the callback return PMIX_SUCCESS, for which the library does not extend its list. */
static pmix_status_t component_finish(enum caller caller, pmix_status_t status, pmix_op_cbfunc_t cbfunc,
                                      void *cbdata)
{
    if (caller != CALLER_WAITS)
        return status == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : status;
    cbfunc(status, cbdata);
    return PMIX_SUCCESS;
}

/*
 * Make the later content of the object's module, the library's record of a fabric: by it the library finds
 * this component at an update. From 7 on, the library takes the record off its list when the object is
 * deregistered, and releases it. Nothing there protects the list from other threads.
 */
static struct pnet_tag tag_new(enum caller caller)
{
#if PMIX_VERSION_MAJOR < 7
    pmix_pnet_fabric_t *record = calloc(1, sizeof(*record));
    (void)caller;
#else
    pmix_pnet_fabric_t *record = PMIX_NEW(pmix_pnet_fabric_t);
    if (record != NULL && caller == CALLER_RETURNS)
        record->payload = &pnet_fabricd_module; /* see tag_forget() */
#endif
    if (record != NULL)
        record->module = &pnet_fabricd_module;
    return (struct pnet_tag){record, PMIX_VERSION_MAJOR < 7 ? free : NULL};
}

static void tag_use(pmix_fabric_t *fabric, const struct pnet_tag *tag)
{
    fabric->module = tag->tag;
#if PMIX_VERSION_MAJOR >= 7
    pmix_list_append(&pmix_pnet_globals.fabrics, &((pmix_pnet_fabric_t *)tag->tag)->super);
#endif
}

/* Before the end of an object. From 7 on, the library makes a record of its own after
 * PMIX_OPERATION_SUCCEEDED, and would keep it: it looks only at the object's module, which is ours. */
static void tag_forget(const pmix_fabric_t *fabric)
{
#if PMIX_VERSION_MAJOR < 7
    (void)fabric;
#else
    pmix_pnet_fabric_t *record = fabric == NULL ? NULL : (pmix_pnet_fabric_t *)fabric->module;
    if (record == NULL || record->payload != &pnet_fabricd_module)
        return;
    PMIX_LIST_FOREACH(record, &pmix_pnet_globals.fabrics, pmix_pnet_fabric_t)
    {
        if (record->module == &pnet_fabricd_module && record->index != 0 && record->index == fabric->index) {
            pmix_list_remove_item(&pmix_pnet_globals.fabrics, &record->super);
            PMIX_RELEASE(record);
            return;
        }
    }
#endif
}

static void tag_drop(const struct pnet_tag *tag)
{
#if PMIX_VERSION_MAJOR < 7
    free(tag->tag);
#else
    pmix_pnet_fabric_t *record = tag->tag;
    if (record != NULL)
        PMIX_RELEASE(record);
#endif
}

static pmix_status_t register_fabric(pmix_fabric_t *fabric, const pmix_info_t directives[], size_t ndirs,
                                     pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    struct fab_err err = {""};
    if (!PMIX_PEER_IS_SCHEDULER(pmix_globals.mypeer)) {
        pnet_say("register: declined: this process is not the scheduler, so the end of the object would not "
                 "be reported");
        return PMIX_ERR_TAKE_NEXT_OPTION;
    }
    enum caller caller = component_caller(fabric, cbfunc, cbdata);
    if (caller == CALLER_REMOTE) {
        pnet_say("register: from another process: left to the host");
        return PMIX_ERR_TAKE_NEXT_OPTION;
    }
    const struct pnet_tag tag = tag_new(caller);
    pmix_status_t rc =
        tag.tag == NULL ? PMIX_ERR_NOMEM : pnet_register(registry, directives, ndirs, fabric, &tag, &err);
    if (rc == PMIX_SUCCESS) {
        tag_use(fabric, &tag);
        if (pnet_watch(registry, announce, NULL) != PMIXFAB_OK)
            pnet_say("%s cannot be watched: objects change at PMIx_Fabric_update only", rundir);
        return component_finish(caller, rc, cbfunc, cbdata);
    }
    tag_drop(&tag);
    pnet_say("register: %s: declined", err.text);
    /* If no other function will be tried, return the reason to the caller instead of "not supported". */
    if (rc != PMIX_ERR_UNREACH && caller == CALLER_WAITS && pmix_host_server.fabric == NULL)
        return component_finish(caller, rc, cbfunc, cbdata);
    return PMIX_ERR_TAKE_NEXT_OPTION;
}

/* Never return PMIX_SUCCESS: the library would wait for a callback. Its global lock is held here. */
static pmix_status_t update_fabric(pmix_fabric_t *fabric)
{
    struct fab_err err = {""};
    pmix_status_t rc = pnet_update(registry, fabric, &err);
    if (rc == PMIX_SUCCESS)
        return PMIX_OPERATION_SUCCEEDED;
    pnet_say("update: %s", err.text);
    return rc;
}

/* The library's global lock is held here, too. */
static pmix_status_t deregister_fabric(pmix_fabric_t *fabric)
{
    tag_forget(fabric);
    return pnet_deregister(registry, fabric);
}

/*
 * ---- inventory --------------------------------------------------------------------------------------
 *
 * Every server has these functions. Nodes collect inventories, and their receiver delivers them. Both
 * functions run on the library's thread. They only return PMIX_SUCCESS, because any other status would
 * replace the results of other components. The reason for a missing inventory is in the log.
 */

#define INVENTORY_SECONDS     10
#define INVENTORY_MAX_SECONDS 600
#define INVENTORY_MAX_DEPTH   4 /* of nested arrays of infos */

static struct pnet_inventory_params inventory_params; /* the component's parameters; the library's memory */

/* The library's header asks for key-value items, but PMIx_Info_list_convert() takes each entry for a
 * pmix_infolist_t, and would read behind a pmix_kval_t. */
_Static_assert(sizeof(pmix_kval_t) < sizeof(pmix_infolist_t), "a key-value item holds no pmix_info_t");

static int inventory_seconds(const pmix_info_t directives[], size_t ndirs)
{
    int seconds = inventory_params.seconds;
    for (size_t i = 0; i < ndirs; i++)
        if (PMIX_CHECK_KEY(&directives[i], PMIX_TIMEOUT) && directives[i].value.type == PMIX_INT &&
            directives[i].value.data.integer > 0 && directives[i].value.data.integer < seconds)
            seconds = directives[i].value.data.integer;
    return seconds < 1 ? 1 : seconds > INVENTORY_MAX_SECONDS ? INVENTORY_MAX_SECONDS : seconds;
}

#if PMIX_VERSION_MAJOR < 7
typedef pmix_list_t pnet_inventory; /* for PMIx_Info_list_add() */
#else
typedef void pnet_inventory;
#endif

static pmix_status_t inventory_collect(pmix_info_t directives[], size_t ndirs, pnet_inventory *inventory)
{
    struct fab_err err = {""};
    struct pnet_inventory_params wanted = inventory_params;
    wanted.host = pmix_globals.hostname;
    wanted.seconds = inventory_seconds(directives, ndirs);
    void *bytes;
    pmix_byte_object_t object;
    if (wanted.host == NULL || pnet_inspect(&wanted, &bytes, &object.size, &err) != PMIXFAB_OK) {
        fab_log(PMIXFAB_LOG_INFO, "%s", err.text[0] != '\0' ? err.text : "inventory: the host has no name");
        return PMIX_SUCCESS;
    }
    object.bytes = bytes;
    if (PMIx_Info_list_add(inventory, PMIXFAB_KEY_INVENTORY, &object, PMIX_BYTE_OBJECT) != PMIX_SUCCESS)
        fab_log(PMIXFAB_LOG_INFO, "inventory: out of memory");
    free(bytes);
    return PMIX_SUCCESS;
}

static struct pnet_sender sender = {.params = &inventory_params, .fd = -1};

static void inventory_hand_over(const void *bytes, size_t size)
{
    struct fab_err err = {""};
    if (pnet_send(&sender, bytes, size, &err) != PMIXFAB_OK)
        fab_log(PMIXFAB_LOG_WARNING, "inventory refused: %s", err.text);
}

static void take_inventory_value(const pmix_value_t *value)
{
    const pmix_data_array_t *array = value->type == PMIX_DATA_ARRAY ? value->data.darray : NULL;
    if (value->type == PMIX_BYTE_OBJECT && value->data.bo.bytes != NULL) {
        inventory_hand_over(value->data.bo.bytes, value->data.bo.size);
    } else if (array != NULL && array->type == PMIX_BYTE_OBJECT && array->array != NULL) {
        const pmix_byte_object_t *objects = array->array;
        for (size_t i = 0; i < array->size; i++)
            if (objects[i].bytes != NULL)
                inventory_hand_over(objects[i].bytes, objects[i].size);
    } else {
        fab_log(PMIXFAB_LOG_WARNING, "inventory refused: " PMIXFAB_KEY_INVENTORY " holds no bytes");
    }
}

/* A host that collects from many nodes puts the result of each into an array, or an array of arrays. */
static void search_infos(const pmix_info_t *info, size_t n, unsigned depth)
{
    for (size_t i = 0; info != NULL && i < n; i++) {
        const pmix_value_t *value = &info[i].value;
        if (PMIX_CHECK_KEY(&info[i], PMIXFAB_KEY_INVENTORY))
            take_inventory_value(value);
        else if (value->type == PMIX_DATA_ARRAY && value->data.darray != NULL &&
                 value->data.darray->type == PMIX_INFO && depth < INVENTORY_MAX_DEPTH)
            search_infos(value->data.darray->array, value->data.darray->size, depth + 1);
    }
}

static pmix_status_t inventory_deliver(pmix_info_t info[], size_t ninfo, pmix_info_t directives[],
                                       size_t ndirs)
{
    (void)directives, (void)ndirs;
    search_infos(info, ninfo, 1);
    return PMIX_SUCCESS;
}

/* ---- life ------------------------------------------------------------------------------------------- */

static pmix_status_t component_init(void)
{
    if (registry == NULL && pnet_registry_new(rundir, &registry) != PMIXFAB_OK) {
        pnet_say("no run directory is set, or no memory: declined");
        return PMIX_ERR_NOT_AVAILABLE;
    }
    inventory_params.rundir = rundir;
    pnet_launch_params.rundir = rundir;
    inventory_params.talks = pmix_output_get_verbosity(pmix_pnet_base_framework.framework_output) >= 2;
    pmixfab_set_log(component_on_log, NULL);
    announce_allow(true);
    return PMIX_SUCCESS;
}

/* The library's thread does not run any more: waiting handlers are given up. */
static void component_finalize(void)
{
    announce_allow(false);
    pnet_registry_free(registry);
    registry = NULL;
    pnet_send_stop(&sender); /* deliveries that fabricd has not read are dropped */
    pnet_launch_stop();
    pmixfab_set_log(NULL, NULL);
}

#if PMIX_VERSION_MAJOR >= 7
/* Before the library's own components, whose priorities are lower, overwrite variables: our pmdl notes them.
 */
static pmix_status_t fork_first(const pmix_proc_t *proc, char ***env)
{
    pmix_pmdl_base_active_module_t *active;
    PMIX_LIST_FOREACH(active, &pmix_pmdl_globals.actives, pmix_pmdl_base_active_module_t)
    {
        if (strcmp(active->module->name, "fabricd") == 0 && active->module->setup_fork != NULL)
            (void)active->module->setup_fork(proc, env, NULL);
    }
    return PMIX_ERR_TAKE_NEXT_OPTION;
}
#endif

static pmix_pnet_module_t pnet_fabricd_module = {
    .name = "fabricd",
    .init = component_init,
    .finalize = component_finalize,
    .allocate = pnet_launch_allocate,
    .setup_local_network = pnet_launch_set_up,
    .deregister_nspace = pnet_launch_end,
    .collect_inventory = inventory_collect,
    .deliver_inventory = inventory_deliver,
    .register_fabric = register_fabric,
    .update_fabric = update_fabric,
    .deregister_fabric = deregister_fabric,
#if PMIX_VERSION_MAJOR >= 7
    .setup_fork = fork_first,
#endif
};

static bool pnet_fits(void)
{
    return mca_same_library("pnet", MCA_BUILT_FOR);
}

static void add_parameter(const char *name, const char *what, pmix_mca_base_var_type_t type, void *storage)
{
    mca_parameter("pnet", name, what, type, storage);
}

/*
 * Return the path of the program that was installed with this component, which may be reached by a link in
 * another folder.
 */
static const char *installed_program(void)
{
    static char program[2 * PATH_MAX];
    char file[PATH_MAX];
    Dl_info self;
    if (dladdr((void *)installed_program, &self) == 0 || realpath(self.dli_fname, file) == NULL)
        return FABRICD_PROGRAM;
    *strrchr(file, '/') = '\0';
    snprintf(program, sizeof(program), "%s/" FABRICD_PROGRAM, file);
    return program;
}

static void register_launch_parameters(void)
{
    pnet_launch_params = (struct pnet_launch_params){
        .coordinates = "single", .launch = true, .seconds = PNET_ENDPOINTS_SECONDS};
    add_parameter("launch",
                  "Send the fabric's launch information to the nodes of a job, and set it on nodes without a "
                  "snapshot of their own",
                  PMIX_MCA_BASE_VAR_TYPE_BOOL, &pnet_launch_params.launch);
    add_parameter("endpoints_deadline", "Deadline for fabricd's answer about a job's endpoints, seconds",
                  PMIX_MCA_BASE_VAR_TYPE_INT, &pnet_launch_params.seconds);
    add_parameter("coordinates", "As pmdl_fabricd_coordinates, on nodes without a snapshot of their own",
                  PMIX_MCA_BASE_VAR_TYPE_STRING, &pnet_launch_params.coordinates);
    add_parameter("forward_envars",
                  "Variables of the starter's environment for its jobs: names separated by ';', a '?' for "
                  "any character, a '*' at the end for any rest",
                  PMIX_MCA_BASE_VAR_TYPE_STRING, &pnet_launch_params.forward);
    add_parameter("exclude_envars", "Likewise, variables that are excluded from these",
                  PMIX_MCA_BASE_VAR_TYPE_STRING, &pnet_launch_params.exclude);
}

static int component_register(void)
{
    if (!pnet_fits())
        return PMIX_ERR_NOT_AVAILABLE;
    rundir = DEFAULT_RUNDIR;
    inventory_params = (struct pnet_inventory_params){
        .program = installed_program(), .probes = "", .seconds = INVENTORY_SECONDS};
    add_parameter("rundir", "Run directory of the fabricd on this host", PMIX_MCA_BASE_VAR_TYPE_STRING,
                  &rundir);
    add_parameter("program", "The program fabricd, which collects and delivers for PMIx's inventory calls",
                  PMIX_MCA_BASE_VAR_TYPE_STRING, &inventory_params.program);
    add_parameter("probes", "Probes that it uses, NAME[:ARG],... (default: all of this host)",
                  PMIX_MCA_BASE_VAR_TYPE_STRING, &inventory_params.probes);
    add_parameter("inventory_deadline", "Deadline for an inventory, seconds", PMIX_MCA_BASE_VAR_TYPE_INT,
                  &inventory_params.seconds);
    register_launch_parameters();
    return PMIX_SUCCESS;
}

static int component_query(pmix_mca_base_module_t **module, int *priority)
{
    *module = NULL;
    *priority = 50;
    if (!pnet_fits() || !PMIX_PEER_IS_SERVER(pmix_globals.mypeer))
        return PMIX_ERROR;
    *module = (pmix_mca_base_module_t *)&pnet_fabricd_module;
    return PMIX_SUCCESS;
}

MCA_COMPONENT(pnet, component_query, component_register);
