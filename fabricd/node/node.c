#include "fabricd/node/node.h"

#include <event2/thread.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/discovery/host_scan.h"
#include "fabricd/metrics/counters.h"
#include "fabricd/node/node_control.h"
#include "fabricd/node/node_mirror.h"
#include "fabricd/node/node_netlink.h"
#include "fabricd/operator/ops_metrics.h"
#include "fabricd/process/process.h"
#include "fabricd/server/server.h"
#include "fabricd/server/subscribers.h"
#include "fabricd/serving/rundir.h"
#include "fabricd/util/log.h"
#include "fabricd/util/now.h"

#define RELAY_MS 5000 /* a tool waits so long for the scheduler, then the mirror answers */

/*
 * Two things go on side by side. Looking: idle -> scanning -> delivering -> idle; what is asked for meanwhile
 * is done next. Mirroring: what the scheduler has published is fetched when it says that there is something.
 */
struct node {
    const struct config *config;
    struct event_base *base;
    struct control *control;
    struct metrics_file *metrics;
    struct loop_queue *queue;
    struct deliver *deliver;
    struct mirror *mirror;
    struct devices *devices;
    struct host_scan *scan;
    struct event *timer, *signals[3];
    bool serving, relaying;
    bool again, must;       /* another scan was asked for; its report is to be delivered in any case */
    bool scans_for_devices; /* the scan that runs was begun because a device changed */
    bool device_changed;    /* the next one will be */
    uint64_t number;        /* of the scan that runs or ran last */
    uint64_t delivering;    /* number of the scan whose report is delivered; 0: none */
    bool mirrored;
    bool scheduler_stale; /* it says so of itself */
    int once_code;        /* --once: what went wrong */
    struct node_status status;
};

/* ---- for the control socket --------------------------------------------------------------------- */

void node_status(const struct node *node, struct node_status *out)
{
    struct served_set *set = served_get();
    *out = node->status;
    deliver_status(node->deliver, &out->deliver);
    out->generation = set == NULL ? 0 : set->generation;
    out->published = set == NULL ? 0 : set->published;
    out->scanning = node->scan != NULL;
    out->interval = node->config->interval;
    out->host = node->config->host;
    out->scheduler = node->config->scheduler;
    served_set_put(set);
}

static void scan_soon(struct node *node)
{
    const struct timeval now = {0};
    node->again = true;
    if (node->scan == NULL)
        event_add(node->timer, &now);
}

uint64_t node_scan(struct node *node)
{
    node->must = true;
    scan_soon(node);
    return node->number + 1;
}

/* ---- stale or not ------------------------------------------------------------------------------- */

static void set_stale(struct node *node, bool stale, const char *reason)
{
    struct node_status *s = &node->status;
    if (stale && !s->stale)
        s->stale_since = microseconds_now(CLOCK_REALTIME);
    if (stale && strcmp(s->stale_reason, reason) != 0)
        log_warning("%s; what was published last is served", reason);
    if (!stale && s->stale)
        log_info("the scheduler confirms what is served");
    s->stale = stale;
    if (!stale)
        s->stale_since = 0;
    snprintf(s->stale_reason, sizeof(s->stale_reason), "%s", stale ? reason : "");
    if (served_is_stale() != stale) {
        served_set_stale(stale);
        subscribers_notify(); /* of the other servers of this host */
    }
}

static void end_once(struct node *node, int code)
{
    if (!node->config->once)
        return;
    if (code != PMIXFAB_OK)
        node->once_code = code;
    if (code != PMIXFAB_OK || (node->mirrored && node->status.last_scan != 0 && node->delivering == 0))
        event_base_loopbreak(node->base);
}

/* ---- the scheduler's side ----------------------------------------------------------------------- */

static void node_on_news(bool connected, const struct relay_news *news, void *arg)
{
    struct node *node = arg;
    node->status.connected = connected;
    deliver_connected(node->deliver, connected);
    if (connected) {
        node->scheduler_stale = news->stale;
        mirror_news(node->mirror, news);
    } else {
        mirror_lost(node->mirror);
        set_stale(node, true, "the scheduler cannot be reached");
    }
}

static void on_mirrored(int code, const char *reason, void *arg)
{
    struct node *node = arg;
    char text[400];
    node->mirrored |= code == PMIXFAB_OK;
    if (code != PMIXFAB_OK) {
        const bool away = code == PMIXFAB_ERR_UNREACH || code == PMIXFAB_ERR_TIMEOUT;
        snprintf(text, sizeof(text), "%s%s",
                 away ? "" : "the scheduler's snapshots are not mirrored: ", reason);
        set_stale(node, true, text);
    } else if (node->status.connected) {
        set_stale(node, node->scheduler_stale, "the scheduler's sweeps fail");
    }
    end_once(node, code);
}

static void on_mirror_event(bool pending, const struct event_plane *plane, uint64_t generation, void *arg)
{
    struct node *node = arg;
    if (node->control != NULL)
        control_event(node->control, pending, plane, generation);
}

