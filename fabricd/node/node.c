#include "fabricd/node/node.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/base/timer.h"
#include "fabricd/node/node_priv.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/process/process.h"
#include "fabricd/serving/rundir.h"

/* ---- for the control socket --------------------------------------------------------------------- */

void node_status(const struct node *node, struct node_status *out)
{
    struct served_set *set = served_get(node->served);
    *out = node->status;
    deliver_status(node->deliver, &out->deliver);
    out->generation = set == NULL ? 0 : set->generation;
    out->published = set == NULL ? 0 : set->published;
    out->scanning = node->scan != NULL;
    served_set_put(set);
}

void node_scan_soon(struct node *node)
{
    node->again = true;
    if (node->scan == NULL)
        timer_after(node->timer, 0);
}

uint64_t node_scan(struct node *node)
{
    node->must = true;
    node_scan_soon(node);
    return node->number + 1;
}

/* ---- stale or not ------------------------------------------------------------------------------- */

void node_tell_manager(const struct node *node)
{
    struct served_set *set = served_get(node->served);
    notify_status("serving generation %llu%s%s", set == NULL ? 0 : (unsigned long long)set->generation,
                  node->status.stale ? ", stale: " : "", node->status.stale_reason);
    served_set_put(set);
}

static void node_set_stale(struct node *node, bool stale, const char *reason)
{
    struct node_status *s = &node->status;
    if (stale && !s->stale)
        s->stale_since = clock_now(CLOCK_REALTIME);
    if (stale && strcmp(s->stale_reason, reason) != 0)
        log_warning("%s; serving the last published snapshots", reason);
    if (!stale && s->stale)
        log_info("the scheduler confirms the served snapshots");
    s->stale = stale;
    if (!stale)
        s->stale_since = 0;
    snprintf(s->stale_reason, sizeof(s->stale_reason), "%s", stale ? reason : "");
    if (served_is_stale(node->served) != stale) {
        rundir_set_stale(node->config->rundir, node->served, stale);
    }
    node_tell_manager(node);
}

static void end_once(struct node *node, int code)
{
    if (!node->config->once)
        return;
    if (code != PMIXFAB_OK)
        node->once_code = code;
    if (code != PMIXFAB_OK || (node->mirrored && node->status.last_scan != 0 && node->delivering == 0))
        event_base_loopbreak(node->loop.base);
}

/* ---- the scheduler's side ----------------------------------------------------------------------- */

uint64_t node_acked(void *arg)
{
    const struct node *node = arg;
    return deliver_acked(node->deliver);
}

/* The node counts as connected when the first news have arrived. */
void node_on_news(const struct channel_news *news, bool at_once, void *arg)
{
    struct node *node = arg;
    node->status.connected = true;
    deliver_connected(node->deliver, true);
    if (!node->config->once)
        deliver_heard(node->deliver, news->held, news->scan, at_once);
    node->scheduler_stale = news->stale;
    mirror_news(node->mirror, news);
}

void node_on_connected(bool connected, void *arg)
{
    struct node *node = arg;
    node_wait_connected(node->wait, connected);
    if (connected)
        return;
    node->status.connected = false;
    deliver_connected(node->deliver, false);
    node_set_stale(node, true, "the scheduler cannot be reached");
}

void node_on_not_connected(int code, const char *reason, void *arg)
{
    struct node *node = arg;
    const bool away = deliver_may_pass(code);
    log_warning("%s", reason);
    node_set_stale(node, true, away ? "the scheduler cannot be reached" : reason);
    deliver_refused(node->deliver, away ? PMIXFAB_OK : code, reason);
}

void node_on_mirrored(int code, const char *reason, void *arg)
{
    struct node *node = arg;
    char text[400];
    node->mirrored |= code == PMIXFAB_OK;
    if (code != PMIXFAB_OK) {
        const bool away = code == PMIXFAB_ERR_UNREACH || code == PMIXFAB_ERR_TIMEOUT;
        snprintf(text, sizeof(text), "%s%s",
                 away ? "" : "the scheduler's snapshots are not mirrored: ", reason);
        node_set_stale(node, true, text);
    } else if (node->status.connected) {
        node_set_stale(node, node->scheduler_stale, "the scheduler's sweeps fail");
    }
    end_once(node, code);
}

void node_on_mirror_changes(bool pending, const struct event_plane *planes, uint32_t n, uint64_t generation,
                            void (*next)(void *cbdata), void *cbdata, void *arg)
{
    struct node *node = arg;
    for (uint32_t i = 0; node->control != NULL && i < n; i++)
        control_event(node->control, pending, &planes[i], generation);
    if (pending)
        next(cbdata);
    else
        pmix_server_wait(node->pmix, generation, next, cbdata);
}

