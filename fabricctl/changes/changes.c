/*
 * changes.c - history and diff: what changed, asked of the daemon.
 */
#include "fabricctl/changes/changes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/fabric/list.h"

static const struct ctl_column for_programs[] = {
    {"generation", NULL, false}, {"time", NULL, false},     {"kind", NULL, false},
    {"what", NULL, false},       {"before", NULL, false},   {"after", NULL, false},
    {"why", NULL, false},        {"planned", NULL, false},  {"first_seen", NULL, false},
    {"last_seen", NULL, false},  {"subjects", NULL, false},
};

/* For people: in the order in which it is read. */
#define FOR_PEOPLE                                                                                           \
    {"time", "TIME", false}, {"generation", "GENERATION", true}, {"kind", "KIND", false},                    \
        {"what", "WHAT", false},                                                                             \
    {                                                                                                        \
        "change", "CHANGE", false                                                                            \
    }
#define WHY                                                                                                  \
    {                                                                                                        \
        "why", "WHY", false                                                                                  \
    }
static const struct ctl_column for_people[] = {FOR_PEOPLE, WHY};
/* With --long: between which sweeps it happened, too. */
static const struct ctl_column for_people_long[] = {
    FOR_PEOPLE, {"last_seen", "LAST-SEEN", false}, {"first_seen", "FIRST-SEEN", false}, WHY};

enum ctl_exit ctl_control_only(const struct ctl *ctl, const char *command)
{
    if (ctl->uri == NULL)
        return CTL_DONE;
    return ctl_usage("%s does not go over PMIx: --uri: run it on fabricd's own host, with --rundir", command);
}

enum ctl_exit ctl_ask(const struct ctl *ctl, json_t *request, int seconds, json_t **answer)
{
    enum ctl_exit status = ctl_control_only(ctl, json_string_value(json_object_get(request, "op")));
    char why[CTL_WHY_SIZE];

    *answer = NULL;
    if (status != CTL_DONE)
        json_decref(request);
    else if (ctl_control_ask(ctl->rundir, request, seconds, answer, why) != CTL_DONE)
        status = ctl_error("%s", why);
    return status;
}

enum ctl_exit ctl_ask_show(const struct ctl *ctl, json_t *request, int seconds,
                           enum ctl_exit (*show)(const struct ctl *ctl, const json_t *answer))
{
    json_t *answer;
    enum ctl_exit status = ctl_ask(ctl, request, seconds, &answer);

    if (status == CTL_DONE)
        status = show(ctl, answer);
    json_decref(answer);
    return status;
}

static void put_for_programs(struct ctl_table *table, const json_t *row)
{
    for (size_t k = 0; k < CTL_COUNT(for_programs); k++) {
        const char *key = for_programs[k].key;

        if (strcmp(key, "planned") == 0)
            ctl_put_bool(table, json_is_true(json_object_get(row, key)));
        else if (strcmp(key, "subjects") == 0)
            ctl_put_list(table, json_object_get(row, key));
        else
            ctl_put_member(table, row, key);
    }
}

/* Two texts with something between; absent ones are left out. */
static void put_joined(struct ctl_table *table, const char *a, const char *between, const char *b)
{
    char text[1200];

    snprintf(text, sizeof text, "%s%s%s", a != NULL ? a : "", between, b != NULL ? b : "");
    ctl_put_text(table, text);
}

static void put_for_people(const struct ctl *ctl, struct ctl_table *table, const json_t *row)
{
    const char *before = json_string_value(json_object_get(row, "before"));
    const char *after = json_string_value(json_object_get(row, "after"));
    bool planned = json_is_true(json_object_get(row, "planned"));

    ctl_put_member(table, row, "time");
    ctl_put_member(table, row, "generation");
    put_joined(table, json_string_value(json_object_get(row, "kind")), planned ? ", planned" : "", NULL);
    ctl_put_member(table, row, "what");
    put_joined(table, before, before != NULL && after != NULL && *before != '\0' ? " -> " : "", after);
    if (ctl->longer) {
        ctl_put_member(table, row, "last_seen");
        ctl_put_member(table, row, "first_seen");
    }
    ctl_put_member(table, row, "why");
}

