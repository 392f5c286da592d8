/* changes.c - rows of changes: the history, between two generations or recorded fabrics, from now on. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/show/show.h"
#include "probes/capture/capture_file.h"
#include "topo/changes/changes.h"
#include "topo/model/names.h"

/* ---- rows of changes, for people and for programs ---- */

static const struct ctl_column for_programs[] = {
    {"generation", NULL, false}, {"time", NULL, false},     {"kind", NULL, false},
    {"what", NULL, false},       {"before", NULL, false},   {"after", NULL, false},
    {"why", NULL, false},        {"planned", NULL, false},  {"first_seen", NULL, false},
    {"last_seen", NULL, false},  {"subjects", NULL, false},
};

/* Columns for people, in reading order. */
#define FOR_PEOPLE                                                                                           \
    {"time", "TIME", false}, {"generation", "GENERATION", true}, {"kind", "KIND", false},                    \
        {"what", "WHAT", false},                                                                             \
    {                                                                                                        \
        "change", "CHANGE", false                                                                            \
    }
#define WHY                                                                                                  \
    {                                                                                                        \
        "why", "WHY", CTL_SPARE                                                                              \
    }
static const struct ctl_column for_people[] = {FOR_PEOPLE, WHY};
/* With --long, also the sweeps between which the change happened. */
static const struct ctl_column for_people_long[] = {
    FOR_PEOPLE, {"last_seen", "LAST-SEEN", false}, {"first_seen", "FIRST-SEEN", false}, WHY};

static void put_for_programs(struct ctl_table *table, const json_t *row)
{
    for (size_t k = 0; k < CTL_COUNT(for_programs); k++) {
        const char *key = for_programs[k].key;
        if (strcmp(key, "planned") == 0)
            ctl_put_bool(table, ctl_is(row, key));
        else if (strcmp(key, "subjects") == 0)
            ctl_put_list(table, json_object_get(row, key));
        else
            ctl_put_member(table, row, key);
    }
}

/* Add two texts with a separator; missing ones are left out. */
static void put_joined(struct ctl_table *table, const char *a, const char *between, const char *b)
{
    char text[1200];
    snprintf(text, sizeof text, "%s%s%s", a != NULL ? a : "", between, b != NULL ? b : "");
    ctl_put_text(table, text);
}

/* Return whether the changes are of captures, which have no time of publication. */
static bool of_captures(const json_t *row)
{
    return row != NULL && !json_is_string(json_object_get(row, "time"));
}

static void put_for_people(const struct ctl *ctl, struct ctl_table *table, const json_t *row)
{
    const char *before = ctl_text_of(row, "before");
    const char *after = ctl_text_of(row, "after");
    bool planned = ctl_is(row, "planned");
    if (!of_captures(row)) {
        ctl_put_member(table, row, "time");
        ctl_put_member(table, row, "generation");
    }
    put_joined(table, ctl_text_of(row, "kind"), planned ? ", planned" : "", NULL);
    ctl_put_member(table, row, "what");
    put_joined(table, before, before != NULL && after != NULL && *before != '\0' ? " -> " : "", after);
    if (ctl->longer) {
        ctl_put_member(table, row, "last_seen");
        ctl_put_member(table, row, "first_seen");
    }
    ctl_put_member(table, row, "why");
}

/* Open a table with the columns for people or for programs. */
static struct ctl_table *open_table(FILE *out, const struct ctl *ctl, bool people, const json_t *first,
                                    json_t *into)
{
    const struct ctl_column *columns = !people ? for_programs : ctl->longer ? for_people_long : for_people;
    size_t n = !people       ? CTL_COUNT(for_programs)
               : ctl->longer ? CTL_COUNT(for_people_long)
                             : CTL_COUNT(for_people);
    if (people && of_captures(first)) { /* without the first two columns */
        columns += 2;
        n -= 2;
    }
    return ctl_table_open(out, ctl->format, CTL_JSON_ARRAY, into, columns, n);
}