/* Whoever waits for this scan hears what came of it. */
static void node_on_upload(int code, const char *reason, void *arg)
{
    struct node *node = arg;
    uint64_t number = node->delivering;
    node->delivering = 0;
    if (node->control != NULL && number != 0)
        node_control_scanned(node->control, node, number, code, reason);
    end_once(node, code);
}

static void on_scan_request(void *arg)
{
    node_scan(arg);
}

/* ---- scanning ------------------------------------------------------------------------------------ */

static void node_wait_for_next(struct node *node)
{
    struct timeval interval = {.tv_sec = node->config->interval};
    if (node->again)
        interval.tv_sec = 0;
    else if (node->config->interval == 0 || node->config->once)
        return;
    event_add(node->timer, &interval);
}

/* A scan that came to nothing. */
static void scan_failed(struct node *node, int code, const char *reason)
{
    log_error("host scan: %s", reason);
    node->delivering = node->number;
    node_on_upload(code, reason, node);
    node_wait_for_next(node);
}

static void keep_probe_error(struct node *node, const struct host_scan_result *result)
{
    node->status.last_scan = microseconds_now(CLOCK_REALTIME);
    node->status.scan_ms = result->milliseconds;
    node->status.probes = result->asked;
    node->status.probes_failed = result->failed;
    snprintf(node->status.probe_error, sizeof(node->status.probe_error), "%s",
             result->failed > 0 ? result->err.text : "");
}

static void node_on_host_scan(struct host_scan_result *result, void *arg)
{
    struct node *node = arg;
    uint32_t unknown;
    const struct fab_report *before = deliver_current(node->deliver, &unknown);
    bool must = node->must;
    node->scan = NULL;
    keep_probe_error(node, result);
    bool found = before == NULL || !fab_report_equal(before, &result->report);
    if (node->scans_for_devices || found)
        netlink_scanned(node->devices, found);
    count(result->failed > 0 ? COUNT_SCANS_FAILED : COUNT_SCANS);
    log_debug("host scan %llu: %.1f ms, %u of %u probes failed, %u items%s", (unsigned long long)node->number,
              result->milliseconds, result->failed, result->asked, result->report.n_items,
              found ? ", other than before" : "");
    if (before == NULL && result->asked > 0 && result->failed == result->asked) {
        scan_failed(node, PMIXFAB_ERR_IO, result->err.text); /* nothing is known, which is not "no devices" */
        return;
    }
    node->must = node->again && node->must; /* of those who asked meanwhile */
    node->delivering = node->number;
    if (node->control != NULL)
        control_progress(node->control, "delivering");
    deliver_report(node->deliver, &result->report, result->failed_sources, result->unknown, must);
    malloc_trim(0);
    node_wait_for_next(node);
}

/* Somebody removed the run directory: make it anew, so that callers find us again. */
static void node_repair_rundir(struct node *node)
{
    struct fab_err err = {""};
    if (node->control == NULL || !process_lost(node->config))
        return;
    struct served_set *set = served_get();
    process_unlock();
    int rc = process_lock(node->config, &err);
    if (rc == PMIXFAB_OK)
        rc = control_listen(node->control, &err);
    if (rc == PMIXFAB_OK)
        rc = process_write_uri(node->config, server_uri(), &err);
    if (rc == PMIXFAB_OK)
        rc = rundir_mend(node->config->rundir, set, &err);
    served_set_put(set);
    deliver_state(node->deliver);
    if (rc == PMIXFAB_OK)
        log_warning("run directory: %s was removed, made anew", node->config->rundir);
    else
        log_error("run directory: it was removed, and cannot be made anew: %s", err.text);
}

static void node_start_host_scan(struct node *node)
{
    struct fab_err err = {""};
    node_repair_rundir(node);
    node->again = false;
    node->scans_for_devices = node->device_changed;
    node->device_changed = false;
    node->number++;
    uint32_t unknown;
    const struct fab_report *before = deliver_current(node->deliver, &unknown);
    int rc = host_scan_start(node->base, node->config, before, unknown, node_on_host_scan, node, &node->scan,
                             &err);
    if (rc != PMIXFAB_OK)
        scan_failed(node, rc, err.text);
}

static void on_device(void *arg)
{
    struct node *node = arg;
    log_info("devices: something has changed");
    node->device_changed = true;
    scan_soon(node);
}

/* ---- events of the loop ------------------------------------------------------------------------- */

static void node_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct node *node = arg;
    (void)fd, (void)what;
    if (node->scan == NULL)
        node_start_host_scan(node);
}

static void node_on_signal(evutil_socket_t signo, short what, void *arg)
{
    struct node *node = arg;
    (void)what;
    if (signo == SIGHUP) {
        log_info("SIGHUP: scanning");
        scan_soon(node);
        return;
    }
    log_info("%s: stopping", signo == SIGTERM ? "SIGTERM" : "SIGINT");
    event_base_loopbreak(node->base);
}

