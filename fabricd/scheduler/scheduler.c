#include "fabricd/scheduler/scheduler.h"

#include <event2/thread.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/config/options.h"
#include "fabricd/ingest/ingest.h"
#include "fabricd/node/deliver_child.h"
#include "fabricd/node/node.h"
#include "fabricd/operator/ops_hosts.h"
#include "fabricd/operator/ops_metrics.h"
#include "fabricd/process/process.h"
#include "fabricd/scheduler/state.h"
#include "fabricd/server/server.h"
#include "fabricd/server/subscribers.h"
#include "fabricd/store/store_copy.h"
#include "fabricd/util/log.h"
#include "fabricd/util/now.h"
#include "topo/inventory/names.h"

int64_t daemon_now(void)
{
    return microseconds_now(CLOCK_REALTIME);
}

/* ---- for the control socket --------------------------------------------------------------------- */

void daemon_status(const struct daemon *d, struct daemon_status *out)
{
    *out = d->status;
    out->sweeping = d->round;
    out->interval = d->config->interval;
    out->host = d->config->host;
    out->light_sweep = d->config->light_sweep;
    out->light_sweeps = d->monitor != NULL;
    out->monitor = (struct monitor_status){0};
    if (out->light_sweeps)
        monitor_status(d->monitor, &out->monitor);
    out->dirty_since = monitoring_since(d);
    host_reports_all(d->nodes, &out->nodes);
    struct publisher_waits waits;
    publisher_waits(d->publisher, &waits);
    out->missing = waits.missing;
    out->suppressed = waits.suppressed;
    out->suppressed_switches = waits.suppressed_switches;
}

/* ---- what is next -------------------------------------------------------------------------------- */

void daemon_go_on(struct daemon *d)
{
    if (d->publication != NULL)
        return;
    if (round_answered(d))
        publish_round(d);
    if (d->publication == NULL && d->reports_due && publish_can_without_sweep(d->publisher))
        publish_reports(d);
    round_timers_plan(d);
}

/* Nodes have delivered. */
static void on_reports(void *arg)
{
    struct daemon *d = arg;
    d->reports_due = true;
    daemon_go_on(d);
}

/* ---- events of the loop ------------------------------------------------------------------------- */

static void scheduler_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct daemon *d = arg;
    (void)fd;
    (void)what;
    if (d->round) /* of what was dirty: then everything */
        d->pending_round = true;
    else
        round_start(d, false);
}

static void scheduler_on_signal(evutil_socket_t signo, short what, void *arg)
{
    struct daemon *d = arg;
    (void)what;
    if (signo == SIGHUP) {
        log_info("SIGHUP: sweeping");
        daemon_refresh(d, NULL, false);
        return;
    }
    log_info("%s: stopping", signo == SIGTERM ? "SIGTERM" : "SIGINT");
    event_base_loopbreak(d->base);
}

void daemon_retain_memory(bool keep)
{
    mallopt(M_MMAP_THRESHOLD, keep ? 32 << 20 : 4 << 20);
    mallopt(M_TRIM_THRESHOLD, keep ? 64 << 20 : 8 << 20);
}

/* Not at once: the next publication needs it again, and is quicker with it. */
static void on_trim(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
    daemon_retain_memory(false);
    malloc_trim(0);
}

static int scheduler_make_events(struct daemon *d, struct fab_err *err)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGINT};
    evthread_use_pthreads();
    d->base = event_base_new();
    d->timer = d->base == NULL ? NULL : evtimer_new(d->base, scheduler_on_timeout, d);
    d->trim = d->base == NULL ? NULL : evtimer_new(d->base, on_trim, d);
    bool ok = d->timer != NULL && d->trim != NULL;
    for (size_t i = 0; ok && i < 3; i++) {
        d->signals[i] = evsignal_new(d->base, signals[i], scheduler_on_signal, d);
        ok = d->signals[i] != NULL && event_add(d->signals[i], NULL) == 0;
    }
    signal(SIGPIPE, SIG_IGN);
    return ok ? PMIXFAB_OK : fab_fail(err, PMIXFAB_ERR_NOMEM, "the event loop cannot be made");
}

/* ---- start and stop ----------------------------------------------------------------------------- */

static void scheduler_stop(struct daemon *d)
{
    /* What scans and sweeps may end by itself while the rest is stopped. */
    sweep_leave(d->sweep);
    monitor_leave(d->monitor);
    round_timers_stop(d);
    if (d->publication != NULL &&
        d->publication->set != NULL) /* stored: leave the run directory as the store is */
        publish_finish(d->publisher, d->publication);
    publication_free(d->publication);
    process_remove_uri(d->config);
    control_free(d->control);
    hooks_free(d->hooks);
    trim_free(d->trimmer);
    backup_free(d->backup);
    metrics_file_free(d->metrics);
    subscribers_stop();
    if (d->taking)
        ingest_stop();
    if (d->serving)
        server_stop();
    round_cancel(d);
    monitoring_stop(d);
    if (d->timer != NULL)
        event_free(d->timer);
    if (d->trim != NULL)
        event_free(d->trim);
    for (size_t i = 0; i < 3; i++)
        if (d->signals[i] != NULL)
            event_free(d->signals[i]);
    host_reports_free(d->nodes);
    publisher_free(d->publisher);
    if (d->base != NULL)
        event_base_free(d->base);
    process_unlock();
}

