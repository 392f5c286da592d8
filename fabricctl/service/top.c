/* top.c - a page for people who watch: the daemon, its planes, and what changed last. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/wait.h"
#include "fabricctl/service/screen.h"
#include "fabricctl/service/service.h"
#include "fabricctl/service/status_facts.h"
#include "fabricctl/show/changes.h"
#include "fabricctl/show/list.h"
#include "fabricctl/show/show_findings.h"

#define TOP_MS      1000 /* from page to page */
#define TOP_SECONDS 2    /* for an answer: who looks at a page wants to know at once that there is none */
#define TOP_CHANGES 10   /* the latest so many, where the terminal's height does not say how many */

/* How long ago, as people say it. */
static char *top_age(int64_t seconds, char buf[static 40])
{
    if (seconds < 100)
        snprintf(buf, 40, "%lld s", (long long)(seconds < 0 ? 0 : seconds));
    else if (seconds < 100 * 60)
        snprintf(buf, 40, "%lld min", (long long)seconds / 60);
    else if (seconds < 48 * 3600)
        snprintf(buf, 40, "%lld h", (long long)seconds / 3600);
    else
        snprintf(buf, 40, "%lld days", (long long)seconds / 86400);
    return buf;
}

/* The same of a time of the daemon's; "never" where there is none. */
static const char *top_ago(const json_t *facts, const char *key, char buf[static 40])
{
    const char *text = json_string_value(json_object_get(facts, key));
    struct tm tm = {0};

    if (text == NULL || strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
        return "never";
    return strcat(top_age(ctl_now() - (int64_t)timegm(&tm), buf), " ago");
}

static const char *top_text(const json_t *facts, const char *key)
{
    const char *text = json_string_value(json_object_get(facts, key));
    return text != NULL ? text : "?";
}

static long long top_number(const json_t *facts, const char *key)
{
    return (long long)json_integer_value(json_object_get(facts, key));
}

static bool top_is(const json_t *facts, const char *key)
{
    return json_is_true(json_object_get(facts, key));
}

/* How many, and the gravest. */
static void top_findings(FILE *out, const json_t *findings)
{
    const json_t *worst = json_object_get(findings, "worst");
    char words[CTL_FINDINGS_WORDS], *text = NULL;

    fprintf(out, "%-13s %s", "findings", ctl_findings_words(findings, words));
    if (json_is_object(worst) && asprintf(&text, "; %s %s: %s", top_text(worst, "kind"),
                                          top_text(worst, "where"), top_text(worst, "what")) >= 0) {
        ctl_clean(text);
        fputs(text, out);
        free(text);
    }
    fputc('\n', out);
}

/* What it does: sweeps of a scheduler's, scans of a node's; and who has it serve them. */
static void top_daemon(FILE *out, const json_t *facts)
{
    const bool node = strcmp(top_text(facts, "role"), "node") == 0;
    const json_t *pmix = json_object_get(facts, "pmix");
    char ago[40];

    fprintf(out, "%-13s %s, took %.1f ms, every %lld s%s\n", node ? "last scan" : "last sweep",
            top_ago(facts, node ? "last_scan" : "last_sweep", ago),
            json_number_value(json_object_get(facts, node ? "scan_ms" : "sweep_ms")),
            top_number(facts, "interval"),
            top_is(facts, node ? "scanning" : "sweeping") ? "; at it now" : "");
    if (top_number(facts, "light_sweep") > 0)
        fprintf(out, "%-13s %lld, %lld found a change; the last took %.1f ms, every %lld s\n", "light sweeps",
                top_number(facts, "light_sweeps"), top_number(facts, "light_sweeps_dirty"),
                json_number_value(json_object_get(facts, "light_sweep_ms")),
                top_number(facts, "light_sweep"));
    if (node)
        fprintf(out, "%-13s %s, %sconnected\n", "scheduler", top_text(facts, "scheduler"),
                top_is(facts, "connected") ? "" : "NOT ");
    if (json_is_object(pmix))
        fprintf(out, "%-13s %lld connected over PMIx\n", "clients", top_number(pmix, "connected"));
    if (!node)
        fprintf(out, "%-13s %lld hosts\n", "reporting", top_number(facts, "nodes"));
    if (json_is_object(json_object_get(facts, "findings")))
        top_findings(out, json_object_get(facts, "findings"));
    if (top_number(facts, "missing") + top_number(facts, "flapping") > 0)
        fprintf(out, "%-13s %lld HCAs missing, %lld cables and switches flapping\n", "WRONG",
                top_number(facts, "missing"), top_number(facts, "flapping"));
}

/* Files for other programs: of interest when one is not right. */
static void top_exports(FILE *out, const json_t *facts)
{
    const json_t *list = json_object_get(facts, "exports"), *one;
    size_t i, failing = 0;

    json_array_foreach(list, i, one) failing += top_number(one, "failures") > 0;
    if (failing > 0)
        fprintf(out, "%-13s %zu of %zu exports fail: see fabricctl status\n", "WRONG", failing,
                json_array_size(list));
}

static void top_head(FILE *out, const json_t *facts, const char *why)
{
    const bool daemon = top_is(facts, "daemon");
    char ago[40], now[32];
    const time_t seconds = (time_t)ctl_now();
    struct tm tm;

    strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&seconds, &tm));
    if (daemon)
        fprintf(out, "%-13s %s, role %s, on %s, %s\n", "fabricd", top_text(facts, "version"),
                top_text(facts, "role"), top_text(facts, "host"), now);
    else
        fprintf(out, "%-13s DOES NOT ANSWER, %s: %s\n", "fabricd", now, why);
    fprintf(out, "%-13s %lld, published %s\n", "generation", top_number(facts, "generation"),
            top_ago(facts, "published", ago));
    if (daemon && top_is(facts, "stale"))
        fprintf(out, "%-13s %s: %s\n", "STALE", top_ago(facts, "stale_since", ago),
                top_text(facts, "stale_reason"));
    if (daemon) {
        top_daemon(out, facts);
        top_exports(out, facts);
    }
}

