/* history.c - what changed so far. */
#include "fabricctl/changes/changes.h"
#include "fabricctl/core/ask.h"

/* Under which other names it was, or is, known. */
static void print_names(const json_t *names, const char *what)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *one = json_array_get(names, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        json_int_t from = json_integer_value(json_object_get(one, "from"));
        json_int_t to = json_integer_value(json_object_get(one, "to"));

        printf("%s: with the history of %s ", what, name != NULL ? name : "");
        if (to == 0)
            printf("from generation %lld on\n", (long long)from);
        else if (from <= 1)
            printf("up to generation %lld\n", (long long)to);
        else
            printf("in generations %lld to %lld\n", (long long)from, (long long)to);
    }
}

/* That older ones are no more is said beside the rows that programs read. */
static enum ctl_exit show_history(const struct ctl *ctl, const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    json_int_t trimmed = json_integer_value(json_object_get(answer, "trimmed"));
    enum ctl_exit status;

    if (ctl->format == CTL_TEXT && ctl->n_args > 0)
        print_names(json_object_get(answer, "names"), ctl->args[0]);
    status = ctl_changes_table(ctl, changes, NULL);
    if (status == CTL_DONE && ctl->format == CTL_TEXT && json_array_size(changes) == 0)
        printf("the history has nothing about %s\n", ctl->n_args > 0 ? ctl->args[0] : "anything");
    if (status == CTL_DONE && trimmed > 0 && ctl->limit == 0)
        fprintf(ctl->format == CTL_TEXT ? stdout : stderr, "%strimmed: older than generation %lld\n",
                ctl->format == CTL_TEXT ? "" : "fabricctl: ", (long long)trimmed + 1);
    return status;
}

enum ctl_exit ctl_history(const struct ctl *ctl)
{
    const char *what = ctl->n_args > 0 ? ctl->args[0] : NULL;
    json_t *request = json_pack("{s:s, s:s*, s:o*}", "op", "history", "what", what, "limit",
                                ctl->limit > 0 ? json_integer(ctl->limit) : NULL);

    if (request == NULL && what != NULL)
        return ctl_usage("not UTF-8: %s: history takes a part of a name", what);
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show_history);
}
