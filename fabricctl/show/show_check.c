/* show_check.c - is it well, and what to do where it is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/show_findings.h"

static const struct ctl_column finding_columns[] = {
    {"id", "ID", false},           {"severity", "SEVERITY", false}, {"kind", "KIND", false},
    {"since", "SINCE", CTL_SPARE}, {"count", "COUNT", true},        {"acked", "ACKED", false},
    {"where", "WHERE", false},     {"what", "WHAT", false},         {"hint", NULL, false},
    {"acked_until", NULL, false},  {"acked_by", NULL, false},       {"bisection_gone", NULL, false},
    {"cause", NULL, false},        {"switches_behind", NULL, true}, {"hosts_behind", NULL, true},
};

#define SHORT_ID 8 /* digits that are shown; fewer are enough where they are clear */

static const char *op_row_text(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

/* What to do about each kind, once; those of a kind are neighbours. */
static void print_hints(const json_t *findings)
{
    const char *last = "";

    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *finding = json_array_get(findings, i);
        const char *kind = op_row_text(finding, "kind"), *hint = op_row_text(finding, "hint");
        char *line;

        if (kind == NULL || hint == NULL || strcmp(kind, last) == 0)
            continue;
        line = ctl_clean_copy(hint);
        printf("%s%s: %s\n", last[0] == '\0' ? "\n" : "", kind, line != NULL ? line : "?");
        free(line);
        last = kind;
    }
}

int ctl_severity(const char *name)
{
    static const char *const names[] = {"notice", "warning", "error"};

    for (int i = 0; name != NULL && i < 3; i++)
        if (strcmp(names[i], name) == 0)
            return i + 1;
    return 0;
}

/* Whether, or until when. */
static json_t *said_acked(const json_t *finding)
{
    const char *until = op_row_text(finding, "acked_until");

    if (op_row_text(finding, "acked") == NULL)
        return json_null();
    return until != NULL ? json_incref(json_object_get(finding, "acked_until")) : json_string("yes");
}

static bool hangs_on_another(const json_t *finding)
{
    return json_is_string(json_object_get(finding, "cause"));
}

/* Those that are grave enough, as they are shown; folded: without those that hang on another one. A new
 * reference; NULL: no memory. */
static json_t *choose_findings(const struct ctl *ctl, const json_t *findings, bool folded)
{
    json_t *chosen = json_array();

    for (size_t i = 0; i < json_array_size(findings); i++) {
        json_t *finding = json_array_get(findings, i), *row;
        const char *id = op_row_text(finding, "id");

        if (ctl_severity(op_row_text(finding, "severity")) < ctl->severity ||
            (folded && hangs_on_another(finding)))
            continue;
        row = json_copy(finding);
        if (ctl->format == CTL_TEXT) { /* short, for people */
            json_object_set_new(row, "id",
                                json_stringn(id != NULL ? id : "", id != NULL ? strnlen(id, SHORT_ID) : 0));
            json_object_set_new(row, "acked", said_acked(finding));
        }
        if (json_array_append_new(chosen, row) != 0) {
            json_decref(chosen);
            return NULL;
        }
    }
    return chosen;
}

/* How many an operator should look at; what hangs on another one is looked at with that, where both are
 * shown. */
static size_t count_open(const json_t *findings, bool causes_shown)
{
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *finding = json_array_get(findings, i);

        n += ctl_severity(op_row_text(finding, "severity")) > 1 &&
             json_is_null(json_object_get(finding, "acked")) && !(causes_shown && hangs_on_another(finding));
    }
    return n;
}

static enum ctl_exit print_findings(const struct ctl *ctl, const json_t *answer, const json_t *findings)
{
    json_t *rows = ctl->format == CTL_JSON ? json_array() : NULL;
    enum ctl_exit status = ctl_rows_table(ctl, finding_columns, CTL_COUNT(finding_columns), findings, rows);

    if (status == CTL_DONE && ctl->format == CTL_TEXT && !ctl->no_header)
        print_hints(findings);
    if (status == CTL_DONE && ctl->format == CTL_JSON)
        status = ctl_json_print(stdout, json_pack("{s:O, s:O}", "generation",
                                                  json_object_get(answer, "generation"), "findings", rows));
    json_decref(rows);
    return status;
}

static const char *const none_so_grave[] = {"nothing looks wrong", "nothing looks wrong",
                                            "nothing is an error or a warning", "nothing is an error"};

