/* ops_metrics.c - the metrics of the scheduler. One function for each subject: put new metrics beside similar
 * ones. */
#include <stdlib.h>

#include "fabricd/base/counts.h"
#include "fabricd/base/metrics.h"
#include "fabricd/engine/findings.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/jobs/exports.h"
#include "fabricd/operations/ops.h"
#include "fabricd/pmix/pmix_server.h"
#include "fabricd/serving/served.h"
#include "fabricd/store/store_tables.h"
#include "topo/changes/changes.h"

#define COUNTER "counter"
#define GAUGE   "gauge"

static void about_publishing(FILE *out, const struct counts *counts, const struct scheduler_status *s)
{
    metrics_one(out, "fabricd_generation", GAUGE, "Newest published generation.", (double)s->generation);
    metrics_one(out, "fabricd_published_timestamp_seconds", GAUGE,
                "Time of publication of the newest generation; 0: none.", (double)s->published / 1e6);
    metrics_counted(out, counts, "fabricd_publications_total", "Generations published since the start.",
                    COUNT_PUBLISHED);
    metrics_one(out, "fabricd_publish_duration_seconds", GAUGE,
                "Duration of the last publication, from the finished sweep to the files in place.",
                s->publish_s);
    metrics_family(out, "fabricd_changes_total", COUNTER, "Changes published since the start, by kind.");
    for (unsigned kind = 1; kind < FAB_CHANGE_KINDS; kind++)
        metrics_sample(out, "fabricd_changes_total", "kind", fab_change_name((enum fab_change_kind)kind),
                       (double)counted(counts, count_of_change(kind)));
}

static void about_sweeps(FILE *out, const struct counts *counts, const struct scheduler_status *s)
{
    static const struct metrics_result results[] = {
        {"ok", COUNT_SWEEPS_OK}, {"partial", COUNT_SWEEPS_PARTIAL}, {"failed", COUNT_SWEEPS_FAILED}};
    metrics_results(out, counts, "fabricd_sweeps_total", "Sweeps of the fabric, by result.", results, 3);
    const struct {
        const char *name, *help;
        double value;
    } gauges[] = {
        {"fabricd_sweep_duration_seconds", "Duration of the last sweep.", s->sweep_ms / 1e3},
        {"fabricd_sweep_timestamp_seconds", "End time of the last sweep; 0: none.",
         (double)s->last_sweep / 1e6},
        {"fabricd_stale", "Stale state; 1: sweeps fail, and the served data may be out of date.", s->stale},
        {"fabricd_partial", "Partial sweep; 1: only a part of the fabric answered the last sweep.",
         s->partial},
        {"fabricd_dangling_ports", "Ports that are up and lead nowhere.", s->findings.nowhere},
        {"fabricd_inactive_ports", "Cabled ports that no subnet manager has activated.",
         s->findings.inactive},
        {"fabricd_unnamed_hcas", "HCAs without a host name, named by their GUID.", s->findings.unnamed},
        {"fabricd_missing_hcas", "HCAs missing wholly or in part, whose places are kept for a while.",
         s->waits.missing},
        {"fabricd_suppressed_cables", "Suppressed cables.", s->waits.suppressed},
        {"fabricd_suppressed_switches", "Switches suppressed with all of their cables.",
         s->waits.suppressed_switches},
    };
    for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
        metrics_one(out, gauges[i].name, GAUGE, gauges[i].help, gauges[i].value);
}

static void about_managers(FILE *out, const struct counts *counts, const struct scheduler *scheduler)
{
    const struct manager *manager;
    const char *probe;
    metrics_family(out, "fabricd_subnet_manager_up", GAUGE,
                   "Subnet manager of the probe's subnet; 1: it answers light sweeps.");
    for (unsigned i = 0; (manager = scheduler_subnet_manager(scheduler, i, &probe)) != NULL; i++)
        if (manager->now.guid != 0 || manager_is_gone(manager))
            metrics_sample(out, "fabricd_subnet_manager_up", "probe", probe, !manager_is_gone(manager));
    metrics_counted(out, counts, "fabricd_subnet_manager_takeovers_total",
                    "Takeovers by another subnet manager.", COUNT_MANAGERS);
}

