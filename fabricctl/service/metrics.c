/*
 * metrics.c - the daemon's counters and gauges, as it tells them.
 */
#include <stdio.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/service/service.h"

enum ctl_exit ctl_metrics(const struct ctl *ctl)
{
    enum ctl_exit status = ctl_control_only(ctl, "metrics");
    json_t *answer;
    const char *text;

    if (status != CTL_DONE)
        return status;
    if (ctl->format != CTL_TEXT)
        return ctl_usage("a form of its own: --format: metrics are in Prometheus' text format only");
    status = ctl_ask(ctl, json_pack("{s:s}", "op", "metrics"), CTL_ANSWER_SECONDS, &answer);
    if (status != CTL_DONE)
        return status;
    text = json_string_value(json_object_get(answer, "text"));
    fputs(text != NULL ? text : "", stdout);
    json_decref(answer);
    return CTL_DONE;
}
