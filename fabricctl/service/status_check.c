/* status_check.c - the state as one line and an exit status, for monitoring plugins of Nagios and its like.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl_text.h"
#include "fabricctl/service/status_facts.h"
#include "fabricctl/show/show_findings.h"

/* What such programs take exit statuses for. */
enum monitor_status { MONITOR_OK = 0, MONITOR_WARNING = 1, MONITOR_CRITICAL = 2 };

static const char *monitor_text(const json_t *facts, const char *key)
{
    const char *text = json_string_value(json_object_get(facts, key));

    return text != NULL ? text : "?";
}

static bool monitor_is(const json_t *facts, const char *key)
{
    return json_is_true(json_object_get(facts, key));
}

/* A node: does the scheduler have its report? */
static enum monitor_status judge_node(const json_t *facts, FILE *line)
{
    if (monitor_is(facts, "refused")) {
        fprintf(line, "the scheduler refuses the report: %s", monitor_text(facts, "reason"));
        return MONITOR_CRITICAL;
    }
    if (monitor_is(facts, "stale")) {
        fprintf(line, "stale: %s", monitor_text(facts, "stale_reason"));
        return MONITOR_WARNING;
    }
    if (!monitor_is(facts, "connected")) {
        fprintf(line, "not connected to %s", monitor_text(facts, "scheduler"));
        return MONITOR_WARNING;
    }
    if (json_integer_value(json_object_get(facts, "probes_failed")) > 0) {
        fprintf(line, "a probe failed: %s", monitor_text(facts, "probe_error"));
        return MONITOR_WARNING;
    }
    fprintf(line, "connected to %s", monitor_text(facts, "scheduler"));
    return MONITOR_OK;
}

static enum monitor_status judge_scheduler(const json_t *facts, FILE *line)
{
    const json_t *findings = json_object_get(facts, "findings"), *worst = json_object_get(findings, "worst");
    const json_int_t errors = json_integer_value(json_object_get(findings, "errors"));
    const json_int_t warnings = json_integer_value(json_object_get(findings, "warnings"));
    char words[CTL_FINDINGS_WORDS];

    if (!json_is_object(findings)) {
        fputs("the findings are not known: see the daemon's log", line);
        return MONITOR_CRITICAL;
    }
    fprintf(line, "findings: %s", ctl_findings_words(findings, words));
    if (json_is_object(worst))
        fprintf(line, "; %s %s: %s", monitor_text(worst, "kind"), monitor_text(worst, "where"),
                monitor_text(worst, "what"));
    return errors > 0 ? MONITOR_CRITICAL : warnings > 0 ? MONITOR_WARNING : MONITOR_OK;
}

/* Behind a | there would be figures. */
static void print_monitor_line(const char *text)
{
    for (; *text != '\0'; text++)
        putchar(*text == '|' ? '/' : *text);
}

enum ctl_exit ctl_status_monitor(const struct ctl *ctl, const json_t *facts, const char *why)
{
    static const char *const words[] = {"OK", "WARNING", "CRITICAL"};
    const json_t *findings = json_object_get(facts, "findings");
    enum monitor_status status = MONITOR_CRITICAL;
    char *text = NULL;
    size_t size;
    FILE *line = open_memstream(&text, &size);

    if (line == NULL)
        return CTL_USAGE; /* the status of what is critical */
    if (!monitor_is(facts, "daemon"))
        fprintf(line, "%s", why);
    else if (strcmp(monitor_text(facts, "role"), "node") == 0)
        status = judge_node(facts, line);
    else
        status = judge_scheduler(facts, line);
    if (fclose(line) != 0)
        status = MONITOR_CRITICAL;
    if (ctl->format == CTL_TEXT && text != NULL) {
        ctl_clean(text);
        printf("%s - ", words[status]);
        print_monitor_line(text);
        if (json_is_object(findings))
            printf(" | errors=%lld warnings=%lld",
                   (long long)json_integer_value(json_object_get(findings, "errors")),
                   (long long)json_integer_value(json_object_get(findings, "warnings")));
        putchar('\n');
    }
    free(text);
    return (enum ctl_exit)status;
}