static void about_findings(FILE *out, const struct findings *findings)
{
    static const char *const families[2][2] = {
        {"fabricd_findings", "Findings of fabricctl check that are not acknowledged."},
        {"fabricd_acknowledged_findings", "Acknowledged findings."}};
    static const char *const labels[2] = {"kind", "severity"};
    for (int acked = 0; acked < 2; acked++) {
        metrics_family(out, families[acked][0], GAUGE, families[acked][1]);
        for (int i = 1; i < FAB_CHECK_KINDS; i++) {
            const enum fab_check_kind kind = (enum fab_check_kind)i;
            const char *const values[2] = {fab_check_name(kind), fab_severity_name(fab_check_severity(kind))};
            metrics_sample_of(out, families[acked][0], labels, values,
                              findings_count(findings, kind, acked != 0));
        }
    }
}

/* For ports that changed within the hour, and for ports that a caller has read. */
static void about_counters(FILE *out, const struct counter_watch *watch)
{
    metrics_family(
        out, "fabricd_port_errors_total", COUNTER,
        "Growth of error counters on watched ports: for an hour after a change, or after the last growth.");
    for (unsigned c = 0; c < PROBE_COUNTERS; c++)
        if (probe_counter_kinds[c].error)
            metrics_sample(out, "fabricd_port_errors_total", "counter", probe_counter_kinds[c].key,
                           (double)watch->grown[c]);
}

static void about_bisection(FILE *out, const struct findings *findings)
{
    double gone = 0;
    uint32_t n;
    const struct finding *const *all = findings_all(findings, &n);
    for (uint32_t i = 0; i < n; i++)
        gone = all[i]->all > gone ? all[i]->all : gone;
    metrics_one(
        out, "fabricd_bisection_left_ratio", GAUGE,
        "Remaining part of the cables between two levels of switches, where most are lost; 1: none is lost.",
        1 - gone);
}

static void about_devices(FILE *out, const struct served_set *set)
{
    metrics_family(out, "fabricd_plane_devices_down", GAUGE,
                   "Devices of a plane whose port is down or missing.");
    for (uint32_t k = 0; set != NULL && k < set->n; k++) {
        struct pmixfab_device device;
        uint32_t down = 0;
        for (uint32_t i = 0; pmixfab_device(set->planes[k]->fab, i, &device) == PMIXFAB_OK; i++)
            down += device.state == PMIXFAB_STATE_DOWN;
        metrics_sample(out, "fabricd_plane_devices_down", "plane", set->planes[k]->info.name, down);
    }
}

static void about_planes(FILE *out, struct served *served)
{
    static const struct {
        const char *name, *help;
        size_t offset; /* in struct pmixfab_plane, a uint32_t */
    } families[] = {
        {"fabricd_plane_devices", "Devices of a plane.", offsetof(struct pmixfab_plane, n_devices)},
        {"fabricd_plane_hosts", "Hosts of a plane.", offsetof(struct pmixfab_plane, n_hosts)},
        {"fabricd_plane_switches", "Switches of a plane.", offsetof(struct pmixfab_plane, n_switches)},
        {"fabricd_plane_links", "Cables of a plane, including those of devices.",
         offsetof(struct pmixfab_plane, n_links)},
    };
    struct served_set *set = served_get(served);
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        metrics_family(out, families[i].name, GAUGE, families[i].help);
        for (uint32_t k = 0; set != NULL && k < set->n; k++)
            metrics_sample(out, families[i].name, "plane", set->planes[k]->info.name,
                           *(const uint32_t *)((const char *)&set->planes[k]->info + families[i].offset));
    }
    about_devices(out, set);
    served_set_put(set);
}