static const struct ctl_column top_columns[] = {
    {"name", "PLANE", false},       {"kind", "KIND", false},
    {"devices", "DEVICES", true},   {"hosts", "HOSTS", true},
    {"switches", "SWITCHES", true}, {"links", "LINKS", true},
    {"groups", "GROUPS", true},     {"generation", "GENERATION", true},
    {"age", "AGE", true},
};

static bool top_plane(struct ctl_table *table, const struct ctl *ctl, const struct pmixfab *fab,
                      const struct pmixfab_plane *plane)
{
    char age[40];

    (void)fab;
    if (ctl->plane != NULL && strcmp(ctl->plane, plane->name) != 0)
        return true;
    ctl_put_text(table, plane->name);
    ctl_put_text(table, plane->kind);
    ctl_put_number(table, plane->n_devices);
    ctl_put_number(table, plane->n_hosts);
    ctl_put_number(table, plane->n_switches);
    ctl_put_number(table, plane->n_links);
    ctl_put_number(table, plane->n_groups);
    ctl_put_number(table, (int64_t)plane->generation);
    ctl_put_text(table, top_age(ctl_now() - plane->published / 1000000, age));
    return ctl_table_row(table);
}

/* As many of them as there is room for; those of a node are its scheduler's. */
static void top_changes(FILE *out, const struct ctl *ctl, const json_t *facts, unsigned room)
{
    char why[CTL_WHY_SIZE];
    json_t *answer;

    if (!top_is(facts, "daemon") || strcmp(top_text(facts, "role"), "node") == 0 || room == 0)
        return;
    fputc('\n', out);
    if (ctl_control_ask(ctl->rundir, json_pack("{s:s, s:I}", "op", "history", "limit", (json_int_t)room),
                        TOP_SECONDS, &answer, why) == CTL_DONE)
        ctl_changes_write(out, ctl, json_object_get(answer, "changes"));
    else
        fprintf(out, "no changes: %s\n", why);
    json_decref(answer);
}

static unsigned top_lines(const char *text)
{
    unsigned n = 0;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

/* As long as `lines`, 0: as it comes. What cannot be read is said on the page; alone on it, it is a failure,
 * too, whose words are in `why`. *page: free(); NULL without memory. */
static enum ctl_exit top_page(const struct ctl *ctl, unsigned lines, char **page,
                              char why[static CTL_WHY_SIZE])
{
    char reason[CTL_REASON_SIZE] = "it cannot be read: see fabricctl planes";
    struct ctl_view view;
    enum ctl_exit status = ctl_view_any(ctl, &view, reason);
    json_t *facts = ctl_status_facts(ctl, &view, TOP_SECONDS, why);
    size_t size;
    FILE *out = facts != NULL ? open_memstream(page, &size) : NULL;

    if (out == NULL)
        *page = NULL;
    else {
        top_head(out, facts, why);
        fputc('\n', out);
        if (view.n == 0)
            fprintf(out, "no planes: %s\n", reason);
        else
            ctl_list_view(
                ctl_table_open(out, CTL_TEXT, CTL_JSON_ARRAY, NULL, top_columns, CTL_COUNT(top_columns)), ctl,
                &view, top_plane);
        fflush(out);
        if (lines == 0)
            top_changes(out, ctl, facts, TOP_CHANGES);
        else if (top_lines(*page) + 2 < lines) /* an empty line, and the heads */
            top_changes(out, ctl, facts, lines - top_lines(*page) - 2);
        if (view.n == 0 && !top_is(facts, "daemon"))
            status = CTL_FAILED;
        fclose(out);
    }
    json_decref(facts);
    ctl_view_close(&view);
    return status;
}

static enum ctl_exit top_once(const struct ctl *ctl)
{
    char why[CTL_WHY_SIZE], *page;
    enum ctl_exit status = top_page(ctl, 0, &page, why);

    if (page == NULL)
        return ctl_nomem();
    if (status != CTL_DONE && why[0] != '\0')
        ctl_error("%s", why);
    else
        fputs(page, stdout);
    free(page);
    return status;
}

/* A daemon that does not answer may be back in a moment: it goes on. */
static enum ctl_exit top_watch(const struct ctl *ctl)
{
    char why[CTL_WHY_SIZE], *page;
    bool going = ctl_screen_begin();

    if (!going)
        return ctl_error("no page: this terminal cannot be set: see --once");
    while (going) {
        top_page(ctl, ctl_screen_lines(), &page, why);
        going = page == NULL || ctl_interrupted() || ctl_screen_draw(page);
        going = going && ctl_screen_wait(TOP_MS);
        free(page);
    }
    ctl_screen_end();
    return CTL_DONE;
}

enum ctl_exit ctl_top(const struct ctl *ctl)
{
    struct ctl_view view;
    enum ctl_exit status = ctl_control_only(ctl, "top");

    if (ctl->format == CTL_CSV)
        return ctl_usage("a page for people: --format csv: programs read status and history");
    if (status == CTL_DONE && ctl->plane != NULL) { /* is there such a plane? That is told */
        status = ctl_view_one(ctl, &view);
        ctl_view_close(&view);
    }
    if (status != CTL_DONE)
        return status;
    if (ctl->format == CTL_JSON) /* what the page is made of */
        return ctl_status(ctl);
    return ctl->once || !ctl_screen_possible() ? top_once(ctl) : top_watch(ctl);
}