/* Which columns, for whom. */
static struct ctl_table *open_table(const struct ctl *ctl, bool people, json_t *into)
{
    const struct ctl_column *columns = !people ? for_programs : ctl->longer ? for_people_long : for_people;
    size_t n = !people       ? CTL_COUNT(for_programs)
               : ctl->longer ? CTL_COUNT(for_people_long)
                             : CTL_COUNT(for_people);

    return ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, columns, n);
}

void ctl_print_suppressed(const json_t *answer)
{
    json_int_t cables = json_integer_value(json_object_get(answer, "suppressed"));
    json_int_t switches = json_integer_value(json_object_get(answer, "suppressed_switches"));
    char some[2][40] = {"", ""};

    if (cables + switches == 0)
        return;
    if (cables > 0)
        snprintf(some[0], sizeof(some[0]), "%lld cable%s", (long long)cables, cables == 1 ? "" : "s");
    if (switches > 0)
        snprintf(some[1], sizeof(some[1]), "%lld switch%s", (long long)switches, switches == 1 ? "" : "es");
    printf("%s%s%s %s suppressed: see fabricctl check\n", some[0], cables > 0 && switches > 0 ? " and " : "",
           some[1], cables + switches == 1 ? "is" : "are");
}

enum ctl_exit ctl_changes_table(const struct ctl *ctl, const json_t *changes, json_t *into)
{
    bool people = ctl->format == CTL_TEXT && into == NULL;
    struct ctl_table *table = open_table(ctl, people, into);
    bool going = table != NULL;

    for (size_t i = 0; going && i < json_array_size(changes); i++) {
        if (people)
            put_for_people(ctl, table, json_array_get(changes, i));
        else
            put_for_programs(table, json_array_get(changes, i));
        going = ctl_table_row(table);
    }
    return ctl_table_close(table);
}

json_t *ctl_changes_json(const struct ctl *ctl, const json_t *changes)
{
    json_t *rows = json_array();

    if (ctl_changes_table(ctl, changes, rows) == CTL_DONE)
        return rows;
    json_decref(rows);
    return NULL;
}

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

/* ---- diff ---- */

static bool parse_generation(const char *text, json_int_t *out)
{
    char *end;
    unsigned long long value;

    if (!isdigit((unsigned char)text[0]) || strlen(text) > 18)
        return false;
    value = strtoull(text, &end, 10);
    *out = (json_int_t)value;
    return *end == '\0';
}

/* from, to, changes: of one answer to `diff`. */
static enum ctl_exit show_diff(const struct ctl *ctl, const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    json_int_t from = json_integer_value(json_object_get(answer, "from"));
    json_int_t to = json_integer_value(json_object_get(answer, "to"));
    json_t *rows;

    if (ctl->format == CTL_TEXT && json_array_size(changes) == 0)
        printf("generation %lld to %lld: nothing changed\n", (long long)from, (long long)to);
    if (ctl->format != CTL_JSON)
        return ctl_changes_table(ctl, changes, NULL);
    rows = ctl_changes_json(ctl, changes);
    return rows == NULL ? CTL_FAILED
                        : ctl_json_print(
                              stdout, json_pack("{s:I, s:I, s:o}", "from", from, "to", to, "changes", rows));
}

enum ctl_exit ctl_diff(const struct ctl *ctl)
{
    enum ctl_exit status = ctl_control_only(ctl, "diff");
    json_int_t from = 0, to = 0;

    if (status != CTL_DONE)
        return status;
    for (int i = 0; i < ctl->n_args; i++)
        if (!parse_generation(ctl->args[i], i == 0 ? &from : &to))
            return ctl_usage("not a generation: %s: give a number as `fabricctl status` shows it",
                             ctl->args[i]);
    if (ctl->n_args == 2 && from > to)
        return ctl_usage("the wrong way round: diff %s %s: give the earlier generation first", ctl->args[0],
                         ctl->args[1]);
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:o*, s:o*}", "op", "diff", "from",
                                  ctl->n_args > 0 ? json_integer(from) : NULL, "to",
                                  ctl->n_args > 1 ? json_integer(to) : NULL),
                        CTL_ANSWER_SECONDS, show_diff);
}
