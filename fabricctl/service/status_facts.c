/* status_facts.c - the daemon's state, of its snapshots and of what it answers. */
#include <string.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/table.h"
#include "fabricctl/service/status_facts.h"

/* What the daemon adds to the snapshots' facts, in this order; null where no daemon says it. */
static const char *const daemon_keys[] = {"role",           "host",         "pid",
                                          "version",        "uri",          "stale_since",
                                          "stale_reason",   "partial",      "dangling",
                                          "unnamed",        "inactive",     "nodes",
                                          "sweeping",       "last_sweep",   "sweep_ms",
                                          "interval",       "scheduler",    "connected",
                                          "light_sweep",    "light_sweeps", "light_sweeps_dirty",
                                          "scanning",       "last_scan",    "scan_ms",
                                          "light_sweep_ms", "probes",       "probes_failed",
                                          "probe_error",    "digest",       "held",
                                          "delivered",      "delivering",   "refused",
                                          "reason",         "missing",      "flapping",
                                          "monitoring",     "dirty_since",  "unknown",
                                          "managers",       "gone",         "pmix",
                                          "exports",        "no_cable",     "findings"};

/* The newest of the planes; HCAs that no pattern names. */
static void sum_up(const struct ctl_view *view, uint64_t *generation, int64_t *published, uint64_t *unnamed)
{
    *generation = 0;
    *published = 0;
    *unnamed = 0;
    for (size_t i = 0; i < view->n; i++) {
        struct pmixfab_plane plane;

        if (pmixfab_plane(view->planes[i], &plane) != 0)
            continue;
        *unnamed += plane.n_unnamed;
        if (plane.generation >= *generation) {
            *generation = plane.generation;
            *published = plane.published;
        }
    }
}

/* Facts of the snapshots alone: nobody is watching, so they are stale. Over PMIx somebody is, and says it; an
 * older one does not, and nobody knows then. */
static json_t *from_snapshots(const struct ctl *ctl, const struct ctl_view *view, const char *why)
{
    char time[CTL_TIME_SIZE];
    uint64_t generation, unnamed;
    int64_t published;
    json_t *status;

    int stale = 1;
    bool told = ctl->uri == NULL || pmixfab_stale_pmix(&stale) == PMIXFAB_OK;

    sum_up(view, &generation, &published, &unnamed);
    status = json_pack("{s:I, s:o, s:o, s:b, s:[]}", "generation", (json_int_t)generation, "published",
                       generation == 0 ? json_null() : json_string(ctl_time(published, time)), "stale",
                       told ? json_boolean(stale) : json_null(), "daemon", ctl->uri != NULL, "planes");
    for (size_t i = 0; i < CTL_COUNT(daemon_keys) && status != NULL; i++)
        json_object_set_new(status, daemon_keys[i], json_null());
    json_object_set_new(status, "unnamed", json_integer((json_int_t)unnamed));
    if (ctl->uri != NULL)
        json_object_set_new(status, "uri", ctl_json_text(ctl->uri));
    if (!told || stale)
        json_object_set_new(status, "stale_reason",
                            ctl_json_text(ctl->uri != NULL ? "its reason is not told over PMIx" : why));
    return status;
}

/* What the daemon says counts more than what its files say. Keys of a later version come through as well.
 * Strings of the daemon's are shown like any other: cleaned. */
static void take_over(json_t *status, json_t *answer)
{
    const char *key;
    json_t *value;

    json_object_foreach(answer, key, value) if (strcmp(key, "ok") != 0 && strcmp(key, "planes") != 0)
        json_object_set_new(status, key,
                            json_is_string(value) ? ctl_json_text(json_string_value(value))
                                                  : json_incref(value));
    json_object_set_new(status, "daemon", json_true());
}

json_t *ctl_status_facts(const struct ctl *ctl, const struct ctl_view *view, int seconds,
                         char why[static CTL_WHY_SIZE])
{
    json_t *answer = NULL, *facts;

    why[0] = '\0';
    if (ctl->uri == NULL)
        ctl_control_ask(ctl->rundir, json_pack("{s:s}", "op", "status"), seconds, &answer, why);
    facts = from_snapshots(ctl, view, why);
    if (facts != NULL && answer != NULL)
        take_over(facts, answer);
    json_decref(answer);
    return facts;
}
