/* service_endpoints.c - the endpoints that jobs have. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/table.h"
#include "fabricctl/service/service.h"

static const struct ctl_column endpoints_columns[] = {
    {"plane", "PLANE", false}, {"first", "FIRST", true}, {"last", "LAST", true},    {"job", "JOB", false},
    {"uid", "UID", true},      {"pid", "PID", true},     {"since", "SINCE", false},
};

static enum ctl_exit show_endpoints(const struct ctl *ctl, const json_t *answer)
{
    const json_t *list = json_object_get(answer, "endpoints");

    if (ctl->format == CTL_TEXT && json_array_size(list) == 0) {
        puts("no job has endpoints");
        return CTL_DONE;
    }
    return ctl_rows_table(ctl, endpoints_columns, CTL_COUNT(endpoints_columns), list, NULL);
}

static enum ctl_exit show_freed(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column told[] = {{"job", "JOB", false}, {"pid", "PID", true}};
    json_t *list;
    enum ctl_exit status;

    (void)answer;
    if (ctl->format == CTL_TEXT) {
        printf("what job %s of process %s had is free\n", ctl->args[0], ctl->args[1]);
        return CTL_DONE;
    }
    list = json_pack("[{s:s, s:I}]", "job", ctl->args[0], "pid", (json_int_t)atol(ctl->args[1]));
    status = list == NULL ? ctl_nomem() : ctl_rows_table(ctl, told, CTL_COUNT(told), list, NULL);
    json_decref(list);
    return status;
}

enum ctl_exit ctl_endpoints(const struct ctl *ctl)
{
    char *end;
    long pid;
    json_t *request;

    if (!ctl->free && ctl->n_args > 0)
        return ctl_usage("too many arguments: %s: give --free, too, to free what a job has", ctl->args[0]);
    if (!ctl->free)
        return ctl_ask_show(ctl, json_pack("{s:s}", "op", "endpoints"), CTL_ANSWER_SECONDS, show_endpoints);
    if (ctl->n_args != 2)
        return ctl_usage("no job and process: --free: give both as `fabricctl endpoints` shows them");
    errno = 0;
    pid = strtol(ctl->args[1], &end, 10);
    if (errno != 0 || *end != '\0' || pid < 1 || pid > INT_MAX)
        return ctl_usage("not the number of a process: %s: see `fabricctl endpoints`", ctl->args[1]);
    request = json_pack("{s:s, s:b, s:s, s:I}", "op", "endpoints", "give_back", 1, "job", ctl->args[0], "pid",
                        (json_int_t)pid);
    if (request == NULL)
        return ctl_usage("not UTF-8: endpoints: give a job's name as `fabricctl endpoints` shows it");
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show_freed);
}
