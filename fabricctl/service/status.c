/* status.c - state and freshness of the fabric, and of the daemon. For people, programs and monitors. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/service/service.h"
#include "fabricctl/show/show.h"

/* ---- the state of the daemon, and of its snapshots ---- */

/* Facts that the daemon adds to those of the snapshots, in this order; null without a daemon. */
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
                                          "exports",        "no_cable",     "findings",
                                          "channel",        "exports_held", "slurm"};

/* Find the newest generation of the planes, and count HCAs that no pattern names. */
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

/*
 * Return the facts of the snapshots alone: no daemon updates them, so they are stale. Over PMIx the server
 * sends whether they are stale; with an older server that is unknown.
 */
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
                            ctl_json_text(ctl->uri != NULL ? "the reason is not available over PMIx" : why));
    return status;
}

/*
 * Replace facts of the snapshots by those of the daemon, also with keys of a later version. The daemon's
 * strings are cleaned like all others.
 */
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

/* ---- the state as one line and an exit status, for monitoring plugins (Nagios and others) ---- */

/* Meaning of the exit statuses for these programs. */
enum monitor_status { MONITOR_OK = 0, MONITOR_WARNING = 1, MONITOR_CRITICAL = 2 };

static bool is_node(const json_t *facts)
{
    const char *role = ctl_text_of(facts, "role");
    return role != NULL && strcmp(role, "node") == 0;
}

/* Judge a node by whether the scheduler has its report. */
static enum monitor_status judge_node(const json_t *facts, FILE *line)
{
    if (ctl_is(facts, "refused")) {
        ctl_say(line, facts, "the scheduler rejects the report: {reason}");
        return MONITOR_CRITICAL;
    }
    const char *warning = ctl_is(facts, "stale")                      ? "stale: {stale_reason}"
                          : !ctl_is(facts, "connected")               ? "not connected to {scheduler}"
                          : ctl_number_of(facts, "probes_failed") > 0 ? "a probe failed: {probe_error}"
                                                                      : NULL;
    ctl_say(line, facts, warning != NULL ? warning : "connected to {scheduler}");
    return warning != NULL ? MONITOR_WARNING : MONITOR_OK;
}

static enum monitor_status judge_scheduler(const json_t *facts, FILE *line)
{
    const json_t *findings = json_object_get(facts, "findings"), *worst = json_object_get(findings, "worst");
    const json_int_t errors = ctl_number_of(findings, "errors");
    const json_int_t warnings = ctl_number_of(findings, "warnings");
    char words[CTL_FINDINGS_WORDS];
    if (!json_is_object(findings)) {
        fputs("no findings are available: see the daemon's log", line);
        return MONITOR_CRITICAL;
    }
    fprintf(line, "findings: %s", ctl_findings_words(findings, words));
    if (json_is_object(worst))
        ctl_say(line, worst, "; {kind} {where}: {what}");
    return errors > 0 ? MONITOR_CRITICAL : warnings > 0 ? MONITOR_WARNING : MONITOR_OK;
}

/*
 * status --check: print one line (as text), and return the exit status of monitoring plugins. It is 1 for
 * warnings, 2 for errors, else 0. Without an answer of the daemon the status is 2, and `why` is the line.
 */
static enum ctl_exit status_monitor(const struct ctl *ctl, const json_t *facts, const char *why)
{
    static const char *const words[] = {"OK", "WARNING", "CRITICAL"};
    const json_t *findings = json_object_get(facts, "findings");
    enum monitor_status status = MONITOR_CRITICAL;
    char *text = NULL;
    size_t size;
    FILE *line = open_memstream(&text, &size);
    if (line == NULL)
        return CTL_USAGE; /* the status for critical */
    if (!ctl_is(facts, "daemon"))
        fprintf(line, "%s", why);
    else if (is_node(facts))
        status = judge_node(facts, line);
    else
        status = judge_scheduler(facts, line);
    if (fclose(line) != 0)
        status = MONITOR_CRITICAL;
    if (ctl->format == CTL_TEXT && text != NULL) {
        ctl_clean(text);
        printf("%s - ", words[status]);
        /* text after a | would be taken for performance data */
        for (const char *c = text; *c != '\0'; c++)
            putchar(*c == '|' ? '/' : *c);
        if (json_is_object(findings))
            printf(" | errors=%lld warnings=%lld", (long long)ctl_number_of(findings, "errors"),
                   (long long)ctl_number_of(findings, "warnings"));
        putchar('\n');
    }
    free(text);
    return (enum ctl_exit)status;
}