void node_on_mirror_served(void *arg)
{
    (void)arg;
}

/* Answer the callers that wait for this scan. */
void node_on_upload(int code, const char *reason, void *arg)
{
    struct node *node = arg;
    uint64_t number = node->delivering;
    node->delivering = 0;
    if (number != 0)
        node->on_scanned(node, number, code, reason);
    end_once(node, code);
}

void node_on_scan_request(void *arg)
{
    node_scan(arg);
}

/* ---- scanning ------------------------------------------------------------------------------------ */

static void node_wait_for_next(struct node *node)
{
    if (node->again)
        timer_after(node->timer, 0);
    else if (node->config->interval != 0 && !node->config->once)
        timer_after(node->timer, node->config->interval * 1000ll);
}

void node_interval_changed(struct node *node)
{
    if (node->scan != NULL || node->again)
        return;
    timer_cancel(node->timer);
    node_wait_for_next(node);
}

/* End a scan that has no result. */
static void scan_failed(struct node *node, int code, const char *reason)
{
    log_error("host scan: %s", reason);
    node->delivering = node->number;
    node_on_upload(code, reason, node);
    node_wait_for_next(node);
}

static void keep_probe_error(struct node *node, const struct host_scan_result *result)
{
    node->status.last_scan = clock_now(CLOCK_REALTIME);
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
    count(node->counts, result->failed > 0 ? COUNT_SCANS_FAILED : COUNT_SCANS);
    log_debug("host scan %llu: %.1f ms, %u of %u probes failed, %u items%s", (unsigned long long)node->number,
              result->milliseconds, result->failed, result->asked, result->report.n_items,
              found ? ", changed" : "");
    if (before == NULL && result->asked > 0 && result->failed == result->asked) {
        scan_failed(node, PMIXFAB_ERR_IO, result->err.text); /* unknown is not "no devices" */
        return;
    }
    node->must = node->again && node->must; /* requests during the scan concern the next one */
    node->delivering = node->number;
    if (node->control != NULL)
        control_progress(node->control, "delivering");
    deliver_report(node->deliver, &result->report, result->failed_sources, result->unknown, must);
    malloc_trim(0);
    node_wait_for_next(node);
}

void node_repair_rundir(struct node *node)
{
    struct fab_err err = {""};
    if (node->control == NULL || !process_lost(node->config, node->lock))
        return;
    struct served_set *set = served_get(node->served);
    process_unlock(node->lock);
    int rc = process_lock(node->config, &node->lock, &err);
    if (rc == PMIXFAB_OK)
        rc = control_listen(node->control, &err);
    if (rc == PMIXFAB_OK)
        pmix_server_repair(node->pmix);
    if (rc == PMIXFAB_OK)
        rc = rundir_mend(node->config->rundir, set, served_is_stale(node->served), NULL, &err);
    served_set_put(set);
    deliver_state(node->deliver);
    if (rc == PMIXFAB_OK)
        log_warning("run directory: %s was removed: created again", node->config->rundir);
    else
        log_error("run directory: it was removed and cannot be created again: %s", err.text);
}

uint32_t node_mend(void *arg)
{
    struct node *node = arg;
    if (mirror_is_busy(node->mirror)) /* the mirror does the same when it has finished */
        return 0;
    struct served_set *set = served_get(node->served);
    struct fab_err err = {""};
    uint32_t mended;
    if (rundir_mend(node->config->rundir, set, served_is_stale(node->served), &mended, &err) != PMIXFAB_OK)
        log_error("run directory: %s", err.text);
    served_set_put(set);
    return mended;
}

static void node_start_host_scan(struct node *node)
{
    struct fab_err err = {""};
    node_repair_rundir(node);
    node_mend(node);
    node->again = false;
    node->scans_for_devices = node->device_changed;
    node->device_changed = false;
    node->number++;
    uint32_t unknown;
    const struct fab_report *before = deliver_current(node->deliver, &unknown);
    int rc = host_scan_start(node->loop.base, node->config, before, unknown, node_on_host_scan, node,
                             &node->scan, &err);
    if (rc != PMIXFAB_OK)
        scan_failed(node, rc, err.text);
}

void node_on_device(void *arg)
{
    struct node *node = arg;
    log_info("devices: a device has changed");
    node->device_changed = true;
    node_scan_soon(node);
}

/* ---- events of the loop ------------------------------------------------------------------------- */

void node_on_timeout(void *arg)
{
    struct node *node = arg;
    if (node->scan == NULL)
        node_start_host_scan(node);
}
