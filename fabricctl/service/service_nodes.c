/*
 * service_nodes.c - the hosts that report their own devices, asked of the daemon.
 */
#include <stdlib.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/table.h"
#include "fabricctl/service/service.h"

static const struct ctl_column columns[] = {
    {"host", "HOST", false}, {"devices", "DEVICES", true},  {"unseen", "UNSEEN", true},
    {"items", NULL, true},   {"sources", "SOURCES", false}, {"received", "RECEIVED", false},
    {"age", NULL, true},     {"uid", "UID", true},          {"digest", NULL, false},
    {"failed", NULL, false}, {"remarks", NULL, false},
};

/* What could not be joined, and what failed, is told below the table, a line each. */
static void print_remarks(const json_t *nodes)
{
    const char *between = "\n";
    size_t i, k;
    json_t *node, *remark;

    json_array_foreach(nodes, i, node)
    {
        json_array_foreach(json_object_get(node, "remarks"), k, remark)
        {
            char *line = ctl_clean_copy(json_string_length(remark) > 0 ? json_string_value(remark) : "?");

            printf("%s%s\n", between, line != NULL ? line : "?");
            free(line);
            between = "";
        }
    }
}

static enum ctl_exit nodes_show(const struct ctl *ctl, const json_t *answer)
{
    const json_t *nodes = json_object_get(answer, "nodes");
    enum ctl_exit status;

    if (ctl->n_args > 0 && json_array_size(nodes) == 0)
        return ctl_error("no report of host %s: %s: `fabricctl nodes` shows the hosts that report",
                         ctl->args[0], ctl->rundir);
    status = ctl_rows_table(ctl, columns, CTL_COUNT(columns), nodes, NULL);
    if (status == CTL_DONE && ctl->format == CTL_TEXT)
        print_remarks(nodes);
    return status;
}

/* Ask about the host of the command line, if one stands there. */
static enum ctl_exit ask(const struct ctl *ctl, const char *op,
                         enum ctl_exit (*show)(const struct ctl *ctl, const json_t *answer))
{
    json_t *request = json_pack("{s:s, s:s*}", "op", op, "host", ctl->n_args > 0 ? ctl->args[0] : NULL);

    if (request == NULL)
        return ctl_usage("not UTF-8: %s: give a host's name as `fabricctl nodes` shows it", op);
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show);
}

enum ctl_exit ctl_nodes(const struct ctl *ctl)
{
    return ask(ctl, "nodes", nodes_show);
}

static enum ctl_exit show_forgotten(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column told[] = {{"host", "HOST", false}, {"forgotten", "FORGOTTEN", false}};
    struct ctl_table *table;
    bool retired = json_integer_value(json_object_get(answer, "retired")) > 0;
    bool lost = json_integer_value(json_object_get(answer, "lost")) > 0;

    if (ctl->format == CTL_TEXT) {
        printf("%s is forgotten%s\n", ctl->args[0],
               retired ? ": it keeps no place any more"
               : lost  ? ": it is not waited for any more"
                       : ", until it reports again");
        return CTL_DONE;
    }
    table = ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, told, CTL_COUNT(told));
    ctl_put_text(table, ctl->args[0]);
    ctl_put_bool(table, true);
    ctl_table_row(table);
    return ctl_table_close(table);
}

enum ctl_exit ctl_forget(const struct ctl *ctl)
{
    return ask(ctl, "forget", show_forgotten);
}