/* ---- the state in words ---- */

/* Print a line with its label and text (ctl_say()), without a newline. */
static void status_say(const char *label, const json_t *status, const char *text)
{
    printf("%-13s ", label);
    ctl_say(stdout, status, text);
}

/* Print nothing if the value is null, no or none. */
static void status_line(const char *label, const json_t *status, const char *key)
{
    const json_t *value = json_object_get(status, key);
    char text[64];
    snprintf(text, sizeof text, "{%s}\n", key);
    if (json_is_string(value) || json_is_true(value) || json_number_value(value) != 0)
        status_say(label, status, text);
}

/* Print a number with its noun. */
static void show_number(const char *label, const json_t *status, const char *key, const char *one,
                        const char *many)
{
    const json_int_t n = ctl_number_of(status, key);
    if (n > 0)
        printf("%-13s %lld %s\n", label, (long long)n, n == 1 ? one : many);
}

/* Print the light sweeps; an older daemon does not report them. */
static void show_light_sweeps(const json_t *status)
{
    const json_t *watching = json_object_get(status, "monitoring");
    if (ctl_number_of(status, "light_sweep") > 0 && !json_is_null(watching)) {
        status_say("light sweeps", status,
                   "{light_sweeps}, {light_sweeps_dirty} found a change, the last took {light_sweep_ms} ms, "
                   "every {light_sweep} s");
        puts(json_is_false(watching) ? "; NOT RUNNING NOW: changes are seen at sweeps only" : "");
    }
    if (json_is_string(json_object_get(status, "dirty_since")))
        status_say("dirty", status, "since {dirty_since}: swept when the fabric is quiet\n");
}

/* Print the subnet managers; nothing if none was queried. */
static void show_managers(const json_t *status)
{
    const json_t *list = json_object_get(status, "managers"), *manager;
    size_t i;
    json_array_foreach(list, i, manager)
    {
        const bool answers = ctl_is(manager, "answers");
        status_say(answers ? "manager" : "NO MANAGER", manager, json_array_size(list) > 1 ? "{probe}: " : "");
        ctl_say(stdout, manager,
                !answers ? "since {since}: no subnet manager answers; the last one is {manager}\n"
                : ctl_is(manager, "another") ? "{manager}, priority {priority}; it took over at {since}\n"
                                             : "{manager}, priority {priority}\n");
    }
}

/* Print the failures of its predecessors. */
static void show_replaced(const json_t *process)
{
    const json_int_t replaced = ctl_number_of(process, "replaced");
    if (replaced > 0)
        ctl_say(stdout, process,
                replaced == 1 ? "; replaced once, last at {last}: {why}"
                              : "; replaced {replaced} times, last at {last}: {why}");
    if (ctl_number_of(process, "parted") > 0)
        ctl_say(stdout, process, "; {parted} were connected to it");
    putchar('\n');
}

/* Print the PMIx server and its restrictions. */
static void show_pmix(const json_t *status)
{
    static const char *const words[] = {"separated", "filtered", "confined", "bounded", "guarded"};
    const json_t *pmix = json_object_get(status, "pmix");
    if (!json_is_object(pmix))
        return;
    if (json_is_null(json_object_get(pmix, "pid")))
        status_say("NO PMIX", pmix, "no PMIx server runs now");
    else {
        status_say("pmix", pmix, "process {pid}");
        for (size_t i = 0; i < CTL_COUNT(words); i++)
            printf(", %s%s", ctl_is(pmix, words[i]) ? "" : "not ", words[i]);
        ctl_say(stdout, pmix, ", {connected} connected");
    }
    show_replaced(pmix);
}

