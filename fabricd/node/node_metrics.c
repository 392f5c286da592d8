/* node_metrics.c - the metrics of a node. */
#include "fabricd/base/counts.h"
#include "fabricd/base/metrics.h"
#include "fabricd/node/node_priv.h"
#include "fabricd/pmix/pmix_server.h"

void metrics_of_node(FILE *out, const void *owner)
{
    const struct node *node = owner;
    struct node_status s;
    node_status(node, &s);
    metrics_of_both(out, "node", node->counts);
    metrics_one(out, "fabricd_generation", "gauge", "Generation that is served.", (double)s.generation);
    metrics_one(out, "fabricd_published_timestamp_seconds", "gauge",
                "When it was published; 0: nothing is served.", (double)s.published / 1e6);
    metrics_one(out, "fabricd_connected", "gauge", "1: connected to the scheduler.", s.connected);
    metrics_one(out, "fabricd_stale", "gauge", "1: what is served may be out of date.", s.stale);
    metrics_family(out, "fabricd_host_scans_total", "counter",
                   "Scans of this host's devices, by how they ended.");
    metrics_sample(out, "fabricd_host_scans_total", "result", "ok",
                   (double)counted(node->counts, COUNT_SCANS));
    metrics_sample(out, "fabricd_host_scans_total", "result", "failed",
                   (double)counted(node->counts, COUNT_SCANS_FAILED));
    metrics_one(out, "fabricd_host_scan_duration_seconds", "gauge", "Time that the last scan took.",
                s.scan_ms / 1e3);
    metrics_one(out, "fabricd_host_scan_timestamp_seconds", "gauge", "When the last scan ended; 0: none has.",
                (double)s.last_scan / 1e6);
    metrics_one(out, "fabricd_probes", "gauge", "Probes that were asked the last time.", s.probes);
    metrics_one(out, "fabricd_probes_failed", "gauge", "Of them, those that failed.", s.probes_failed);
    metrics_one(out, "fabricd_deliveries_total", "counter", "Deliveries that the scheduler acknowledged.",
                (double)counted(node->counts, COUNT_DELIVERIES));
    metrics_one(out, "fabricd_delivery_timestamp_seconds", "gauge",
                "When the last one was acknowledged; 0: never.", (double)s.deliver.delivered / 1e6);
    metrics_one(out, "fabricd_delivery_refused", "gauge",
                "1: the scheduler does not take what this host has.", s.deliver.refused);
    metrics_one(out, "fabricd_delivery_pending", "gauge", "1: what this host has is not acknowledged.",
                s.deliver.under_way);
    if (node->serving) {
        pmix_server_metrics(out, node->pmix);
    }
}
