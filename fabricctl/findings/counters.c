/* counters.c - what ports count, and what of it grows. */
#include "fabricctl/core/ask.h"
#include "fabricctl/core/table.h"
#include "fabricctl/findings/findings.h"

static const struct ctl_column counter_columns[] = {
    {"port", "PORT", false},
    {"state", "STATE", false},
    {"symbol_errors", "SYMBOL", true},
    {"link_recoveries", "RECOVER", true},
    {"link_downed", "DOWNED", true},
    {"receive_errors", "RECEIVE", true},
    {"local_integrity", "INTEGRITY", true},
    {"buffer_overruns", "OVERRUN", true},
    {"remote_errors", NULL, true},
    {"discards", "DISCARD", true},
    {"sent_words", NULL, true},
    {"received_words", NULL, true},
    {"sent_packets", NULL, true},
    {"received_packets", NULL, true},
    {"grown", "GROWN", false},
    {"since", "SINCE", false},
    {"read", NULL, false},
    {"peer", "CABLE TO", false},
};

static enum ctl_exit show_counters(const struct ctl *ctl, const json_t *answer)
{
    const json_t *ports = json_object_get(answer, "ports");

    if (ctl->format == CTL_TEXT && json_array_size(ports) == 0) {
        puts("no link changed in the last hour: name a switch or host to read its ports");
        return CTL_DONE;
    }
    return ctl_rows_table(ctl, counter_columns, CTL_COUNT(counter_columns), ports, NULL);
}

enum ctl_exit ctl_counters(const struct ctl *ctl)
{
    json_t *request =
        json_pack("{s:s, s:s*}", "op", "counters", "name", ctl->n_args > 0 ? ctl->args[0] : NULL);

    if (request == NULL)
        return ctl_usage("not UTF-8: counters: give a name as `fabricctl switches` or `devices` shows it");
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show_counters);
}