/* Where nodes cannot be believed (there is no munged, say) the fabric is served all the same. */
static void start_ingest(struct daemon *d)
{
    struct fab_err err = {""};
    d->taking = ingest_start(d->base, d->config, host_reports_accept, d->nodes, &err) == PMIXFAB_OK;
    if (!d->taking)
        log_warning("nodes cannot deliver what they report: %s", err.text);
}

static bool is_publishing(void *arg)
{
    const struct daemon *d = arg;
    return d->publication != NULL;
}

/* --restore: before anything looks into the store. */
static int scheduler_restore(const struct config *config, struct fab_err *err)
{
    char kept[4096];
    if (config->restore == NULL)
        return PMIXFAB_OK;
    int rc = store_restore(config->store, config->restore, kept, sizeof(kept), err);
    if (rc == PMIXFAB_OK)
        log_warning("store: %s is restored from %s%s%s", config->store, config->restore,
                    kept[0] != '\0' ? "; what it was is kept as " : "", kept);
    return rc;
}

/* In this order: what was published last is served before anything else is done. */
static int scheduler_start(struct daemon *d, struct fab_err *err)
{
    int rc = process_lock(d->config, err);
    if (rc == PMIXFAB_OK)
        rc = scheduler_restore(d->config, err);
    if (rc == PMIXFAB_OK)
        rc = publisher_new(d->config, &d->publisher, err);
    if (rc == PMIXFAB_OK)
        rc = scheduler_make_events(d, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = host_reports_new(d->base, d->config, publisher_store(d->publisher), on_reports, d, &d->nodes, err);
    if (rc == PMIXFAB_OK)
        rc =
            store_generation(publisher_store(d->publisher), &d->status.generation, &d->status.published, err);
    if (rc != PMIXFAB_OK || d->config->once)
        return rc;
    rc = monitoring_start(d, err);
    if (rc == PMIXFAB_OK)
        rc = round_timers_start(d, err);
    if (rc == PMIXFAB_OK)
        rc = hooks_new(d->base, d->config, publisher_store(d->publisher), &d->hooks, err);
    if (rc == PMIXFAB_OK)
        rc = trim_new(d->base, d->config, publisher_store(d->publisher), is_publishing, d, &d->trimmer, err);
    if (rc == PMIXFAB_OK)
        rc = backup_new(d->base, d->config, &d->backup, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (subscribers_start(d->base) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    start_ingest(d);
    rc = server_start(d->config, err);
    if (rc != PMIXFAB_OK)
        return rc;
    d->serving = true;
    rc = control_new(d->base, d->config, control_scheduler_ops, d, &d->control, err);
    if (rc == PMIXFAB_OK)
        rc = metrics_file_new(d->base, d->config, metrics_of_scheduler, d, &d->metrics, err);
    host_reports_on_heard(d->nodes, ops_host_heard, NULL);
    if (rc == PMIXFAB_OK)
        rc = process_write_uri(d->config, server_uri(), err);
    return rc;
}

static int scheduler_run(const struct config *config)
{
    struct daemon d = {.config = config};
    struct fab_err err = {""};
    int rc = scheduler_start(&d, &err);
    if (rc != PMIXFAB_OK) {
        log_error("%s", err.text);
        process_ready(false);
        scheduler_stop(&d);
        return 1;
    }
    process_ready(true);
    trim_soon(d.trimmer);
    if (!config->once)
        log_info("serving generation %llu at %s", (unsigned long long)d.status.generation, server_uri());
    daemon_refresh(&d, NULL, false); /* from within the loop, which can be left then */
    event_base_dispatch(d.base);
    rc = config->once ? d.last_code : PMIXFAB_OK;
    scheduler_stop(&d);
    return rc == PMIXFAB_OK ? 0 : 1;
}

/* The rest of --check-config: what the configuration names must be readable, too. */
static int config_check_names(const struct config *config)
{
    struct fab_err err = {""};
    struct fab_names *names = NULL;
    if (publisher_names(config, &names, &err) != PMIXFAB_OK) {
        fprintf(stderr, "fabricd: %s\n", err.text);
        return 2;
    }
    fab_names_free(names);
    printf("the configuration is good\n");
    return 0;
}

int fabricd_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], SWEEP_CHILD_OPTION) == 0)
        return sweep_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], HOST_SCAN_CHILD_OPTION) == 0)
        return host_scan_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], MONITOR_CHILD_OPTION) == 0)
        return monitor_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], INVENTORY_CHILD_OPTION) == 0)
        return host_scan_inventory_child(argc, argv);
    if (argc > 1 && strcmp(argv[1], DELIVER_CHILD_OPTION) == 0)
        return deliver_child(argc, argv);
    struct config config;
    config_init(&config);
    int status = 2;
    if (options_parse(argc, argv, &config) == PMIXFAB_OK) {
        log_open(config.log, 0);
        if (config.check_only) {
            status = config_check_names(&config);
        } else if (config.record != NULL) {
            status = host_scan_record(&config);
        } else if (config.foreground || process_daemonize(&config) == PMIXFAB_OK) {
            process_descriptors();
            metrics_started();
            status = config.role == ROLE_NODE ? node_run(&config) : scheduler_run(&config);
        } else {
            status = 1;
        }
    }
    config_destroy(&config);
    return status;
}
