/* show_watch.c - what changes, in words, as it is published. */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_text.h"
#include "fabricctl/show/changes.h"

static const char *change_text(const json_t *change, const char *key)
{
    const char *text = json_string_value(json_object_get(change, key));
    return text != NULL ? text : "";
}

/* "TIME generation 7: host-missing node1 HCA-1 there -> missing (why)" */
static bool watch_line(const struct ctl *ctl, const json_t *change)
{
    const char *before = change_text(change, "before"), *after = change_text(change, "after"),
               *why = change_text(change, "why");
    char *line, time[CTL_TIME_SIZE];

    if (asprintf(&line, "%s  generation %lld: %s%s %s%s%s%s%s%s%s%s",
                 ctl_shown_time(change_text(change, "time"), ctl->longer, time),
                 (long long)json_integer_value(json_object_get(change, "generation")),
                 change_text(change, "kind"),
                 json_is_true(json_object_get(change, "planned")) ? ", planned" : "",
                 change_text(change, "what"), *before != '\0' || *after != '\0' ? ": " : "", before,
                 *before != '\0' && *after != '\0' ? " -> " : "", after, *why != '\0' ? " (" : "", why,
                 *why != '\0' ? ")" : "") < 0)
        return false;
    ctl_clean(line);
    puts(line);
    free(line);
    return true;
}

static bool watch_show(const struct ctl *ctl, const json_t *changes)
{
    bool going = true;

    for (size_t i = 0; going && i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i);

        if (ctl->format == CTL_TEXT)
            going = watch_line(ctl, change);
        else
            going = json_dumpf(change, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
    }
    return fflush(stdout) == 0 && going;
}

/* The changes of the generations behind *last, which moves on. */
static enum ctl_exit watch_catch_up(const struct ctl *ctl, json_int_t *last, json_int_t to, bool *going)
{
    json_t *answer;
    enum ctl_exit status;

    if (to <= *last)
        return CTL_DONE;
    status = ctl_ask(ctl, json_pack("{s:s, s:I, s:I}", "op", "diff", "from", *last, "to", to),
                     CTL_ANSWER_SECONDS, &answer);
    if (status == CTL_DONE)
        *going = watch_show(ctl, json_object_get(answer, "changes"));
    *last = to;
    json_decref(answer);
    return status;
}

/* Until the operator, the reader of our output, or the daemon ends it. */
static enum ctl_exit watch_follow(const struct ctl *ctl, struct ctl_control *control, json_int_t last)
{
    enum ctl_exit status = CTL_DONE;
    char why[CTL_WHY_SIZE];
    bool going = true;

    while (going && status == CTL_DONE) {
        json_t *line;

        if (ctl_control_next(control, -1, &line, why) != CTL_DONE)
            return ctl_error("%s", why);
        going = line != NULL;
        if (going)
            status =
                watch_catch_up(ctl, &last, json_integer_value(json_object_get(line, "published")), &going);
        json_decref(line);
    }
    return status == CTL_DONE && !ctl_interrupted() ? CTL_FAILED : status;
}

enum ctl_exit ctl_watch(const struct ctl *ctl)
{
    enum ctl_exit status;
    struct ctl_control *control;
    json_t *first;
    json_int_t generation;

    if (ctl->format == CTL_CSV)
        return ctl_usage("no such format of watch: csv: there are text and json (an object a line)");
    status = ctl_ask_stream(ctl, json_pack("{s:s}", "op", "watch"), &control, &first);
    generation = json_integer_value(json_object_get(first, "generation"));
    if (status == CTL_DONE && ctl->format == CTL_TEXT) {
        printf("generation %lld is published; what changes now is told here\n", (long long)generation);
        fflush(stdout);
    }
    if (status == CTL_DONE)
        status = watch_follow(ctl, control, generation);
    json_decref(first);
    ctl_control_close(control);
    return status;
}