/* Print the files for other programs. */
static void show_exports(const json_t *status)
{
    const json_t *one;
    size_t i;
    json_array_foreach(json_object_get(status, "exports"), i, one)
    {
        const bool fails = ctl_number_of(one, "failures") > 0;
        status_say(fails ? "EXPORT FAILS" : "export", one,
                   "{name}, of generation {generation}, new at {changed}");
        if (ctl_is(one, "command"))
            ctl_say(stdout, one, ", its command succeeded at {told}");
        if (fails)
            ctl_say(stdout, one, "; failed {failures} times, again at {retry}: {why}");
        putchar('\n');
    }
}

/* Print whether Slurm has the exported files, and the hold of the exports. */
static void show_slurm(const json_t *status)
{
    const json_t *held = json_object_get(status, "exports_held"), *one;
    size_t i;
    json_array_foreach(json_object_get(status, "slurm"), i, one)
    {
        if (ctl_is(one, "differs"))
            status_say("SLURM DIFFERS", one, "{file}, since {since}: {why}\n");
        else
            status_say("slurm", one, "agrees with {file}, {agreed}\n");
    }
    if (json_is_object(held))
        status_say("EXPORTS HELD", held, "since {since} by {user}: {reason}\n");
}

/* Print the state of a daemon in the role scheduler: its sweeps. */
static void show_sweeps(const json_t *status)
{
    const json_t *gone;
    size_t i;
    status_say("last sweep", status, "{last_sweep}, took {sweep_ms} ms, every {interval} s");
    puts(ctl_is(status, "sweeping") ? "; sweeping now" : "");
    show_light_sweeps(status);
    show_managers(status);
    json_array_foreach(json_object_get(status, "gone"), i, gone) /* missing in the store */
    {
        status_say("NOT IN STORE", gone, "generations {first} to {last}: {why}\n");
    }
    show_pmix(status);
    show_exports(status);
    show_slurm(status);
    if (ctl_is(status, "no_cable"))
        status_say("NO CABLE", status, "the sweep sees no cable; check this host's own cable\n");
    status_line("partial", status, "partial");
    status_line("dangling", status, "dangling");
    status_line("inactive", status, "inactive");
    show_number("missing", status, "missing", "HCA, which keeps its place", "HCAs, which keep their places");
    show_number("flapping", status, "flapping", "cable or switch, suppressed",
                "cables and switches, suppressed");
    status_line("reporting", status, "nodes");
}

/* Print the state of a daemon in the role node: its scans, and their delivery. */
static void show_node(const json_t *status)
{
    const bool same = json_equal(json_object_get(status, "digest"), json_object_get(status, "held"));
    const bool filled = json_is_string(json_object_get(status, "unknown")) && !ctl_is(status, "delivering");
    status_say("scheduler", status, "{scheduler}, ");
    puts(ctl_is(status, "connected") ? "connected" : "not connected");
    status_say("last scan", status, "{last_scan}, took {scan_ms} ms, every {interval} s");
    puts(ctl_is(status, "scanning") ? "; scanning now" : "");
    if (ctl_number_of(status, "probes_failed") > 0)
        status_say("FAILED PROBES", status, "{probes_failed} of {probes}: {probe_error}\n");
    status_say("report", status,
               same     ? "{digest}, delivered {delivered}"
               : filled ? "{digest}, which the scheduler completes, delivered {delivered}"
                        : "{digest}, which the scheduler does not hold, delivered {delivered}");
    puts(ctl_is(status, "delivering") ? "; delivering now" : "");
    status_line("old facts", status, "unknown");
    status_line(ctl_is(status, "refused") ? "REFUSED" : "not delivered", status, "reason");
    show_pmix(status);
}

