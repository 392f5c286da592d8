/*
 * hands.c - check, verify and expect: is it well, is it as it is served, and what will be changed.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/changes/changes.h"
#include "fabricctl/core/text.h"
#include "fabricctl/fabric/list.h"

/* ---- check ---- */

static const struct ctl_column finding_columns[] = {
    {"severity", "SEVERITY", false}, {"kind", "KIND", false}, {"where", "WHERE", false},
    {"what", "WHAT", false},         {"hint", NULL, false},
};

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

static enum ctl_exit show_findings(const struct ctl *ctl, const json_t *answer)
{
    const json_t *findings = json_object_get(answer, "findings");
    json_t *generation = json_object_get(answer, "generation"), *rows;
    enum ctl_exit status;

    if (ctl->format == CTL_TEXT && json_array_size(findings) == 0) {
        printf("generation %lld: nothing looks wrong\n", (long long)json_integer_value(generation));
        return CTL_DONE;
    }
    rows = ctl->format == CTL_JSON ? json_array() : NULL;
    status = ctl_rows_table(ctl, finding_columns, CTL_COUNT(finding_columns), findings, rows);
    if (status == CTL_DONE && ctl->format == CTL_TEXT)
        print_hints(findings);
    if (status == CTL_DONE && ctl->format == CTL_JSON)
        status = ctl_json_print(stdout, json_pack("{s:O, s:O}", "generation", generation, "findings", rows));
    json_decref(rows);
    return status == CTL_DONE && json_array_size(findings) > 0 ? CTL_FAILED : status;
}

enum ctl_exit ctl_check(const struct ctl *ctl)
{
    return ctl_ask_show(ctl, json_pack("{s:s}", "op", "check"), CTL_ANSWER_SECONDS, show_findings);
}

/* ---- verify ---- */

static enum ctl_exit show_verified(const struct ctl *ctl, const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    json_t *generation = json_object_get(answer, "generation"), *rows;
    bool equal = json_is_true(json_object_get(answer, "equal"));
    enum ctl_exit status = CTL_DONE;

    if (ctl->format == CTL_TEXT)
        printf("generation %lld %s\n", (long long)json_integer_value(generation),
               equal ? "is what a sweep sees now" : "is not what a sweep sees now:");
    if (ctl->format == CTL_JSON) {
        rows = ctl_changes_json(ctl, changes);
        status = rows == NULL
                     ? CTL_FAILED
                     : ctl_json_print(stdout,
                                      json_pack("{s:O, s:b, s:o, s:O?, s:O?}", "generation", generation,
                                                "equal", equal, "changes", rows, "suppressed",
                                                json_object_get(answer, "suppressed"), "suppressed_switches",
                                                json_object_get(answer, "suppressed_switches")));
    } else if (!equal || ctl->format == CTL_CSV) {
        status = ctl_changes_table(ctl, changes, NULL);
    }
    if (ctl->format == CTL_TEXT)
        ctl_print_suppressed(answer);
    return status == CTL_DONE && !equal ? CTL_FAILED : status;
}

enum ctl_exit ctl_verify(const struct ctl *ctl)
{
    return ctl_ask_show(ctl, json_pack("{s:s}", "op", "verify"), CTL_SWEEP_SECONDS, show_verified);
}

/* ---- expect ---- */

static const struct ctl_column expected_columns[] = {
    {"name", "NAME", false},
    {"since", "SINCE", false},
    {"until", "UNTIL", false},
    {"uid", "UID", true},
};

static enum ctl_exit show_expected(const struct ctl *ctl, const json_t *answer)
{
    const json_t *expected = json_object_get(answer, "expected");

    if (ctl->format == CTL_TEXT && ctl->cancel) {
        printf("%s is not expected to change any more\n", ctl->args[0]);
        return CTL_DONE;
    }
    if (ctl->format == CTL_TEXT && json_array_size(expected) == 0) {
        puts("no swap is announced");
        return CTL_DONE;
    }
    return ctl_rows_table(ctl, expected_columns, CTL_COUNT(expected_columns), expected, NULL);
}

static enum ctl_exit op_check_options(const struct ctl *ctl)
{
    if (ctl->replace && ctl->cancel)
        return ctl_usage("one or the other: --replace and --cancel");
    if (ctl->n_args == 0 && (ctl->replace || ctl->cancel))
        return ctl_usage("no name: expect %s: say which host or switch",
                         ctl->replace ? "--replace" : "--cancel");
    if (ctl->seconds > 0 && !ctl->replace)
        return ctl_usage("says for how long a swap is announced: --for: give --replace, too");
    return CTL_DONE;
}

enum ctl_exit ctl_expect(const struct ctl *ctl)
{
    enum ctl_exit status = op_check_options(ctl);
    json_t *request;

    if (status != CTL_DONE)
        return status;
    request = json_pack("{s:s, s:b, s:b, s:o*, s:s*}", "op", "expect", "replace", ctl->replace, "cancel",
                        ctl->cancel, "seconds", ctl->seconds > 0 ? json_integer(ctl->seconds) : NULL, "name",
                        ctl->n_args > 0 ? ctl->args[0] : NULL);
    if (request == NULL)
        return ctl_usage("not UTF-8: expect: give a name as `fabricctl devices` or `switches` shows it");
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show_expected);
}
