/* show_diff.c - what changed between two generations. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/captures.h"
#include "fabricctl/show/changes.h"

static bool parse_generation(const char *text, json_int_t *out)
{
    char *end;
    unsigned long long value;

    if (!isdigit((unsigned char)text[0]) || strlen(text) > 18)
        return false;
    value = strtoull(text, &end, 10);
    *out = (json_int_t)value;
    return *end == '\0';
}

/* from, to, changes: of one answer to `diff`. */
static enum ctl_exit show_diff(const struct ctl *ctl, const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    json_int_t from = json_integer_value(json_object_get(answer, "from"));
    json_int_t to = json_integer_value(json_object_get(answer, "to"));
    enum ctl_exit status;
    json_t *rows;

    if (ctl->format == CTL_TEXT && json_array_size(changes) == 0)
        printf("generation %lld to %lld: nothing changed\n", (long long)from, (long long)to);
    if (ctl->format != CTL_JSON)
        return ctl_changes_table(ctl, changes, NULL);
    rows = json_array();
    status = ctl_changes_table(ctl, changes, rows);
    if (status == CTL_DONE)
        status =
            ctl_json_print(stdout, json_pack("{s:I, s:I, s:O}", "from", from, "to", to, "changes", rows));
    json_decref(rows);
    return status;
}

/* Two recorded fabrics; no daemon is asked. */
static enum ctl_exit diff_files(const struct ctl *ctl)
{
    json_t *changes;
    enum ctl_exit status = ctl_compare_captures(ctl->args[0], ctl->args[1], &changes);

    if (status != CTL_DONE)
        return status;
    if (ctl->format == CTL_TEXT && json_array_size(changes) == 0)
        printf("%s and %s: the same fabric\n", ctl->args[0], ctl->args[1]);
    status = ctl_changes_table(ctl, changes, NULL);
    if (status == CTL_DONE && json_array_size(changes) > 0)
        status = CTL_FAILED;
    json_decref(changes);
    return status;
}

enum ctl_exit ctl_diff(const struct ctl *ctl)
{
    json_int_t from = 0, to = 0;
    enum ctl_exit status;

    if (ctl->n_args == 2 && !parse_generation(ctl->args[0], &from) && !parse_generation(ctl->args[1], &to))
        return diff_files(ctl);
    status = ctl_control_only(ctl, "diff");
    if (status != CTL_DONE)
        return status;
    for (int i = 0; i < ctl->n_args; i++)
        if (!parse_generation(ctl->args[i], i == 0 ? &from : &to))
            return ctl_usage("not a generation: %s: give a number as `fabricctl status` shows it, or two "
                             "recorded fabrics",
                             ctl->args[i]);
    if (ctl->n_args == 2 && from > to)
        return ctl_usage("the wrong way round: diff %s %s: give the earlier generation first", ctl->args[0],
                         ctl->args[1]);
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:o*, s:o*}", "op", "diff", "from",
                                  ctl->n_args > 0 ? json_integer(from) : NULL, "to",
                                  ctl->n_args > 1 ? json_integer(to) : NULL),
                        CTL_ANSWER_SECONDS, show_diff);
}
