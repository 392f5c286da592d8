/*
 * show_events.c - the latest events, and those to come.
 */
#include <stdlib.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/changes.h"

static const struct ctl_column columns[] = {
    {"time", "TIME", false},  {"event", "EVENT", false},          {"plane", "PLANE", false},
    {"index", "INDEX", true}, {"generation", "GENERATION", true}, {"reason", "REASON", false},
};

static json_t *request_of(bool follow)
{
    return json_pack("{s:s, s:b}", "op", "events", "follow", follow);
}

static enum ctl_exit show_latest(const struct ctl *ctl, const json_t *answer)
{
    return ctl_rows_table(ctl, columns, CTL_COUNT(columns), json_object_get(answer, "events"), NULL);
}

/* A line for people; a table cannot be laid out before its last row is known. */
static bool event_show_line(const struct ctl *ctl, const json_t *event)
{
    const char *time = json_string_value(json_object_get(event, "time"));
    const char *name = json_string_value(json_object_get(event, "event"));
    const char *plane = json_string_value(json_object_get(event, "plane"));
    const char *reason = json_string_value(json_object_get(event, "reason"));
    char *line, shown[CTL_TIME_SIZE];

    if (asprintf(&line, "%s  %-26s  plane %s, generation %lld%s%s", ctl_shown_time(time, ctl->longer, shown),
                 name != NULL ? name : "-", plane != NULL ? plane : "-",
                 (long long)json_integer_value(json_object_get(event, "generation")),
                 reason != NULL ? ": " : "", reason != NULL ? reason : "") < 0)
        return false;
    ctl_clean(line);
    puts(line);
    free(line);
    return fflush(stdout) == 0;
}

/* Until the operator, the reader of our output, or the daemon ends it. */
static enum ctl_exit events_follow(const struct ctl *ctl, struct ctl_control *control)
{
    struct ctl_table *table =
        ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, columns, CTL_COUNT(columns));
    enum ctl_exit status = CTL_DONE, closed;
    char why[CTL_WHY_SIZE];
    bool going = table != NULL;

    fflush(stdout); /* the header of CSV */
    while (going) {
        json_t *event;

        status = ctl_control_next(control, -1, &event, why);
        going = status == CTL_DONE && event != NULL;
        if (going && json_is_string(json_object_get(event, "event")))
            going = ctl->format == CTL_TEXT ? event_show_line(ctl, event) : ctl_put_members(table, event);
        json_decref(event);
    }
    closed = ctl_table_close(table);
    if (status != CTL_DONE)
        return ctl_error("%s", why);
    /* a reader who left is no end that anybody asked for */
    return closed == CTL_DONE && !ctl_interrupted() ? CTL_FAILED : closed;
}

enum ctl_exit ctl_events(const struct ctl *ctl)
{
    enum ctl_exit status;
    struct ctl_control *control;
    json_t *first;

    if (!ctl->follow)
        return ctl_ask_show(ctl, request_of(false), CTL_ANSWER_SECONDS, show_latest);
    status = ctl_ask_stream(ctl, request_of(true), &control, &first);
    if (status == CTL_DONE)
        status = events_follow(ctl, control);
    json_decref(first);
    ctl_control_close(control);
    return status;
}
