/* show_findings.c - findings, with the advice for each, and the error counters of ports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/show/show.h"

/* ---- findings and their advice ---- */

static const struct ctl_column finding_columns[] = {
    {"id", "ID", false},           {"severity", "SEVERITY", false}, {"kind", "KIND", false},
    {"since", "SINCE", CTL_SPARE}, {"count", "COUNT", true},        {"acked", "ACKED", false},
    {"where", "WHERE", false},     {"what", "WHAT", false},         {"hint", NULL, false},
    {"acked_until", NULL, false},  {"acked_by", NULL, false},       {"bisection_gone", NULL, false},
    {"cause", NULL, false},        {"switches_behind", NULL, true}, {"hosts_behind", NULL, true},
};

#define SHORT_ID 8 /* shown digits; fewer are accepted if they are unique */

/* Print the advice for each kind, once; findings of a kind follow each other. */
static void print_hints(const json_t *findings)
{
    const char *last = "";
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *finding = json_array_get(findings, i);
        const char *kind = ctl_text_of(finding, "kind"), *hint = ctl_text_of(finding, "hint");
        char *line;
        if (kind == NULL || hint == NULL || strcmp(kind, last) == 0)
            continue;
        line = ctl_clean_copy(hint);
        printf("%s%s: %s\n", last[0] == '\0' ? "\n" : "", kind, line != NULL ? line : "?");
        free(line);
        last = kind;
    }
}

int ctl_severity(const char *name)
{
    static const char *const names[] = {"notice", "warning", "error"};
    for (int i = 0; name != NULL && i < 3; i++)
        if (strcmp(names[i], name) == 0)
            return i + 1;
    return 0;
}

/* Return the column `acked`: yes, or the end of the acknowledgement. */
static json_t *said_acked(const json_t *finding)
{
    const char *until = ctl_text_of(finding, "acked_until");
    if (ctl_text_of(finding, "acked") == NULL)
        return json_null();
    return until != NULL ? json_incref(json_object_get(finding, "acked_until")) : json_string("yes");
}

static bool hangs_on_another(const json_t *finding)
{
    return json_is_string(json_object_get(finding, "cause"));
}

/*
 * Return findings of the requested severity, in their shown form, as a new reference. folded: leave out
 * findings that follow from another finding. NULL: no memory.
 */
static json_t *choose_findings(const struct ctl *ctl, const json_t *findings, bool folded)
{
    json_t *chosen = json_array();
    for (size_t i = 0; i < json_array_size(findings); i++) {
        json_t *finding = json_array_get(findings, i), *row;
        const char *id = ctl_text_of(finding, "id");
        if (ctl_severity(ctl_text_of(finding, "severity")) < ctl->severity ||
            (folded && hangs_on_another(finding)))
            continue;
        row = json_copy(finding);
        if (ctl->format == CTL_TEXT) { /* short, for people */
            json_object_set_new(row, "id",
                                json_stringn(id != NULL ? id : "", id != NULL ? strnlen(id, SHORT_ID) : 0));
            json_object_set_new(row, "acked", said_acked(finding));
        }
        if (json_array_append_new(chosen, row) != 0) {
            json_decref(chosen);
            return NULL;
        }
    }
    return chosen;
}

/*
 * Count the findings that need the operator's attention. A finding that follows from another one is not
 * counted if both are shown.
 */
static size_t count_open(const json_t *findings, bool causes_shown)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *finding = json_array_get(findings, i);
        n += ctl_severity(ctl_text_of(finding, "severity")) > 1 &&
             json_is_null(json_object_get(finding, "acked")) && !(causes_shown && hangs_on_another(finding));
    }
    return n;
}

static enum ctl_exit print_findings(const struct ctl *ctl, const json_t *answer, const json_t *findings)
{
    json_t *rows = ctl->format == CTL_JSON ? json_array() : NULL;
    enum ctl_exit status = ctl_rows_table(ctl, finding_columns, CTL_COUNT(finding_columns), findings, rows);
    if (status == CTL_DONE && ctl->format == CTL_TEXT && !ctl->no_header)
        print_hints(findings);
    if (status == CTL_DONE && ctl->format == CTL_JSON)
        status = ctl_json_print(stdout, json_pack("{s:O, s:O}", "generation",
                                                  json_object_get(answer, "generation"), "findings", rows));
    json_decref(rows);
    return status;
}

static const char *const none_so_grave[] = {"no findings", "no findings", "no error and no warning",
                                            "no error"};

static enum ctl_exit show_findings(const struct ctl *ctl, const json_t *answer)
{
    /* an error may follow from a warning */
    const bool causes_shown = ctl->severity <= ctl_severity("warning");
    const bool folded = ctl->format == CTL_TEXT && !ctl->all && causes_shown;
    json_t *findings = choose_findings(ctl, json_object_get(answer, "findings"), folded);
    json_t *all = folded ? choose_findings(ctl, json_object_get(answer, "findings"), false) : NULL;
    const size_t more = json_array_size(all) - (folded ? json_array_size(findings) : 0);
    enum ctl_exit status;
    if (findings == NULL)
        return ctl_nomem();
    status = print_findings(ctl, answer, findings);
    if (status == CTL_DONE && all != NULL && more > 0 && !ctl->no_header)
        printf("\n%zu more follow%s from these: fabricctl check --all\n", more, more == 1 ? "s" : "");
    json_decref(all);
    if (status == CTL_DONE && ctl->format == CTL_TEXT && json_array_size(findings) == 0 && !ctl->no_header)
        printf("generation %lld: %s\n", (long long)ctl_number_of(answer, "generation"),
               none_so_grave[ctl->severity]);
    if (status == CTL_DONE && count_open(findings, causes_shown) > 0)
        status = CTL_FAILED;
    json_decref(findings);
    return status;
}