static int node_make_events(struct node *node, struct fab_err *err)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGINT};
    evthread_use_pthreads();
    node->base = event_base_new();
    node->timer = node->base == NULL ? NULL : evtimer_new(node->base, node_on_timeout, node);
    bool ok = node->timer != NULL;
    for (size_t i = 0; ok && i < 3; i++) {
        node->signals[i] = evsignal_new(node->base, signals[i], node_on_signal, node);
        ok = node->signals[i] != NULL && event_add(node->signals[i], NULL) == 0;
    }
    signal(SIGPIPE, SIG_IGN);
    return ok ? PMIXFAB_OK : fab_fail(err, PMIXFAB_ERR_NOMEM, "the event loop cannot be made");
}

/* ---- start and stop ----------------------------------------------------------------------------- */

static void node_stop(struct node *node)
{
    host_scan_cancel(node->scan);
    process_remove_uri(node->config);
    control_free(node->control);
    node->control = NULL;
    metrics_file_free(node->metrics);
    devices_free(node->devices);
    if (node->relaying)
        pmixfab_relay_close();
    subscribers_stop();
    if (node->serving)
        server_stop();
    loop_queue_free(node->queue);
    deliver_free(node->deliver);
    mirror_free(node->mirror);
    if (node->timer != NULL)
        event_free(node->timer);
    for (size_t i = 0; i < 3; i++)
        if (node->signals[i] != NULL)
            event_free(node->signals[i]);
    served_swap(NULL);
    if (node->base != NULL)
        event_base_free(node->base);
    process_unlock();
}

/* Two daemons cannot share a run directory; and one that connects to itself waits for itself. */
static int check_not_own(const struct config *config, struct fab_err *err)
{
    char own[PATH_MAX], other[PATH_MAX];
    if (realpath(config->rundir, own) == NULL || realpath(config->scheduler, other) == NULL ||
        strcmp(own, other) != 0)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                    "the run directory %s is the scheduler's: choose another --rundir for the node",
                    config->rundir);
}

static int make_parts(struct node *node, struct fab_err *err)
{
    const struct deliver_calls deliver_calls = {node_on_upload, on_scan_request, node};
    const struct mirror_calls mirror_calls = {on_mirror_event, on_mirrored, node};
    if (loop_queue_new(node->base, &node->queue) != PMIXFAB_OK ||
        deliver_new(node->base, node->config, node->queue, &deliver_calls, &node->deliver) != PMIXFAB_OK ||
        subscribers_start(node->base) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    int rc = mirror_new(node->base, node->config, node->queue, &mirror_calls, &node->mirror, err);
    if (rc == PMIXFAB_OK && !node->config->once)
        rc = devices_new(node->base, on_device, node, &node->devices, err);
    return rc;
}

static int open_relay(struct node *node, struct fab_err *err)
{
    const char *where = node->config->scheduler;
    pmixfab_relay_deadline(RELAY_MS);
    relay_in_between();
    loop_queue_on_news(node->queue, node_on_news, node);
    int rc = pmixfab_relay_open(where);
    node->relaying = rc == PMIXFAB_OK;
    return rc == PMIXFAB_OK
               ? rc
               : fab_fail(err, rc, "scheduler %s: %s: give the line in its fabricd.uri, or its run directory",
                          where, pmixfab_strerror(rc));
}

/* In this order: what was mirrored last is served before anything else is done. */
static int node_start(struct node *node, struct fab_err *err)
{
    int rc = process_lock(node->config, err);
    if (rc == PMIXFAB_OK)
        rc = check_not_own(node->config, err);
    if (rc == PMIXFAB_OK)
        rc = node_make_events(node, err);
    if (rc == PMIXFAB_OK)
        rc = make_parts(node, err);
    if (rc == PMIXFAB_OK)
        rc = server_start(node->config, err);
    if (rc != PMIXFAB_OK)
        return rc;
    node->serving = true;
    node->status.stale = true; /* until the scheduler has said that it is still so */
    node->status.stale_since = microseconds_now(CLOCK_REALTIME);
    snprintf(node->status.stale_reason, sizeof(node->status.stale_reason),
             "the scheduler has not answered yet");
    served_set_stale(true);
    if (!node->config->once) {
        rc = control_new(node->base, node->config, node_control_ops, node, &node->control, err);
        if (rc == PMIXFAB_OK)
            rc = metrics_file_new(node->base, node->config, metrics_of_node, node, &node->metrics, err);
        if (rc == PMIXFAB_OK)
            rc = process_write_uri(node->config, server_uri(), err);
    }
    return rc == PMIXFAB_OK ? open_relay(node, err) : rc;
}

int node_run(const struct config *config)
{
    struct node node = {.config = config};
    struct fab_err err = {""};
    int rc = node_start(&node, &err);
    if (rc != PMIXFAB_OK) {
        log_error("%s", err.text);
        process_ready(false);
        node_stop(&node);
        return 1;
    }
    process_ready(true);
    if (!config->once)
        log_info("node %s: serving at %s, scheduler %s", config->host, server_uri(), config->scheduler);
    scan_soon(&node);
    event_base_dispatch(node.base);
    node_stop(&node);
    return node.once_code == PMIXFAB_OK ? 0 : 1;
}
