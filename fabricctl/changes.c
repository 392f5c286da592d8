/*
 * changes.c - history, diff and refresh: what changed, asked of the daemon.
 */
#include "changes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"

/* A sweep has a deadline of its own, which the operator may have set high; a daemon that stops closes the
 * socket. */
#define REFRESH_SECONDS 900

static const struct ctl_column for_programs[] = {
    {"generation", NULL, false}, {"time", NULL, false},     {"kind", NULL, false},
    {"what", NULL, false},       {"before", NULL, false},   {"after", NULL, false},
    {"why", NULL, false},        {"planned", NULL, false},  {"first_seen", NULL, false},
    {"last_seen", NULL, false},  {"subjects", NULL, false},
};

/* For people: in the order in which it is read. */
static const struct ctl_column for_people[] = {
    {"time", "TIME", false}, {"generation", "GENERATION", true}, {"kind", "KIND", false},
    {"what", "WHAT", false}, {"change", "CHANGE", false},        {"why", "WHY", false},
};

enum ctl_exit ctl_control_only(const struct ctl *ctl, const char *command)
{
    if (ctl->uri == NULL)
        return CTL_DONE;
    return ctl_usage("%s does not go over PMIx: --uri: run it on fabricd's own host, with --rundir", command);
}

/* A member that is a number or else text. */
static void put_member(struct ctl_table *table, const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);

    if (json_is_integer(value))
        ctl_put_number(table, json_integer_value(value));
    else
        ctl_put_text(table, json_string_value(value));
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
            put_member(table, row, key);
    }
}

/* Two texts with something between; absent ones are left out. */
static void put_joined(struct ctl_table *table, const char *a, const char *between, const char *b)
{
    char text[1200];

    snprintf(text, sizeof text, "%s%s%s", a != NULL ? a : "", between, b != NULL ? b : "");
    ctl_put_text(table, text);
}

static void put_for_people(struct ctl_table *table, const json_t *row)
{
    const char *before = json_string_value(json_object_get(row, "before"));
    const char *after = json_string_value(json_object_get(row, "after"));
    bool planned = json_is_true(json_object_get(row, "planned"));

    put_member(table, row, "time");
    put_member(table, row, "generation");
    put_joined(table, json_string_value(json_object_get(row, "kind")), planned ? ", planned" : "", NULL);
    put_member(table, row, "what");
    put_joined(table, before, before != NULL && after != NULL && *before != '\0' ? " -> " : "", after);
    put_member(table, row, "why");
}

enum ctl_exit ctl_changes_table(const struct ctl *ctl, const json_t *changes, json_t *into)
{
    bool people = ctl->format == CTL_TEXT && into == NULL;
    struct ctl_table *table =
        ctl_table_open(stdout, ctl->format, CTL_JSON_ARRAY, into, people ? for_people : for_programs,
                       people ? CTL_COUNT(for_people) : CTL_COUNT(for_programs));
    bool going = table != NULL;

    for (size_t i = 0; going && i < json_array_size(changes); i++) {
        if (people)
            put_for_people(table, json_array_get(changes, i));
        else
            put_for_programs(table, json_array_get(changes, i));
        going = ctl_table_row(table);
    }
    return ctl_table_close(table);
}

enum ctl_exit ctl_history(const struct ctl *ctl)
{
    json_t *request = json_pack("{s:s}", "op", "history"), *answer = NULL;
    enum ctl_exit status = ctl_control_only(ctl, "history");
    char why[CTL_WHY_SIZE];

    if (status != CTL_DONE) {
        json_decref(request);
        return status;
    }
    if (ctl->n_args > 0 && json_object_set_new(request, "what", json_string(ctl->args[0])) != 0) {
        json_decref(request);
        return ctl_usage("not UTF-8: %s: history takes a part of a name", ctl->args[0]);
    }
    if (ctl->limit > 0)
        json_object_set_new(request, "limit", json_integer(ctl->limit));
    if (ctl_control_ask(ctl->rundir, request, CTL_ANSWER_SECONDS, &answer, why) != CTL_DONE)
        return ctl_error("%s", why);
    status = ctl_changes_table(ctl, json_object_get(answer, "changes"), NULL);
    json_int_t trimmed = json_integer_value(json_object_get(answer, "trimmed"));
    if (status == CTL_DONE && ctl->format == CTL_TEXT && trimmed > 0 && ctl->limit == 0)
        printf("trimmed: older than generation %lld\n", (long long)trimmed + 1);
    json_decref(answer);
    return status;
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
    enum ctl_exit status;
    json_t *rows;

