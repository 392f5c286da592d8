/* scheduler_main.c - the role scheduler: creation and end of its parts. */
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/notify.h"
#include "fabricd/base/timer.h"
#include "fabricd/endpoints/endpoints.h"
#include "fabricd/engine/scheduler_state.h"
#include "fabricd/jobs/backup.h"
#include "fabricd/jobs/history_trim.h"
#include "fabricd/main/fabricd_main.h"
#include "fabricd/operations/ops.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/process/process.h"
#include "fabricd/sources/ingest.h"
#include "fabricd/store/store.h"
#include "topo/base/backoff.h"

/* The role: its decisions, their inputs, and all other parts of the same lifetime. */
struct role {
    struct config *config;
    struct loop loop;
    struct scheduler scheduler;
    struct ops_parts ops;
    struct timer *room;        /* checks whether the store's disk has room again; NULL: it has room */
    struct backoff room_again; /* milliseconds between checks */
    bool hangup;               /* SIGHUP came while the role began */
    bool again;                /* the role has to end and start again */
};

/* ---- the configuration changes ------------------------------------------------------------------ */

/* Without its run directory the daemon has no control socket, so SIGHUP restores that directory, too. */
static void scheduler_on_hangup(void *arg)
{
    struct role *role = arg;
    struct scheduler *d = &role->scheduler;
    if (d->control == NULL) { /* with --once, or at the start */
        role->hangup = true;
        return;
    }
    if (round_repair_rundir(d))
        scheduler_refresh(d, NULL, false);
    control_hangup(d->control);
}

static void scheduler_on_turn(void *arg)
{
    const struct role *role = arg;
    control_turn(role->scheduler.control);
}

static void on_exports_changed(void *arg)
{
    scheduler_look_soon(arg);
}

/* Most settings are read where they are used. The parts below keep derived values. */
static void scheduler_on_reload(void *owner, const struct config_reload *reload)
{
    struct ops_parts *ops = owner;
    struct scheduler *d = ops->scheduler;
    if (config_reload_has(reload, "metrics", "file") || config_reload_has(reload, "metrics", "listen")) {
        metrics_file_free(d->metrics);
        if (metrics_file_new(d->base, d->config->metrics_file, d->config->metrics_listen, d->counts,
                             metrics_of_scheduler, ops, &d->metrics) != PMIXFAB_OK)
            log_error("metrics: out of memory");
    }
    publisher_reconfigured(d->publisher);
    scheduler_reconfigured(d, reload);
    trim_soon(d->trimmer);
    exports_tell(d->exports, d->status.generation); /* at the new rate */
    exports_reload(d->exports);
}

/* ---- a disk that is full or read-only ------------------------------------------------------------- */

#define ROOM_FIRST_MS 1000
#define ROOM_LAST_MS  60000

/* With room the role starts again, as after a start with a full disk. */
static void on_room(void *arg)
{
    struct role *role = arg;
    if (store_no_room(role->config->store, false) == 0) {
        log_warning("store %s: there is room again: restarting", role->config->store);
        role->again = true;
        event_base_loopbreak(role->loop.base);
        return;
    }
    timer_after(role->room, backoff_next(&role->room_again));
}

