/* check.c - is it well, and what to do where it is not. */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/table.h"
#include "fabricctl/core/text.h"
#include "fabricctl/findings/findings.h"

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