static enum ctl_exit changes_rows(FILE *out, const struct ctl *ctl, const json_t *changes, json_t *into)
{
    bool people = ctl->format == CTL_TEXT && into == NULL;
    struct ctl_table *table = open_table(out, ctl, people, json_array_get(changes, 0), into);
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

enum ctl_exit ctl_changes_table(const struct ctl *ctl, const json_t *changes)
{
    return changes_rows(stdout, ctl, changes, NULL);
}

enum ctl_exit ctl_changes_write(FILE *out, const struct ctl *ctl, const json_t *changes)
{
    return changes_rows(out, ctl, changes, NULL);
}

json_t *ctl_changes_json(const struct ctl *ctl, const json_t *changes)
{
    json_t *rows = json_array();
    if (changes_rows(stdout, ctl, changes, rows) == CTL_DONE)
        return rows;
    json_decref(rows);
    return NULL;
}

/* ---- two recorded fabrics, read and compared with the daemon's code for a sweep ---- */

static void captures_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    if (level <= PMIXFAB_LOG_WARNING)
        ctl_error("%s", line);
}

/* Read a capture, with names as without any configuration. inv is initialised here. */
static enum ctl_exit read_capture(const char *path, struct fab_inventory *inv)
{
    const struct probe_config config = {.arg = path};
    const struct probe_sink sink = {captures_note, NULL};
    struct fab_names *names = NULL;
    struct fab_err err = {""};
    int rc;
    fab_inventory_init(inv);
    rc = probe_file.run(&config, &sink, inv, &err)
             ?: fab_names_new(NULL, &names, &err)
             ?: fab_names_apply(names, inv, &err);
    fab_names_free(names);
    return rc == PMIXFAB_OK ? CTL_DONE : ctl_usage("%s", err.text);
}

static json_t *captured_subjects(const char *subjects)
{
    json_t *list = json_array();
    for (; subjects != NULL && *subjects != '\0'; subjects = fab_subject_next(subjects))
        json_array_append_new(list, json_string(subjects));
    return list;
}

static json_t *captured_changes(const struct fab_diff *diff)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < diff->n; i++) {
        const struct fab_change *c = &diff->changes[i];
        json_array_append_new(list, json_pack("{s:n, s:n, s:s, s:s, s:s, s:s, s:s, s:b, s:n, s:n, s:o}",
                                              "generation", "time", "kind", fab_change_name(c->kind), "what",
                                              c->what, "before", c->before, "after", c->after, "why",
                                              c->why != NULL ? c->why : "", "planned", 0, "first_seen",
                                              "last_seen", "subjects", captured_subjects(c->subjects)));
    }
    return list;
}

static enum ctl_exit compare_captures(const char *before, const char *after, json_t **changes)
{
    struct fab_inventory old, new;
    struct fab_diff diff = {0};
    enum ctl_exit status = read_capture(before, &old);
    int rc;
    *changes = NULL;
    fab_inventory_init(&new);
    if (status == CTL_DONE)
        status = read_capture(after, &new);
    if (status == CTL_DONE) {
        rc = fab_diff_compute(&old, &new, &diff) ?: fab_diff_correlate_with(&old, &new, NULL, &diff);
        *changes = rc == PMIXFAB_OK ? captured_changes(&diff) : NULL;
        if (*changes == NULL)
            status = ctl_nomem();
    }
    fab_diff_destroy(&diff);
    fab_inventory_destroy(&old);
    fab_inventory_destroy(&new);
    return status;
}

/* ---- the history ---- */

/* Print the other names of the object, earlier and later ones. */
static void print_names(const json_t *names, const char *what)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const json_t *one = json_array_get(names, i);
        const json_int_t from = ctl_number_of(one, "from"), to = ctl_number_of(one, "to");
        printf("%s: with the history of ", what);
        ctl_say(stdout, one,
                to == 0     ? "{name} from generation {from} on\n"
                : from <= 1 ? "{name} up to generation {to}\n"
                            : "{name} in generations {from} to {to}\n");
    }
}