static int wait_for_room(struct role *role, struct fab_err *err)
{
    if (store_writable(publisher_store(role->scheduler.publisher), NULL) == PMIXFAB_OK)
        return PMIXFAB_OK;
    role->room = timer_new(role->loop.base, on_room, role);
    if (role->room == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    role->room_again = (struct backoff){.first = ROOM_FIRST_MS, .most = ROOM_LAST_MS};
    timer_after(role->room, backoff_next(&role->room_again));
    return PMIXFAB_OK;
}

/* ---- start and stop ----------------------------------------------------------------------------- */

static void scheduler_stop(struct role *role)
{
    struct scheduler *d = &role->scheduler;
    /* Ask scans and sweeps to end first: they may do so while the rest is stopped. */
    sweep_leave(d->sweep);
    monitor_leave(d->monitor);
    timer_cancel(d->retain_timer);
    if (d->publication != NULL &&
        d->publication->set != NULL) /* stored: make the run directory equal the store */
        publish_finish(d->publisher, d->publication);
    publication_free(d->publication);
    history_check_free(d->history_check);
    process_remove_uri(d->config, d->lock);
    control_free(d->control);
    hooks_free(d->hooks);
    exports_free(d->exports);
    trim_free(d->trimmer);
    backup_free(role->ops.backup);
    endpoints_free(role->ops.endpoints);
    metrics_file_free(d->metrics);
    ingest_stop(role->ops.ingest);
    channel_server_stop(d->channel);
    if (d->serving)
        pmix_server_stop(d->pmix);
    timer_free(role->room);
    scheduler_free_events(d);
    host_reports_free(d->nodes);
    channel_server_free(d->channel);
    credential_worker_free(role->ops.worker);
    pmix_server_free(d->pmix);
    findings_free(d->findings);
    publisher_free(d->publisher);
    loop_free(&role->loop);
    counts_free(d->counts);
    process_unlock(d->lock);
}

static void channel_on_answer(int code, uint64_t held, const char *reason, void *request)
{
    channel_answer(request, code, held, reason);
}

static void channel_on_delivery(const struct credential_maker *maker, void *bytes, size_t size,
                                struct channel_request *request, void *cbdata)
{
    const struct role *role = cbdata;
    ingest_deliver(role->ops.ingest, maker, bytes, size, channel_on_answer, request);
}

static uint64_t channel_on_held(const char *host, void *cbdata)
{
    const struct role *role = cbdata;
    return host_reports_held(host, role->scheduler.nodes);
}

/* Listen for nodes. On failure fabricd serves the fabric without them. */
static void start_nodes(struct role *role)
{
    struct scheduler *d = &role->scheduler;
    const struct channel_server_calls calls = {channel_on_held, channel_on_delivery, role};
    struct fab_err err = {""};
    const struct ingest_parts parts = {
        .base = d->base, .config = d->config, .counts = d->counts, .worker = role->ops.worker};
    int rc = ingest_start(&parts, host_reports_accept, d->nodes, &role->ops.ingest, &err);
    if (rc == PMIXFAB_OK)
        rc = channel_server_start(d->channel, &calls, d->config, publisher_served(d->publisher), d->counts,
                                  &err);
    if (rc != PMIXFAB_OK)
        log_error("nodes cannot deliver reports: %s", err.text);
}

static bool is_publishing(void *arg)
{
    const struct scheduler *d = arg;
    return d->publication != NULL;
}

/* Start the published state, the store, the reports, and the events that change them. */
static int scheduler_start_core(struct role *role, struct fab_err *err)
{
    struct scheduler *d = &role->scheduler;
    notify_status("opening the store %s", d->config->store);
    notify_starting(); /* until the store reports its progress */
    int rc = process_lock(d->config, &d->lock, err);
    if (rc == PMIXFAB_OK && (d->counts = counts_new()) == NULL)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (rc == PMIXFAB_OK)
        rc = publisher_new(d->config, d->counts, &d->publisher, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = loop_new(&role->loop);
    d->base = role->loop.base;
    if (rc != PMIXFAB_OK || scheduler_new_events(d) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "cannot create the event loop");
    struct store *store = publisher_store(d->publisher);
    rc = findings_new(d->config, store, &d->findings, err);
    if (rc != PMIXFAB_OK)
        return rc;
    d->pmix = role->ops.pmix = pmix_server_new();
    if (d->pmix == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    role->ops.worker = credential_worker_new(d->base);
    if (role->ops.worker == NULL || (d->channel = channel_server_new(d->base, role->ops.worker)) == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    role->ops.channel = d->channel;
    rc = host_reports_new(d->base, d->config, store, d->channel, scheduler_on_reports, d, &d->nodes, err);
    if (rc == PMIXFAB_OK)
        scheduler_take_over(d);
    return rc == PMIXFAB_OK ? wait_for_room(role, err) : rc;
}

static int scheduler_start_jobs(struct role *role, struct fab_err *err)
{
    struct scheduler *d = &role->scheduler;
    struct store *store = publisher_store(d->publisher);
    components_warn(&d->component_unfit);
    int rc = scheduler_monitor(d, err);
    if (rc == PMIXFAB_OK)
        rc = hooks_new(d->base, d->config, d->counts, store, &d->hooks, err);
    if (rc == PMIXFAB_OK)
        rc = exports_new(d->base, d->config, d->counts, on_exports_changed, d, &d->exports, err);
    if (rc == PMIXFAB_OK)
        exports_tell(d->exports, d->status.generation); /* also changes from before this start */
    if (rc == PMIXFAB_OK)
        rc = trim_new(d->base, d->config, d->counts, store, is_publishing, d, &d->trimmer, err);
    if (rc == PMIXFAB_OK)
        rc = backup_new(d->base, d->config, d->counts, &role->ops.backup, err);
    if (rc == PMIXFAB_OK)
        rc = endpoints_new(d->base, d->config, store, &role->ops.endpoints, err);
    return rc;
}

/* Start the parts for operators: commands and files. */
static int scheduler_start_operator(struct role *role, struct fab_err *err)
{
    struct scheduler *d = &role->scheduler;
    struct ops_parts *ops = &role->ops;
    ops->base = d->base;
    ops->config = d->config;
    ops->counts = d->counts;
    ops->scheduler = d;
    ops->publisher = d->publisher;
    ops->reports = d->nodes;
    ops->findings = d->findings;
    ops->exports = d->exports;
    int rc = control_new(d->base, role->config, d->counts, ops_of_scheduler, ops, &d->control, err);
    if (rc == PMIXFAB_OK) {
        struct pmix_server_status pmix;
        pmix_server_status(d->pmix, &pmix);
        if (pmix.separated)
            control_refuse(d->control, pmix.uid);
        control_on_reload(d->control, scheduler_on_reload);
        control_on_await(d->control, ops_await_facts);
        control_on_mend(d->control, ops_mend);
    }
    if (rc == PMIXFAB_OK)
        rc = metrics_file_new(d->base, d->config->metrics_file, d->config->metrics_listen, d->counts,
                              metrics_of_scheduler, ops, &d->metrics);
    host_reports_on_heard(d->nodes, ops_host_heard, ops);
    return rc == PMIXFAB_ERR_NOMEM ? fab_fail(err, rc, "out of memory") : rc;
}

/* In this order: the last published state is served before anything else is done. */
static int scheduler_start(struct role *role, struct fab_err *err)
{
    struct scheduler *d = &role->scheduler;
    int rc = scheduler_start_core(role, err);
    if (rc != PMIXFAB_OK || d->config->once)
        return rc;
    rc = scheduler_start_jobs(role, err);
    if (rc != PMIXFAB_OK)
        return rc;
    start_nodes(role);
    rc = pmix_server_start(d->pmix, d->base, d->config, err);
    if (rc != PMIXFAB_OK)
        return rc;
    d->serving = true;
    return scheduler_start_operator(role, err);
}

/* Replace the closed store with the copy of the requested backup. */
static void finish_restore(const struct config *config, int answer_fd)
{
    char kept[PATH_MAX];
    struct fab_err err = {""};
    int rc = store_restore_copied(config->store, kept, sizeof(kept), &err);
    if (rc == PMIXFAB_OK)
        log_warning("store: %s is restored; the old store is kept as %s", config->store, kept);
    else
        log_error("%s", err.text);
    json_t *answer = rc == PMIXFAB_OK
                         ? json_pack("{s:b, s:s}", "ok", 1, "kept", kept)
                         : json_pack("{s:b, s:i, s:s}", "ok", 0, "error", rc, "message", err.text);
    if (json_dumpfd(answer, answer_fd, JSON_COMPACT) != 0 || write(answer_fd, "\n", 1) != 1)
        log_debug("restore: the caller has disconnected");
    json_decref(answer);
    close(answer_fd);
}

static void look_at_history(void *scheduler)
{
    scheduler_look_soon(scheduler);
}

int scheduler_begin(struct config *config, struct role **out)
{
    struct fab_err err = {""};
    struct role *role = *out = calloc(1, sizeof(*role));
    if (role == NULL)
        return PMIXFAB_ERR_NOMEM;
    struct scheduler *d = &role->scheduler;
    role->config = config;
    d->config = config;
    role->loop.on_hangup = scheduler_on_hangup;
    role->loop.on_turn = scheduler_on_turn;
    role->loop.cbdata = role;
    int rc = scheduler_start(role, &err);
    if (rc != PMIXFAB_OK) {
        log_error("%s", err.text);
        process_ready(false);
        scheduler_stop(role);
        free(role);
        *out = NULL;
        return rc;
    }
    process_ready(true);
    scheduler_tell_service(d);
    trim_soon(d->trimmer);
    if (!config->once)
        d->history_check =
            history_check_new(d->base, config->store, d->status.generation, look_at_history, d);
    if (!config->once)
        log_info("serving generation %llu at %s", (unsigned long long)d->status.generation,
                 pmix_server_uri(d->pmix));
    scheduler_refresh(d, NULL, false); /* from within the loop, so that it can be left */
    if (role->hangup)
        scheduler_on_hangup(role);
    return PMIXFAB_OK;
}

struct loop *scheduler_loop(struct role *role)
{
    return &role->loop;
}

struct scheduler *scheduler_of(struct role *role)
{
    return &role->scheduler;
}

struct ingest *scheduler_ingest(struct role *role)
{
    return role->ops.ingest;
}

bool scheduler_is_leaving(const struct role *role)
{
    return role->loop.ended || role->again || role->ops.restored != 0;
}

int scheduler_end(struct role *role, bool *again)
{
    const struct config *config = role->config;
    const int code = config->once ? role->scheduler.status.code : PMIXFAB_OK, restored = role->ops.restored;
    *again = (restored != 0 || role->again) && !role->loop.ended;
    if (*again) { /* a restore can be interrupted at any moment */
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        signal(SIGHUP, SIG_IGN); /* until the new start handles it and reads the configuration */
    }
    scheduler_stop(role);
    free(role);
    if (*again && restored != 0)
        finish_restore(config, restored);
    return code;
}

int scheduler_run(struct config *config)
{
    struct role *role;
    bool again;
    if (scheduler_begin(config, &role) != PMIXFAB_OK)
        return 1;
    if (!scheduler_is_leaving(role)) /* the end may have been requested while the PMIx server started */
        loop_run(scheduler_loop(role));
    int rc = scheduler_end(role, &again);
    if (again) {
        process_again();
        log_error("fabricd cannot restart itself: start it again");
        return 1;
    }
    return rc == PMIXFAB_OK ? 0 : 1;
}
