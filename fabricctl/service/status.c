/*
 * status.c - is the fabric known, how well, and is anybody watching it?
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_text.h"
#include "fabricctl/service/service.h"
#include "fabricctl/service/status_facts.h"
#include "fabricctl/show/list.h"
#include "fabricctl/show/show_findings.h"

/* A scalar in words. */
static const char *scalar_text(const json_t *status, const char *key, char buf[static 32])
{
    const json_t *value = json_object_get(status, key);

    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "yes" : "no";
    if (json_is_integer(value)) {
        snprintf(buf, 32, "%lld", (long long)json_integer_value(value));
        return buf;
    }
    if (json_is_real(value)) {
        snprintf(buf, 32, "%.1f", json_real_value(value));
        return buf;
    }
    return "-";
}

/* What is null, no or none is not worth a line. */
static void status_show_line(const char *label, const json_t *status, const char *key)
{
    const json_t *value = json_object_get(status, key);
    char buf[32];

    if (json_is_string(value) || json_is_true(value) || json_number_value(value) != 0)
        printf("%-13s %s\n", label, scalar_text(status, key, buf));
}

/* How many, in words. */
static void show_number(const char *label, const json_t *status, const char *key, const char *one,
                        const char *many)
{
    const json_int_t n = json_integer_value(json_object_get(status, key));

    if (n > 0)
        printf("%-13s %lld %s\n", label, (long long)n, n == 1 ? one : many);
}

/* What it does between sweeps; an older daemon says nothing of it. */
static void show_light_sweeps(const json_t *status)
{
    const json_t *watching = json_object_get(status, "monitoring");
    char looks[32], found[32], took[32], often[32];

    if (json_integer_value(json_object_get(status, "light_sweep")) > 0 && !json_is_null(watching))
        printf("%-13s %s, %s found a change, the last took %s ms, every %s s%s\n", "light sweeps",
               scalar_text(status, "light_sweeps", looks), scalar_text(status, "light_sweeps_dirty", found),
               scalar_text(status, "light_sweep_ms", took), scalar_text(status, "light_sweep", often),
               json_is_false(watching) ? "; NOT LOOKING NOW: changes are seen at sweeps only" : "");
    if (json_is_string(json_object_get(status, "dirty_since")))
        printf("%-13s since %s: swept when it is quiet\n", "dirty", scalar_text(status, "dirty_since", took));
}

/* Who manages the subnets; nothing is said where nobody was asked for. */
static void show_managers(const json_t *status)
{
    const json_t *list = json_object_get(status, "managers"), *manager;
    const bool several = json_array_size(list) > 1;
    size_t i;

    json_array_foreach(list, i, manager)
    {
        const bool answers = json_is_true(json_object_get(manager, "answers"));
        char since[32], name[32], probe[32], priority[32];

        printf("%-13s ", answers ? "manager" : "NO MANAGER");
        if (several)
            printf("%s: ", scalar_text(manager, "probe", probe));
        if (answers)
            printf("%s, priority %s%s%s\n", scalar_text(manager, "manager", name),
                   scalar_text(manager, "priority", priority),
                   json_is_true(json_object_get(manager, "another")) ? "; it took over at " : "",
                   json_is_true(json_object_get(manager, "another")) ? scalar_text(manager, "since", since)
                                                                     : "");
        else
            printf("since %s: no subnet manager answers; the last one is %s\n",
                   scalar_text(manager, "since", since), scalar_text(manager, "manager", name));
    }
}

/* Generations that the store should have. */
static void show_history_gone(const json_t *status)
{
    const json_t *gone;
    size_t i;

    json_array_foreach(json_object_get(status, "gone"), i, gone)
    {
        char first[32], last[32], why[32];

        printf("%-13s generations %s to %s: %s\n", "NOT IN STORE", scalar_text(gone, "first", first),
               scalar_text(gone, "last", last), scalar_text(gone, "why", why));
    }
}

/* What became of those before it. */
static void show_replaced(const json_t *process)
{
    const json_int_t replaced = json_integer_value(json_object_get(process, "replaced"));
    char times[32], last[32], why[32];

    if (replaced > 0)
        printf("; replaced %s%s, last at %s: %s",
               replaced == 1 ? "once" : scalar_text(process, "replaced", times),
               replaced == 1 ? "" : " times", scalar_text(process, "last", last),
               scalar_text(process, "why", why));
    if (json_integer_value(json_object_get(process, "parted")) > 0)
        printf("; %s were connected to it", scalar_text(process, "parted", times));
    putchar('\n');
}

