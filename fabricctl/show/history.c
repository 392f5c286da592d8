/* history.c - what changed so far. */
#include "fabricctl/core/ask.h"
#include "fabricctl/show/changes.h"

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

/* What is not in the rows is said beside those that programs read. */
static void say_beside(const struct ctl *ctl, const char *line)
{
    if (ctl->format == CTL_TEXT)
        puts(line);
    else
        ctl_error("%s", line);
}

static enum ctl_exit show_history(const struct ctl *ctl, const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    json_int_t trimmed = json_integer_value(json_object_get(answer, "trimmed"));
    bool more = json_is_true(json_object_get(answer, "more"));
    size_t n = json_array_size(changes);
    enum ctl_exit status;
    char line[160];

    if (ctl->format == CTL_TEXT && ctl->n_args > 0)
        print_names(json_object_get(answer, "names"), ctl->args[0]);
    status = ctl_changes_table(ctl, changes, NULL);
    if (status == CTL_DONE && ctl->format == CTL_TEXT && n == 0)
        printf("the history has nothing%s%s%s\n", ctl->n_args > 0 ? " about " : "",
               ctl->n_args > 0 ? ctl->args[0] : "", ctl->since != 0 ? " since then" : "");
    if (status == CTL_DONE && more && (ctl->limit == 0 || ctl->format == CTL_TEXT)) {
        snprintf(line, sizeof line,
                 "the latest %zu change%s; there are older ones: --all, --limit N or --since TIME", n,
                 n == 1 ? "" : "s");
        say_beside(ctl, line);
    } else if (status == CTL_DONE && trimmed > 0 && ctl->limit == 0 && ctl->since == 0) {
        snprintf(line, sizeof line, "trimmed: older than generation %lld", (long long)trimmed + 1);
        say_beside(ctl, line);
    }
    return status;
}

enum ctl_exit ctl_history(const struct ctl *ctl)
{
    const char *what = ctl->n_args > 0 ? ctl->args[0] : NULL;
    json_t *request = json_pack("{s:s, s:s*, s:o*, s:o*}", "op", "history", "what", what, "limit",
                                ctl->all || ctl->limit > 0 ? json_integer(ctl->all ? 0 : ctl->limit) : NULL,
                                "since", ctl->since != 0 ? json_integer(ctl->since) : NULL);

    if (request == NULL && what != NULL)
        return ctl_usage("not UTF-8: %s: history takes a part of a name", what);
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show_history);
}
