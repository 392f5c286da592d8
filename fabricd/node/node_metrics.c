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
    metrics_one(out, "fabricd_generation", "gauge", "Served generation.", (double)s.generation);
    metrics_one(out, "fabricd_published_timestamp_seconds", "gauge",
                "Time of publication of the served generation; 0: none is served.",
                (double)s.published / 1e6);
    metrics_one(out, "fabricd_connected", "gauge", "Connection to the scheduler; 1: connected.", s.connected);
    metrics_one(out, "fabricd_stale", "gauge", "Stale state; 1: the served data may be out of date.",
                s.stale);
    metrics_family(out, "fabricd_host_scans_total", "counter", "Scans of this host's devices, by result.");
    metrics_sample(out, "fabricd_host_scans_total", "result", "ok",
                   (double)counted(node->counts, COUNT_SCANS));
    metrics_sample(out, "fabricd_host_scans_total", "result", "failed",
                   (double)counted(node->counts, COUNT_SCANS_FAILED));
    metrics_one(out, "fabricd_host_scan_duration_seconds", "gauge", "Duration of the last scan.",
                s.scan_ms / 1e3);
    metrics_one(out, "fabricd_host_scan_timestamp_seconds", "gauge", "End time of the last scan; 0: none.",
                (double)s.last_scan / 1e6);
    metrics_one(out, "fabricd_probes", "gauge", "Probes of the last scan.", s.probes);
    metrics_one(out, "fabricd_probes_failed", "gauge", "Failed probes of the last scan.", s.probes_failed);
    metrics_one(out, "fabricd_deliveries_total", "counter", "Deliveries that the scheduler acknowledged.",
                (double)counted(node->counts, COUNT_DELIVERIES));
    metrics_one(out, "fabricd_delivery_timestamp_seconds", "gauge",
                "Time of the last acknowledged delivery; 0: none.", (double)s.deliver.delivered / 1e6);
    metrics_one(out, "fabricd_delivery_refused", "gauge",
                "Refused report; 1: the scheduler rejects the report of this host.", s.deliver.refused);
    metrics_one(out, "fabricd_delivery_pending", "gauge",
                "Pending report; 1: the report of this host is not acknowledged.", s.deliver.under_way);
    if (node->serving) {
        pmix_server_metrics(out, node->pmix);
    }
}