    if (ctl->format == CTL_TEXT && json_array_size(changes) == 0)
        printf("generation %lld to %lld: nothing changed\n", (long long)from, (long long)to);
    if (ctl->format != CTL_JSON)
        return ctl_changes_table(ctl, changes, NULL);
    rows = json_array();
    status = ctl_changes_table(ctl, changes, rows);
    if (status != CTL_DONE) {
        json_decref(rows);
        return status;
    }
    return ctl_json_print(stdout, json_pack("{s:I, s:I, s:o}", "from", from, "to", to, "changes", rows));
}

static enum ctl_exit ask_diff(const struct ctl *ctl, json_t *request, json_t **answer)
{
    char why[CTL_WHY_SIZE];

    if (ctl_control_ask(ctl->rundir, request, CTL_ANSWER_SECONDS, answer, why) != CTL_DONE)
        return ctl_error("%s", why);
    return CTL_DONE;
}

enum ctl_exit ctl_diff(const struct ctl *ctl)
{
    json_t *request = json_pack("{s:s}", "op", "diff"), *answer = NULL;
    enum ctl_exit status = ctl_control_only(ctl, "diff");
    json_int_t generation[2] = {0, 0};

    for (int i = 0; i < ctl->n_args && status == CTL_DONE; i++) {
        if (!parse_generation(ctl->args[i], &generation[i]))
            status =
                ctl_usage("not a generation: %s: give a number as `fabricctl status` shows it", ctl->args[i]);
        else
            json_object_set_new(request, i == 0 ? "from" : "to", json_integer(generation[i]));
    }
    if (status == CTL_DONE && ctl->n_args == 2 && generation[0] > generation[1])
        status = ctl_usage("the wrong way round: diff %s %s: give the earlier generation first", ctl->args[0],
                           ctl->args[1]);
    if (status != CTL_DONE) {
        json_decref(request);
        return status;
    }
    status = ask_diff(ctl, request, &answer);
    if (status == CTL_DONE)
        status = show_diff(ctl, answer);
    json_decref(answer);
    return status;
}

/* ---- refresh ---- */

bool ctl_mentions(const char *what, const char *host)
{
    size_t len = strlen(host);

    if (len == 0)
        return false;
    for (const char *p = strstr(what, host); p != NULL; p = strstr(p + 1, host)) {
        bool begins = p == what || (!isalnum((unsigned char)p[-1]) && strchr("._-", p[-1]) == NULL);
        bool ends = p[len] == '\0' || (!isalnum((unsigned char)p[len]) && strchr("._-", p[len]) == NULL);

        if (begins && ends)
            return true;
    }
    return false;
}

/* Is the host one of those that a change is about? */
static bool is_subject(const json_t *row, const char *host)
{
    const json_t *subjects = json_object_get(row, "subjects"), *one;
    size_t i;

    json_array_foreach(subjects, i, one)
    {
        if (json_is_string(one) && strcmp(json_string_value(one), host) == 0)
            return true;
    }
    return false;
}

/* Those of the changes that are about the host; all of them without one. A new reference. */
static json_t *about_host(const json_t *changes, const char *host)
{
    json_t *kept = json_array();

    for (size_t i = 0; i < json_array_size(changes); i++) {
        json_t *row = json_array_get(changes, i);
        const char *what = json_string_value(json_object_get(row, "what"));

        if (host == NULL || (what != NULL && ctl_mentions(what, host)) || is_subject(row, host))
            json_array_append(kept, row);
    }
    return kept;
}

/* "Nothing changed" about a host that nobody has is a wrong answer. */
static enum ctl_exit require_host(const struct ctl *ctl)
{
    struct ctl_view view;
    enum ctl_exit status = ctl_view_all(ctl, &view);
    bool found = false;

    if (status != CTL_DONE)
        return status;
    for (size_t i = 0; i < view.n && !found; i++) {
        struct pmixfab_plane plane = {0};

        pmixfab_plane(view.planes[i], &plane);
        for (uint32_t h = 0; h < plane.n_hosts && !found; h++) {
            const char *name;
            uint32_t first, n;

            found = pmixfab_host(view.planes[i], h, &name, &first, &n) == 0 && strcmp(name, ctl->host) == 0;
        }
    }
    ctl_view_close(&view);
    return found ? CTL_DONE
                 : ctl_error(
                       "no host %s: the fabric as just seen: check the name, its cable, and that it is up",
                       ctl->host);
}

