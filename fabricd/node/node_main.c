/* node_main.c - the role node: creation and end of its parts. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/components.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/node/node_priv.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/process/process.h"
#include "fabricd/serving/rundir.h"

/* Without its run directory the daemon has no control socket, so SIGHUP restores that directory, too. */
static void node_on_hangup(void *arg)
{
    struct node *node = arg;
    if (node->control == NULL) /* --once */
        return;
    node_repair_rundir(node);
    control_hangup(node->control);
}

static void node_on_turn(void *arg)
{
    const struct node *node = arg;
    control_turn(node->control);
}

/* Most settings are read where they are used. The parts below keep derived values. */
static void node_on_reload(void *arg, const struct config_reload *reload)
{
    struct node *node = arg;
    if (config_reload_has(reload, "metrics", "file") || config_reload_has(reload, "metrics", "listen")) {
        metrics_file_free(node->metrics);
        if (metrics_file_new(node->loop.base, node->config->metrics_file, node->config->metrics_listen,
                             node->counts, metrics_of_node, node, &node->metrics) != PMIXFAB_OK)
            log_error("metrics: out of memory");
    }
    if (config_reload_has(reload, "fabricd", "interval"))
        node_interval_changed(node);
}

static void node_stop(struct node *node)
{
    host_scan_cancel(node->scan);
    process_remove_uri(node->config, node->lock);
    control_free(node->control);
    node->control = NULL;
    metrics_file_free(node->metrics);
    devices_free(node->devices);
    pmix_server_free(node->pmix);
    channel_client_free(node->client);
    node_wait_free(node->wait);
    deliver_free(node->deliver);
    mirror_free(node->mirror);
    timer_free(node->timer);
    served_free(node->served);
    counts_free(node->counts);
    loop_free(&node->loop);
    process_unlock(node->lock);
}

static int make_parts(struct node *node, struct fab_err *err)
{
    const struct deliver_calls deliver_calls = {node_on_upload, node_on_scan_request, node};
    const struct mirror_calls mirror_calls = {node_on_mirror_changes, node_on_mirror_served, node_on_mirrored,
                                              node};
    const struct channel_client_calls client_calls = {node_on_connected, node_on_not_connected, node};
    const struct node_wait_calls wait_calls = {node_acked, node_on_news, node};
    if (loop_new(&node->loop) != PMIXFAB_OK ||
        (node->timer = timer_new(node->loop.base, node_on_timeout, node)) == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "cannot create the event loop");
    int rc = channel_client_new(node->loop.base, node->config, &client_calls, &node->client, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if ((node->pmix = pmix_server_new()) == NULL || (node->counts = counts_new()) == NULL ||
        (node->served = served_new()) == NULL ||
        node_wait_new(node->loop.base, node->client, &wait_calls, &node->wait) != PMIXFAB_OK ||
        deliver_new(node->loop.base, node->config, node->counts, node->client, &deliver_calls,
                    &node->deliver) != PMIXFAB_OK)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    return mirror_new(node->loop.base, node->config, node->client, &mirror_calls, node->served, &node->mirror,
                      err);
}

/* Start the PMIx server for programs of this host, if it is configured. The loop runs meanwhile. */
static int node_serve(struct node *node, struct fab_err *err)
{
    int rc = pmix_server_start(node->pmix, node->loop.base, node->config, err);
    node->serving = rc == PMIXFAB_OK;
    return rc;
}

/* Start the parts that only a daemon needs, not --once. */
static int node_stay(struct node *node, struct fab_err *err)
{
    struct pmix_server_status pmix;
    struct component_unfit unfit;
    components_warn(&unfit);
    int rc = node->config->node_serve ? node_serve(node, err) : PMIXFAB_OK;
    if (rc == PMIXFAB_OK)
        rc = devices_new(node->loop.base, node_on_device, node, &node->devices, err);
    if (rc == PMIXFAB_OK)
        rc = control_new(node->loop.base, node->config, node->counts, node_control_ops, node, &node->control,
                         err);
    if (rc != PMIXFAB_OK)
        return rc;
    pmix_server_status(node->pmix, &pmix);
    if (pmix.separated)
        control_refuse(node->control, pmix.uid);
    control_on_reload(node->control, node_on_reload);
    control_on_await(node->control, node_await_facts);
    control_on_mend(node->control, node_mend);
    return metrics_file_new(node->loop.base, node->config->metrics_file, node->config->metrics_listen,
                            node->counts, metrics_of_node, node, &node->metrics) == PMIXFAB_OK
               ? PMIXFAB_OK
               : fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
}

/* In this order: the last mirrored state is served before anything else is done. */
static int node_start(struct node *node, struct fab_err *err)
{
    int rc = process_lock(node->config, &node->lock, err);
    if (rc == PMIXFAB_OK)
        rc = make_parts(node, err);
    if (rc != PMIXFAB_OK)
        return rc;
    node->status.stale = true; /* until the scheduler confirms it */
    node->status.stale_since = clock_now(CLOCK_REALTIME);
    snprintf(node->status.stale_reason, sizeof(node->status.stale_reason),
             "the scheduler has not answered yet");
    rundir_set_stale(node->config->rundir, node->served, true);
    if (!node->config->once)
        rc = node_stay(node, err);
    if (rc == PMIXFAB_OK)
        channel_client_start(node->client);
    return rc;
}

int node_begin(struct config *config, struct node **out)
{
    struct node *node = *out = calloc(1, sizeof(*node));
    struct fab_err err = {""};
    if (node == NULL)
        return PMIXFAB_ERR_NOMEM;
    node->config = config;
    node->on_scanned = node_control_scanned;
    node->loop.on_hangup = node_on_hangup;
    node->loop.on_turn = node_on_turn;
    node->loop.cbdata = node;
    int rc = node_start(node, &err);
    if (rc != PMIXFAB_OK) {
        log_error("%s", err.text);
        process_ready(false);
        node_stop(node);
        free(node);
        *out = NULL;
        return rc;
    }
    process_ready(true);
    node_tell_manager(node);
    if (!config->once)
        log_info("node %s: %s%s, scheduler %s", config->host, node->serving ? "serving at " : "mirroring",
                 pmix_server_uri(node->pmix), config->scheduler);
    node_scan_soon(node);
    return PMIXFAB_OK;
}

struct loop *node_loop(struct node *node)
{
    return &node->loop;
}

int node_end(struct node *node)
{
    const int code = node->once_code;
    node_stop(node);
    free(node);
    return code;
}

int node_run(struct config *config)
{
    struct node *node;
    if (node_begin(config, &node) != PMIXFAB_OK)
        return 1;
    if (!node->loop.ended) /* the end may have been requested while the PMIx server started */
        loop_run(&node->loop);
    return node_end(node) == PMIXFAB_OK ? 0 : 1;
}
