/*
 * changes.c - rows of changes, for people and for programs.
 */
#include "fabricctl/show/changes.h"

#include <string.h>

#include "fabricctl/core/table.h"

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
        "why", "WHY", CTL_SPARE                                                                              \
    }
static const struct ctl_column for_people[] = {FOR_PEOPLE, WHY};
/* With --long: between which sweeps it happened, too. */
static const struct ctl_column for_people_long[] = {
    FOR_PEOPLE, {"last_seen", "LAST-SEEN", false}, {"first_seen", "FIRST-SEEN", false}, WHY};

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

/* Of what was never published nobody knows when it was. */
static bool of_captures(const json_t *row)
{
    return row != NULL && !json_is_string(json_object_get(row, "time"));
}

static void put_for_people(const struct ctl *ctl, struct ctl_table *table, const json_t *row)
{
    const char *before = json_string_value(json_object_get(row, "before"));
    const char *after = json_string_value(json_object_get(row, "after"));
    bool planned = json_is_true(json_object_get(row, "planned"));

    if (!of_captures(row)) {
        ctl_put_member(table, row, "time");
        ctl_put_member(table, row, "generation");
    }
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
static struct ctl_table *open_table(FILE *out, const struct ctl *ctl, bool people, const json_t *first,
                                    json_t *into)
{
    const struct ctl_column *columns = !people ? for_programs : ctl->longer ? for_people_long : for_people;
    size_t n = !people       ? CTL_COUNT(for_programs)
               : ctl->longer ? CTL_COUNT(for_people_long)
                             : CTL_COUNT(for_people);

    if (people && of_captures(first)) { /* without the first two */
        columns += 2;
        n -= 2;
    }
    return ctl_table_open(out, ctl->format, CTL_JSON_ARRAY, into, columns, n);
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

enum ctl_exit ctl_changes_table(const struct ctl *ctl, const json_t *changes, json_t *into)
{
    return changes_rows(stdout, ctl, changes, into);
}

enum ctl_exit ctl_changes_write(FILE *out, const struct ctl *ctl, const json_t *changes)
{
    return changes_rows(out, ctl, changes, NULL);
}

json_t *ctl_changes_json(const struct ctl *ctl, const json_t *changes)
{
    json_t *rows = json_array();

    if (ctl_changes_table(ctl, changes, rows) == CTL_DONE)
        return rows;
    json_decref(rows);
    return NULL;
}