static void about_nodes(FILE *out, const struct ops_parts *parts, const struct scheduler_status *s)
{
    const struct counts *counts = parts->counts;
    static const struct {
        int code;
        const char *name;
    } reasons[] = {{PMIXFAB_ERR_PERM, "not-believed"},
                   {PMIXFAB_ERR_BUSY, "too-many"},
                   {PMIXFAB_ERR_CONFLICT, "another-report-held"},
                   {PMIXFAB_ERR_UNREACH, "no-munged"},
                   {PMIXFAB_ERR_IO, "store"}};
    uint64_t rest = 0;
    struct pmix_server_status pmix;
    pmix_server_status(parts->pmix, &pmix);
    metrics_one(out, "fabricd_reports", GAUGE, "Hosts that report their own devices.", s->nodes);
    metrics_counted(out, counts, "fabricd_deliveries_total", "Accepted deliveries of reports.",
                    COUNT_DELIVERIES);
    metrics_family(out, "fabricd_deliveries_refused_total", COUNTER, "Refused deliveries, by reason.");
    for (int code = 0; code > -64; code--)
        rest += counted(counts, count_of_refused(code));
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        const uint64_t refused = counted(counts, count_of_refused(reasons[i].code));
        metrics_sample(out, "fabricd_deliveries_refused_total", "reason", reasons[i].name, (double)refused);
        rest -= refused;
    }
    metrics_sample(out, "fabricd_deliveries_refused_total", "reason", "malformed", (double)rest);
    metrics_one(out, "fabricd_subscribers", GAUGE, "Nodes that wait for the next generation.",
                (double)pmix.subscribers);
    pmix_server_metrics(out, parts->pmix);
}

static void about_store(FILE *out, const struct counts *counts, struct store *store)
{
    struct store_pages pages;
    struct store_bounds bounds;
    store_pages(store, &pages, NULL);
    if (store_bounds(store, &bounds, NULL) != PMIXFAB_OK)
        bounds = (struct store_bounds){0};
    metrics_one(out, "fabricd_store_size_bytes", GAUGE, "Size of the database without its log.",
                (double)pages.pages * (double)pages.page_size);
    metrics_one(out, "fabricd_store_free_bytes", GAUGE, "Free space within the database.",
                (double)pages.free * (double)pages.page_size);
    metrics_one(out, "fabricd_history_changes", GAUGE, "Changes in the history.", (double)bounds.changes);
    metrics_one(out, "fabricd_history_trimmed_generation", GAUGE,
                "Newest generation whose changes were trimmed; 0: none.", (double)bounds.trimmed);
    metrics_counted(out, counts, "fabricd_history_trimmed_total", "Changes removed from the history.",
                    COUNT_TRIMMED);
    metrics_counted(out, counts, "fabricd_backups_total", "Backups made.", COUNT_BACKUPS);
}

static void about_programs(FILE *out, const struct counts *counts, const struct exports *exports)
{
    static const struct metrics_result hooks[] = {
        {"ok", COUNT_HOOKS}, {"failed", COUNT_HOOKS_FAILED}, {"left-out", COUNT_HOOKS_DROPPED}};
    static const struct metrics_result files[] = {
        {"changed", COUNT_EXPORTS}, {"same", COUNT_EXPORTS_SAME}, {"failed", COUNT_EXPORTS_FAILED}};
    static const struct metrics_result commands[] = {{"ok", COUNT_EXPORT_COMMANDS},
                                                     {"failed", COUNT_EXPORT_COMMANDS_FAILED}};
    metrics_results(out, counts, "fabricd_hooks_total", "Runs of the hook, by result.", hooks, 3);
    metrics_results(out, counts, "fabricd_exports_total", "Attempts of exports, by result.", files, 3);
    metrics_results(out, counts, "fabricd_export_commands_total",
                    "Runs of commands for changed exports, by result.", commands, 2);
    metrics_one(out, "fabricd_exports_failing", GAUGE,
                "Exports whose file or command failed at the last attempt.", exports_failing(exports));
}

void metrics_of_scheduler(FILE *out, const void *owner)
{
    const struct ops_parts *parts = owner;
    struct scheduler_status status;
    scheduler_status(parts->scheduler, &status);
    metrics_of_both(out, "scheduler", parts->counts);
    about_publishing(out, parts->counts, &status);
    about_sweeps(out, parts->counts, &status);
    about_managers(out, parts->counts, parts->scheduler);
    about_findings(out, parts->findings);
    about_bisection(out, parts->findings);
    about_counters(out, scheduler_counters(parts->scheduler));
    about_planes(out, publisher_served(parts->publisher));
    about_nodes(out, parts, &status);
    about_store(out, parts->counts, publisher_store(parts->publisher));
    about_programs(out, parts->counts, parts->exports);
}

void control_op_metrics(struct connection *connection, json_t *request)
{
    (void)request;
    connection_send_metrics(connection, metrics_of_scheduler);
}
