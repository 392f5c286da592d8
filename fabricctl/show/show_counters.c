/* show_counters.c - what ports count, and what of it grows. */
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/table.h"
#include "fabricctl/show/show_findings.h"

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
    {"above", NULL, false},
    {"level", NULL, true},
    {"growth", NULL, true},
};

static int compare_rows(const void *x, const void *y, const char *key)
{
    const json_t *const *a = x, *const *b = y;
    const double first = json_number_value(json_object_get(*a, key));
    const double second = json_number_value(json_object_get(*b, key));

    return (first < second) - (first > second);
}

/* What grows most first, then what has most; of equal ones as they came. */
static int compare_badness(const void *x, const void *y)
{
    const int growth = compare_rows(x, y, "growth"), level = compare_rows(x, y, "level");
    const json_t *const *a = x, *const *b = y;

    return growth != 0  ? growth
           : level != 0 ? level
                        : strcmp(json_string_value(json_object_get(*a, "port")),
                                 json_string_value(json_object_get(*b, "port")));
}

/* A new array, worst first; errors: without those that have no more than is usual. NULL: no memory. */
static json_t *worst_first(const json_t *ports, bool errors)
{
    const size_t n = json_array_size(ports);
    json_t **rows = calloc(n + 1, sizeof *rows), *list = json_array();
    size_t kept = 0;

    for (size_t i = 0; rows != NULL && i < n; i++) {
        json_t *row = json_array_get(ports, i);

        if (json_string_value(json_object_get(row, "port")) != NULL &&
            (!errors || json_array_size(json_object_get(row, "above")) > 0 ||
             json_number_value(json_object_get(row, "growth")) > 1))
            rows[kept++] = row;
    }
    if (kept > 1)
        qsort(rows, kept, sizeof *rows, compare_badness);
    for (size_t i = 0; i < kept; i++)
        json_array_append(list, rows[i]);
    if (rows == NULL) {
        json_decref(list);
        list = NULL;
    }
    free(rows);
    return list;
}

/* How far the rounds have come; no port that has not been read is in the list. */
static void print_round(const json_t *answer)
{
    const long long read = json_integer_value(json_object_get(answer, "read"));
    const long long cabled = json_integer_value(json_object_get(answer, "cabled"));

    if (json_integer_value(json_object_get(answer, "round_seconds")) == 0)
        puts("all counters are not read: see counters_round in fabricd.conf(5)");
    else if (json_integer_value(json_object_get(answer, "rounds")) == 0)
        printf("%lld of %lld ports are read so far\n", read, cabled);
}

static enum ctl_exit show_counters(const struct ctl *ctl, const json_t *answer)
{
    const json_t *ports = json_object_get(answer, "ports");

    json_t *rows = ctl->all || ctl->errors ? worst_first(ports, ctl->errors) : json_incref((json_t *)ports);
    enum ctl_exit status = CTL_DONE;

    if (rows == NULL)
        return ctl_nomem();
    if (ctl->format != CTL_TEXT || json_array_size(rows) > 0)
        status = ctl_rows_table(ctl, counter_columns, CTL_COUNT(counter_columns), rows, NULL);
    else if (ctl->errors)
        puts("no port has more errors than is usual");
    else if (!ctl->all)
        puts("no link changed in the last hour: name a switch or host to read its ports, or give --all");
    if (status == CTL_DONE && ctl->format == CTL_TEXT && ctl->all && !ctl->no_header)
        print_round(answer);
    json_decref(rows);
    return status;
}

enum ctl_exit ctl_counters(const struct ctl *ctl)
{
    json_t *request =
        json_pack("{s:s, s:s*}", "op", "counters", "name", ctl->n_args > 0 ? ctl->args[0] : NULL);

    if (ctl->all && ctl->n_args > 0) {
        json_decref(request);
        return ctl_usage("one or the other: --all and %s: --all shows all ports as they were read last",
                         ctl->args[0]);
    }
    if (ctl->all && request != NULL)
        json_object_update_new(request, json_pack("{s:b, s:b}", "all", 1, "errors", ctl->errors));

    if (request == NULL)
        return ctl_usage("not UTF-8: counters: give a name as `fabricctl switches` or `devices` shows it");
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show_counters);
}
