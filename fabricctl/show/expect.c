/* expect.c - swaps that are announced. */
#include "fabricctl/core/ask.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/changes.h"

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