static enum ctl_exit show_refresh(const struct ctl *ctl, const json_t *answer, const json_t *changes)
{
    json_int_t generation = json_integer_value(json_object_get(answer, "generation"));
    bool changed = json_is_true(json_object_get(answer, "changed"));
    bool partial = json_is_true(json_object_get(answer, "partial"));
    enum ctl_exit status;
    json_t *rows;

    if (ctl->format == CTL_TEXT)
        printf("generation %lld, %s%s\n", (long long)generation,
               changed ? "published just now:" : "as before: nothing changed",
               partial ? " (only a part of the fabric answered)" : "");
    if (ctl->format != CTL_JSON)
        return changed || ctl->format == CTL_CSV ? ctl_changes_table(ctl, changes, NULL) : CTL_DONE;
    rows = json_array();
    status = ctl_changes_table(ctl, changes, rows);
    if (status != CTL_DONE) {
        json_decref(rows);
        return status;
    }
    return ctl_json_print(stdout, json_pack("{s:I, s:b, s:b, s:o}", "generation", generation, "changed",
                                            changed, "partial", partial, "changes", rows));
}

/* The answer of a daemon on a node, which looks at its own devices and delivers what it sees. */
static enum ctl_exit show_looked(const struct ctl *ctl, const json_t *answer)
{
    static const char *const keys[] = {"generation", "digest", "probes_failed"};
    json_int_t failed = json_integer_value(json_object_get(answer, "probes_failed"));
    const char *digest = json_string_value(json_object_get(answer, "digest"));
    json_t *shown;

    if (ctl->format == CTL_TEXT) {
        printf("looked, and the scheduler has it: report %s", digest != NULL ? digest : "-");
        if (failed > 0)
            printf("; %lld probes failed, see fabricctl status", (long long)failed);
        putchar('\n');
        return CTL_DONE;
    }
    if (ctl->format == CTL_CSV)
        return ctl_changes_table(ctl, NULL, NULL);
    shown = json_object();
    for (size_t i = 0; i < CTL_COUNT(keys); i++)
        json_object_set(shown, keys[i], json_object_get(answer, keys[i]));
    return ctl_json_print(stdout, shown);
}

/* The request; with `host` the daemon asks that node first to look at its devices. */
static json_t *refresh_request(const struct ctl *ctl)
{
    json_t *request = json_pack("{s:s, s:b}", "op", "refresh", "accept_partial", ctl->accept_partial);

    if (ctl->host != NULL && request != NULL &&
        json_object_set_new(request, "host", json_string(ctl->host)) != 0) {
        json_decref(request);
        return NULL;
    }
    return request;
}

enum ctl_exit ctl_refresh(const struct ctl *ctl)
{
    json_t *request, *answer = NULL, *diff = NULL, *changes = NULL;
    enum ctl_exit status = ctl_control_only(ctl, "refresh");
    char why[CTL_WHY_SIZE];

    if (status != CTL_DONE)
        return status;
    request = refresh_request(ctl);
    if (request == NULL)
        return ctl_usage("not UTF-8: --host: give a name as `fabricctl devices` shows it");
    if (ctl_control_ask(ctl->rundir, request, REFRESH_SECONDS, &answer, why) != CTL_DONE)
        return ctl_error("%s", why);
    if (json_object_get(answer, "digest") != NULL) {
        status = show_looked(ctl, answer);
        json_decref(answer);
        return status;
    }
    if (json_is_true(json_object_get(answer, "changed"))) {
        json_int_t to = json_integer_value(json_object_get(answer, "generation"));

        status = ask_diff(ctl, json_pack("{s:s, s:I, s:I}", "op", "diff", "from", to - 1, "to", to), &diff);
    }
    changes = about_host(json_object_get(diff, "changes"), ctl->host);
    if (status == CTL_DONE && ctl->host != NULL && json_array_size(changes) == 0)
        status = require_host(ctl);
    if (status == CTL_DONE)
        status = show_refresh(ctl, answer, changes);
    json_decref(changes);
    json_decref(diff);
    json_decref(answer);
    return status;
}