/* ---- the store ---- */

#define STORE_SECONDS 600 /* from one line of progress to the next */

static enum ctl_exit show_store(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column columns[] = {{"compared", "COMPARED", true},
                                                {"without", "WITHOUT DIGEST", true}};
    const json_int_t compared = ctl_number_of(answer, "compared"), without = ctl_number_of(answer, "without");
    if (ctl->format != CTL_TEXT)
        return ctl_row_print(ctl, columns, CTL_COUNT(columns),
                             json_pack("{s:I, s:I}", "compared", compared, "without", without));
    ctl_say(stdout, answer, "the history is as it was published: {compared} generation");
    fputs(compared == 1 ? " compared" : "s compared", stdout);
    if (without > 0)
        ctl_say(stdout, answer, "; {without} before them, of an older fabricd, have no digest to compare");
    putchar('\n');
    return CTL_DONE;
}

enum ctl_exit ctl_check(const struct ctl *ctl)
{
    return ctl->store ? ctl_ask_show(ctl, json_pack("{s:s, s:b}", "op", "check", "store", 1), STORE_SECONDS,
                                     show_store)
                      : ctl_ask_op(ctl, "check", show_findings);
}

/* ---- ack ---- */

static enum ctl_exit show_acked(const struct ctl *ctl, const json_t *answer)
{
    json_t *findings = choose_findings(ctl, json_object_get(answer, "findings"), false);
    enum ctl_exit status = findings == NULL ? ctl_nomem() : print_findings(ctl, answer, findings);
    json_decref(findings);
    return status;
}

enum ctl_exit ctl_ack(const struct ctl *ctl)
{
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:s, s:b, s:o*}", "op", "ack", "finding", ctl->args[0], "cancel",
                                  ctl->cancel, "seconds",
                                  ctl->seconds > 0 ? json_integer(ctl->seconds) : NULL),
                        CTL_ANSWER_SECONDS, show_acked);
}

const char *ctl_findings_words(const json_t *summary, char text[static CTL_FINDINGS_WORDS])
{
    static const struct {
        const char *key, *one, *many;
    } parts[] = {
        {"errors", "error", "errors"}, {"warnings", "warning", "warnings"}, {"notices", "notice", "notices"}};
    const long long acked = ctl_number_of(summary, "acknowledged");
    size_t used = 0;
    for (size_t i = 0; i < CTL_COUNT(parts); i++) {
        const long long n = ctl_number_of(summary, parts[i].key);
        if (n > 0)
            used += (size_t)snprintf(text + used, CTL_FINDINGS_WORDS - used, "%s%lld %s",
                                     used > 0 ? ", " : "", n, n == 1 ? parts[i].one : parts[i].many);
    }
    if (used == 0)
        used = (size_t)snprintf(text, CTL_FINDINGS_WORDS, "none");
    if (acked > 0)
        snprintf(text + used, CTL_FINDINGS_WORDS - used, "; %lld acknowledged", acked);
    return text;
}

/* ---- error counters of ports, and their growth ---- */

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

/* Sort by growth, then by level; equal ports by name. */
static int compare_badness(const void *x, const void *y)
{
    const int growth = compare_rows(x, y, "growth"), level = compare_rows(x, y, "level");
    const json_t *const *a = x, *const *b = y;
    return growth != 0  ? growth
           : level != 0 ? level
                        : strcmp(ctl_text_of(*a, "port"), ctl_text_of(*b, "port"));
}

/* Return a new array, worst first. errors: leave out ports whose counters are usual. NULL: no memory. */
static json_t *worst_first(const json_t *ports, bool errors)
{
    const size_t n = json_array_size(ports);
    json_t **rows = calloc(n + 1, sizeof *rows), *list = json_array();
    size_t kept = 0;
    for (size_t i = 0; rows != NULL && i < n; i++) {
        json_t *row = json_array_get(ports, i);
        if (ctl_text_of(row, "port") != NULL &&
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

/* Print the progress of the rounds; ports that were not read yet are not in the list. */
static void print_round(const json_t *answer)
{
    if (ctl_number_of(answer, "round_seconds") == 0)
        puts("fabricd does not read all counters: see counters_round in fabricd.conf(5)");
    else if (ctl_number_of(answer, "rounds") == 0)
        ctl_say(stdout, answer, "{read} of {cabled} ports are read so far\n");
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
    if (ctl->all && ctl->n_args > 0)
        return ctl_usage("one or the other: --all and %s: --all shows all ports as they were read last",
                         ctl->args[0]);
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:s*, s:o*, s:o*}", "op", "counters", "name",
                                  ctl->n_args > 0 ? ctl->args[0] : NULL, "all", ctl->all ? json_true() : NULL,
                                  "errors", ctl->all ? json_boolean(ctl->errors) : NULL),
                        CTL_ANSWER_SECONDS, show_counters);
}