/* What somebody who takes it over is kept from. */
static void show_pmix_bounds(const json_t *pmix, const char *pid)
{
    static const char *const words[] = {"separated", "filtered", "confined", "bounded", "guarded"};

    printf("%-13s process %s", "pmix", pid);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        printf(", %s%s", json_is_true(json_object_get(pmix, words[i])) ? "" : "not ", words[i]);
}

/* The process that hosts the PMIx server. */
static void show_pmix(const json_t *status)
{
    const json_t *pmix = json_object_get(status, "pmix");
    char pid[32], connected[32];

    if (!json_is_object(pmix))
        return;
    if (json_is_null(json_object_get(pmix, "pid")))
        printf("%-13s there is none now", "NO PMIX");
    else {
        show_pmix_bounds(pmix, scalar_text(pmix, "pid", pid));
        printf(", %s connected", scalar_text(pmix, "connected", connected));
    }
    show_replaced(pmix);
}

/* Files for other programs. */
static void show_exports(const json_t *status)
{
    const json_t *one;
    char name[32], number[32], when[32], why[32];
    size_t i;

    json_array_foreach(json_object_get(status, "exports"), i, one)
    {
        const bool fails = json_integer_value(json_object_get(one, "failures")) > 0;

        printf("%-13s %s, of generation %s, new at %s", fails ? "EXPORT FAILS" : "export",
               scalar_text(one, "name", name), scalar_text(one, "generation", number),
               scalar_text(one, "changed", when));
        if (json_is_true(json_object_get(one, "command")))
            printf(", its command told at %s", scalar_text(one, "told", when));
        if (fails)
            printf("; failed %s times, again at %s: %s", scalar_text(one, "failures", number),
                   scalar_text(one, "retry", when), scalar_text(one, "why", why));
        putchar('\n');
    }
}

/* What a daemon in the scheduler's role does: sweep. */
static void show_sweeps(const json_t *status)
{
    char when[32], took[32], often[32];

    printf("%-13s %s, took %s ms, every %s s%s\n", "last sweep", scalar_text(status, "last_sweep", when),
           scalar_text(status, "sweep_ms", took), scalar_text(status, "interval", often),
           json_is_true(json_object_get(status, "sweeping")) ? "; sweeping now" : "");
    show_light_sweeps(status);
    show_managers(status);
    show_history_gone(status);
    show_pmix(status);
    show_exports(status);
    if (json_is_true(json_object_get(status, "no_cable")))
        printf("%-13s the sweep sees no cable; is this host's own cable out?\n", "NO CABLE");
    status_show_line("partial", status, "partial");
    status_show_line("dangling", status, "dangling");
    status_show_line("inactive", status, "inactive");
    show_number("missing", status, "missing", "HCA, which keeps its place", "HCAs, which keep their places");
    show_number("flapping", status, "flapping", "cable or switch, suppressed",
                "cables and switches, suppressed");
    status_show_line("reporting", status, "nodes");
}

/* What one on a node does: look at its devices, and deliver what it sees. */
static void show_node(const json_t *status)
{
    bool same = json_equal(json_object_get(status, "digest"), json_object_get(status, "held"));
    bool filled = json_is_string(json_object_get(status, "unknown")) &&
                  !json_is_true(json_object_get(status, "delivering"));
    char one[32], two[32], three[32];

    printf("%-13s %s, %s\n", "scheduler", scalar_text(status, "scheduler", one),
           json_is_true(json_object_get(status, "connected")) ? "connected" : "not connected");
    printf("%-13s %s, took %s ms, every %s s%s\n", "last scan", scalar_text(status, "last_scan", one),
           scalar_text(status, "scan_ms", two), scalar_text(status, "interval", three),
           json_is_true(json_object_get(status, "scanning")) ? "; scanning now" : "");
    if (json_integer_value(json_object_get(status, "probes_failed")) > 0)
        printf("%-13s %s of %s: %s\n", "FAILED PROBES", scalar_text(status, "probes_failed", one),
               scalar_text(status, "probes", two), scalar_text(status, "probe_error", three));
    printf("%-13s %s%s, delivered %s%s\n", "report", scalar_text(status, "digest", one),
           same     ? ""
           : filled ? ", which the scheduler completes"
                    : ", which the scheduler does not hold",
           scalar_text(status, "delivered", two),
           json_is_true(json_object_get(status, "delivering")) ? "; delivering now" : "");
    status_show_line("of old", status, "unknown");
    status_show_line(json_is_true(json_object_get(status, "refused")) ? "REFUSED" : "not delivered", status,
                     "reason");
    show_pmix(status);
}