static enum ctl_exit show_text(const struct ctl *ctl, const struct ctl_view *view, const json_t *status)
{
    static const char *const first[] = {"pid", "version", "role", "host", "uri"};
    const json_t *findings = json_object_get(status, "findings");
    const bool daemon = ctl_is(status, "daemon");
    char words[CTL_FINDINGS_WORDS];
    printf("%-13s %s\n", "fabricd",
           !daemon            ? "does not answer"
           : ctl->uri != NULL ? "answers over PMIx"
                              : "running");
    for (size_t i = 0; i < CTL_COUNT(first); i++)
        status_line(first[i], status, first[i]);
    status_say("generation", status, "{generation}, published {published}\n");
    if (ctl_is(status, "stale") && json_is_null(json_object_get(status, "stale_since")))
        status_line("STALE", status, "stale_reason");
    else if (ctl_is(status, "stale"))
        status_say("STALE", status, "since {stale_since}: {stale_reason}\n");
    if (daemon && ctl->uri == NULL && is_node(status))
        show_node(status);
    else if (daemon && ctl->uri == NULL)
        show_sweeps(status);
    status_line("unnamed", status, "unnamed");
    if (json_is_object(findings))
        printf("%-13s %s\n", "findings", ctl_findings_words(findings, words));
    if (view->n == 0)
        return CTL_DONE;
    putchar('\n');
    return ctl_list_into(ctl, view, "planes", NULL);
}

/* Write one row of all scalars. */
static enum ctl_exit show_csv(json_t *status)
{
    for (int line = 0; line < 2; line++) { /* keys, then values */
        const char *between = "", *key;
        json_t *value;
        json_object_foreach(status, key, value)
        {
            char text[64];
            if (json_is_array(value) || json_is_object(value))
                continue;
            fputs(between, stdout);
            between = ",";
            snprintf(text, sizeof text, "{%s}", key);
            if (line == 0)
                fputs(key, stdout);
            else if (json_is_boolean(value))
                fputs(json_is_true(value) ? "true" : "false", stdout);
            else if (json_is_string(value))
                ctl_csv_field(stdout, json_string_value(value));
            else if (!json_is_null(value))
                ctl_say(stdout, status, text);
        }
        putchar('\n');
    }
    return CTL_DONE;
}

/* Cut all times in the value to the second, for people. */
static void cut_times(json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    char *text;
    json_object_foreach(value, key, member)
    {
        cut_times(member);
    }
    json_array_foreach(value, i, member)
    {
        cut_times(member);
    }
    text = json_is_string(value) ? strdup(json_string_value(value)) : NULL;
    if (text != NULL) {
        ctl_cut_to_seconds(text);
        json_string_set_nocheck(value, text);
    }
    free(text);
}

enum ctl_exit ctl_status(const struct ctl *ctl)
{
    char why[CTL_WHY_SIZE], reason[CTL_REASON_SIZE] = "";
    json_t *facts;
    struct ctl_view view;
    enum ctl_exit status = ctl->check ? ctl_control_only(ctl, "status --check") : CTL_DONE;
    if (status == CTL_DONE)
        status = ctl->plane != NULL ? ctl_view_all(ctl, &view) : ctl_view_any(ctl, &view, reason);
    if (status != CTL_DONE)
        return ctl->check ? CTL_USAGE : status; /* the status for critical */
    facts = ctl_status_facts(ctl, &view, CTL_ANSWER_SECONDS, why);
    if (ctl->format == CTL_TEXT && !ctl->longer)
        cut_times(facts);
    if (facts == NULL)
        status = ctl_nomem();
    else if (ctl->check && ctl->format == CTL_TEXT)
        status = status_monitor(ctl, facts, why);
    else if (view.n == 0 && ctl->uri != NULL)
        status = ctl_error("no plane to read: %s", reason);
    else if (view.n == 0 && !ctl_is(facts, "daemon"))
        status = ctl_error("%s; %s", why, reason);
    else if (ctl->format == CTL_TEXT)
        status = show_text(ctl, &view, facts);
    else if (ctl->format == CTL_CSV)
        status = show_csv(facts);
    else
        status = ctl_list_into(ctl, &view, "planes", json_object_get(facts, "planes"));
    if (status == CTL_DONE && ctl->format == CTL_JSON)
        status = ctl_json_print(stdout, json_incref(facts));
    if (ctl->check && ctl->format != CTL_TEXT && facts != NULL)
        status = status_monitor(ctl, facts, why);
    json_decref(facts);
    ctl_view_close(&view);
    return status;
}