/* Print a note that is not in the rows: for programs on standard error. */
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
    json_int_t trimmed = ctl_number_of(answer, "trimmed");
    bool more = ctl_is(answer, "more");
    size_t n = json_array_size(changes);
    enum ctl_exit status;
    char line[160];
    if (ctl->format == CTL_TEXT && ctl->n_args > 0)
        print_names(json_object_get(answer, "names"), ctl->args[0]);
    status = ctl_changes_table(ctl, changes);
    if (status == CTL_DONE && ctl->format == CTL_TEXT && n == 0)
        printf("no changes in the history%s%s%s\n", ctl->n_args > 0 ? " about " : "",
               ctl->n_args > 0 ? ctl->args[0] : "", ctl->since != 0 ? " since then" : "");
    if (status == CTL_DONE && more && (ctl->limit == 0 || ctl->format == CTL_TEXT)) {
        snprintf(line, sizeof line,
                 "the latest %zu change%s; for older ones give --all, --limit N or --since TIME", n,
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
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:s*, s:o*, s:o*}", "op", "history", "what",
                                  ctl->n_args > 0 ? ctl->args[0] : NULL, "limit",
                                  ctl->all || ctl->limit > 0 ? json_integer(ctl->all ? 0 : ctl->limit) : NULL,
                                  "since", ctl->since != 0 ? json_integer(ctl->since) : NULL),
                        CTL_ANSWER_SECONDS, show_history);
}

/* ---- changes between two generations ---- */

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

/* Print the changes; for JSON with their ends, generations or files, whose references are taken over. */
static enum ctl_exit print_diff(const struct ctl *ctl, json_t *from, json_t *to, const json_t *changes)
{
    const bool json = ctl->format == CTL_JSON;
    json_t *rows = json ? json_array() : NULL;
    enum ctl_exit status = json ? changes_rows(stdout, ctl, changes, rows) : ctl_changes_table(ctl, changes);
    if (json && status == CTL_DONE)
        return ctl_json_print(stdout, json_pack("{s:o, s:o, s:o}", "from", from, "to", to, "changes", rows));
    json_decref(rows);
    json_decref(from);
    json_decref(to);
    return status;
}

static enum ctl_exit show_diff(const struct ctl *ctl, const json_t *answer)
{
    const json_t *changes = json_object_get(answer, "changes");
    if (ctl->format == CTL_TEXT && json_array_size(changes) == 0)
        ctl_say(stdout, answer, "generation {from} to {to}: nothing changed\n");
    return print_diff(ctl, json_integer(ctl_number_of(answer, "from")),
                      json_integer(ctl_number_of(answer, "to")), changes);
}

/* Compare two recorded fabrics, without a daemon. */
static enum ctl_exit diff_files(const struct ctl *ctl)
{
    json_t *changes;
    enum ctl_exit status = compare_captures(ctl->args[0], ctl->args[1], &changes);
    if (status != CTL_DONE)
        return status;
    if (ctl->format == CTL_TEXT && json_array_size(changes) == 0)
        printf("%s and %s: the same fabric\n", ctl->args[0], ctl->args[1]);
    status = print_diff(ctl, ctl_json_text(ctl->args[0]), ctl_json_text(ctl->args[1]), changes);
    if (status == CTL_DONE && json_array_size(changes) > 0)
        status = CTL_FAILED;
    json_decref(changes);
    return status;
}

enum ctl_exit ctl_diff(const struct ctl *ctl)
{
    json_int_t from = 0, to = 0;
    enum ctl_exit status;
    if (ctl->n_args == 2 && !parse_generation(ctl->args[0], &from) && !parse_generation(ctl->args[1], &to))
        return diff_files(ctl);
    status = ctl_control_only(ctl, "diff");
    if (status != CTL_DONE)
        return status;
    for (int i = 0; i < ctl->n_args; i++)
        if (!parse_generation(ctl->args[i], i == 0 ? &from : &to))
            return ctl_usage("not a generation: %s: give a number as `fabricctl status` shows it, or two "
                             "recorded fabrics",
                             ctl->args[i]);
    if (ctl->n_args == 2 && from > to)
        return ctl_usage("wrong order: diff %s %s: give the earlier generation first", ctl->args[0],
                         ctl->args[1]);
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:o*, s:o*}", "op", "diff", "from",
                                  ctl->n_args > 0 ? json_integer(from) : NULL, "to",
                                  ctl->n_args > 1 ? json_integer(to) : NULL),
                        CTL_ANSWER_SECONDS, show_diff);
}