static enum ctl_exit show_text(const struct ctl *ctl, const struct ctl_view *view, const json_t *status)
{
    const json_t *stale = json_object_get(status, "stale");
    bool daemon = json_is_true(json_object_get(status, "daemon"));
    char buf[32], other[32], words[CTL_FINDINGS_WORDS];

    printf("%-13s %s\n", "fabricd",
           !daemon            ? "does not answer"
           : ctl->uri != NULL ? "answers over PMIx"
                              : "running");
    status_show_line("pid", status, "pid");
    status_show_line("version", status, "version");
    status_show_line("role", status, "role");
    status_show_line("host", status, "host");
    status_show_line("uri", status, "uri");
    printf("%-13s %s, published %s\n", "generation", scalar_text(status, "generation", buf),
           scalar_text(status, "published", other));
    if (json_is_true(stale) && json_is_null(json_object_get(status, "stale_since")))
        status_show_line("STALE", status, "stale_reason");
    else if (json_is_true(stale))
        printf("%-13s since %s: %s\n", "STALE", scalar_text(status, "stale_since", buf),
               scalar_text(status, "stale_reason", other));
    if (daemon && ctl->uri == NULL && strcmp(scalar_text(status, "role", buf), "node") == 0)
        show_node(status);
    else if (daemon && ctl->uri == NULL)
        show_sweeps(status);
    status_show_line("unnamed", status, "unnamed");
    if (json_is_object(json_object_get(status, "findings")))
        printf("%-13s %s\n", "findings", ctl_findings_words(json_object_get(status, "findings"), words));
    if (view->n == 0)
        return CTL_DONE;
    putchar('\n');
    return ctl_planes_table(ctl, view, NULL);
}

/* One row of all that is a scalar. */
static enum ctl_exit show_csv(json_t *status)
{
    const char *key;
    const char *between = "";
    json_t *value;
    char buf[32];

    json_object_foreach(status, key, value)
    {
        if (json_is_array(value) || json_is_object(value))
            continue;
        printf("%s%s", between, key);
        between = ",";
    }
    between = "\n";
    json_object_foreach(status, key, value)
    {
        if (json_is_array(value) || json_is_object(value))
            continue;
        fputs(between, stdout);
        if (json_is_boolean(value))
            fputs(json_is_true(value) ? "true" : "false", stdout);
        else if (!json_is_null(value))
            ctl_csv_field(stdout, scalar_text(status, key, buf));
        between = ",";
    }
    putchar('\n');
    return CTL_DONE;
}

/* For people, all times that it holds are to the second. */
static void cut_times(json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;
    char *text;

    json_object_foreach(value, key, member) cut_times(member);
    json_array_foreach(value, i, member) cut_times(member);
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
        return ctl->check ? CTL_USAGE : status; /* which stands for what is critical */
    facts = ctl_status_facts(ctl, &view, CTL_ANSWER_SECONDS, why);
    if (ctl->format == CTL_TEXT && !ctl->longer)
        cut_times(facts);
    if (facts == NULL)
        status = ctl_nomem();
    else if (ctl->check && ctl->format == CTL_TEXT)
        status = ctl_status_monitor(ctl, facts, why);
    else if (view.n == 0 && ctl->uri != NULL)
        status = ctl_error("no plane to read: %s", reason);
    else if (view.n == 0 && !json_is_true(json_object_get(facts, "daemon")))
        status = ctl_error("%s; %s", why, reason);
    else if (ctl->format == CTL_TEXT)
        status = show_text(ctl, &view, facts);
    else if (ctl->format == CTL_CSV)
        status = show_csv(facts);
    else
        status = ctl_planes_table(ctl, &view, json_object_get(facts, "planes"));
    if (status == CTL_DONE && ctl->format == CTL_JSON)
        status = ctl_json_print(stdout, json_incref(facts));
    if (ctl->check && ctl->format != CTL_TEXT && facts != NULL)
        status = ctl_status_monitor(ctl, facts, why);
    json_decref(facts);
    ctl_view_close(&view);
    return status;
}