static enum ctl_exit show_findings(const struct ctl *ctl, const json_t *answer)
{
    const bool causes_shown = ctl->severity <= ctl_severity("warning"); /* an error may hang on a warning */
    const bool folded = ctl->format == CTL_TEXT && !ctl->all && causes_shown;
    json_t *findings = choose_findings(ctl, json_object_get(answer, "findings"), folded);
    json_t *all = folded ? choose_findings(ctl, json_object_get(answer, "findings"), false) : NULL;
    const size_t more = json_array_size(all) - (folded ? json_array_size(findings) : 0);
    json_t *generation = json_object_get(answer, "generation");
    enum ctl_exit status;

    if (findings == NULL)
        return ctl_nomem();
    status = print_findings(ctl, answer, findings);
    if (status == CTL_DONE && all != NULL && more > 0 && !ctl->no_header)
        printf("\n%zu more hang%s on these: fabricctl check --all\n", more, more == 1 ? "s" : "");
    json_decref(all);
    if (status == CTL_DONE && ctl->format == CTL_TEXT && json_array_size(findings) == 0 && !ctl->no_header)
        printf("generation %lld: %s\n", (long long)json_integer_value(generation),
               none_so_grave[ctl->severity]);
    if (status == CTL_DONE && count_open(findings, causes_shown) > 0)
        status = CTL_FAILED;
    json_decref(findings);
    return status;
}

/* ---- the store ---- */

#define STORE_SECONDS 600 /* from one line of progress to the next */

static enum ctl_exit show_store(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column told[] = {{"compared", "COMPARED", true},
                                             {"without", "WITHOUT DIGEST", true}};
    const long long compared = json_integer_value(json_object_get(answer, "compared"));
    const long long without = json_integer_value(json_object_get(answer, "without"));
    struct ctl_table *table;

    if (ctl->format == CTL_TEXT) {
        printf("the history is as it was published: %lld generation%s compared", compared,
               compared == 1 ? "" : "s");
        if (without > 0)
            printf("; %lld before them, of an older fabricd, cannot be", without);
        putchar('\n');
        return CTL_DONE;
    }
    table = ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, told, CTL_COUNT(told));
    ctl_put_number(table, compared);
    ctl_put_number(table, without);
    ctl_table_row(table);
    return ctl_table_close(table);
}

enum ctl_exit ctl_check(const struct ctl *ctl)
{
    if (ctl->store)
        return ctl_ask_show(ctl, json_pack("{s:s, s:b}", "op", "check", "store", 1), STORE_SECONDS,
                            show_store);
    return ctl_ask_show(ctl, json_pack("{s:s}", "op", "check"), CTL_ANSWER_SECONDS, show_findings);
}

/* ---- ack ---- */

static enum ctl_exit show_acked(const struct ctl *ctl, const json_t *answer)
{
    json_t *findings = choose_findings(ctl, json_object_get(answer, "findings"), false);
    enum ctl_exit status = findings == NULL ? ctl_nomem() : print_findings(ctl, answer, findings);

    json_decref(findings);
    return status;
}

enum ctl_exit ctl_ack(const struct ctl *ctl)
{
    json_t *request =
        json_pack("{s:s, s:s, s:b}", "op", "ack", "finding", ctl->args[0], "cancel", ctl->cancel);

    if (request == NULL)
        return ctl_usage("not UTF-8: %s: give a finding as `fabricctl check` shows it", ctl->args[0]);
    if (ctl->seconds > 0)
        json_object_set_new(request, "seconds", json_integer(ctl->seconds));
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show_acked);
}

const char *ctl_findings_words(const json_t *summary, char text[static CTL_FINDINGS_WORDS])
{
    static const struct {
        const char *key, *one, *many;
    } parts[] = {
        {"errors", "error", "errors"}, {"warnings", "warning", "warnings"}, {"notices", "notice", "notices"}};
    const long long acked = json_integer_value(json_object_get(summary, "acknowledged"));
    size_t used = 0;

    for (size_t i = 0; i < CTL_COUNT(parts); i++) {
        const long long n = json_integer_value(json_object_get(summary, parts[i].key));

        if (n > 0)
            used += (size_t)snprintf(text + used, CTL_FINDINGS_WORDS - used, "%s%lld %s",
                                     used > 0 ? ", " : "", n, n == 1 ? parts[i].one : parts[i].many);
    }
    if (used == 0)
        used = (size_t)snprintf(text, CTL_FINDINGS_WORDS, "none");
    if (acked > 0)
        snprintf(text + used, CTL_FINDINGS_WORDS - used, "; %lld acknowledged", acked);
    return text;
}