/* ---- the latest events, and new ones ---- */

static const struct ctl_column event_columns[] = {
    {"time", "TIME", false},  {"event", "EVENT", false},          {"plane", "PLANE", false},
    {"index", "INDEX", true}, {"generation", "GENERATION", true}, {"reason", "REASON", false},
};

static json_t *request_of(bool follow)
{
    return json_pack("{s:s, s:b}", "op", "events", "follow", follow);
}

static enum ctl_exit show_latest(const struct ctl *ctl, const json_t *answer)
{
    return ctl_rows_table(ctl, event_columns, CTL_COUNT(event_columns), json_object_get(answer, "events"),
                          NULL);
}

/* Print a line for people: a table cannot be laid out before its last row is known. */
static bool event_show_line(const struct ctl *ctl, const json_t *event)
{
    const char *time = ctl_text_of(event, "time");
    const char *name = ctl_text_of(event, "event");
    const char *plane = ctl_text_of(event, "plane");
    const char *reason = ctl_text_of(event, "reason");
    char *line, shown[CTL_TIME_SIZE];
    if (asprintf(&line, "%s  %-26s  plane %s, generation %lld%s%s", ctl_shown_time(time, ctl->longer, shown),
                 name != NULL ? name : "-", plane != NULL ? plane : "-",
                 (long long)ctl_number_of(event, "generation"), reason != NULL ? ": " : "",
                 reason != NULL ? reason : "") < 0)
        return false;
    ctl_clean(line);
    puts(line);
    free(line);
    return fflush(stdout) == 0;
}

/* Print events until the operator, the reader of standard output, or the daemon ends the stream. */
static enum ctl_exit events_follow(const struct ctl *ctl, struct ctl_control *control)
{
    struct ctl_table *table =
        ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, event_columns, CTL_COUNT(event_columns));
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
    /* a reader that left did not request an end */
    return closed == CTL_DONE && !ctl_interrupted() ? CTL_FAILED : closed;
}

enum ctl_exit ctl_events(const struct ctl *ctl)
{
    enum ctl_exit status;
    struct ctl_control *control;
    json_t *first;
    if (!ctl->follow)
        return ctl_ask_show(ctl, request_of(false), CTL_ANSWER_SECONDS, show_latest);
    status = ctl_ask_stream(ctl, request_of(true), &control, &first) ?: events_follow(ctl, control);
    json_decref(first);
    ctl_control_close(control);
    return status;
}

/* ---- changes in words, as they are published ---- */

static const char *change_text(const json_t *change, const char *key)
{
    const char *text = ctl_text_of(change, key);
    return text != NULL ? text : "";
}

/* Print "TIME generation 7: host-missing node1 HCA-1 there -> missing (why)". */
static bool watch_line(const struct ctl *ctl, const json_t *change)
{
    const char *before = change_text(change, "before"), *after = change_text(change, "after"),
               *why = change_text(change, "why");
    char *line, time[CTL_TIME_SIZE];
    if (asprintf(&line, "%s  generation %lld: %s%s %s%s%s%s%s%s%s%s",
                 ctl_shown_time(change_text(change, "time"), ctl->longer, time),
                 (long long)ctl_number_of(change, "generation"), change_text(change, "kind"),
                 ctl_is(change, "planned") ? ", planned" : "", change_text(change, "what"),
                 *before != '\0' || *after != '\0' ? ": " : "", before,
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

/* Print the changes of the generations after *last, and advance it. */
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

/* Print changes until the operator, the reader of standard output, or the daemon ends the stream. */
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
            status = watch_catch_up(ctl, &last, ctl_number_of(line, "published"), &going);
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
    generation = ctl_number_of(first, "generation");
    if (status == CTL_DONE && ctl->format == CTL_TEXT) {
        ctl_say(stdout, first, "generation {generation} is published; new changes follow\n");
        fflush(stdout);
    }
    if (status == CTL_DONE)
        status = watch_follow(ctl, control, generation);
    json_decref(first);
    ctl_control_close(control);
    return status;
}
