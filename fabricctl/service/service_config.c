/*
 * service_config.c - the daemon's configuration: what is in force, reading it again, and how much goes into
 * its log.
 */
#include <stdlib.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_text.h"
#include "fabricctl/core/table.h"
#include "fabricctl/service/service.h"

static const struct ctl_column setting_columns[] = {
    {"section", "SECTION", false},
    {"name", "NAME", false},
    {"value", "VALUE", false},
    {"from", "FROM", false},
};

static enum ctl_exit show_settings(const struct ctl *ctl, const json_t *answer)
{
    return ctl_rows_table(ctl, setting_columns, CTL_COUNT(setting_columns),
                          json_object_get(answer, "settings"), NULL);
}

enum ctl_exit ctl_config(const struct ctl *ctl)
{
    return ctl_ask_show(ctl, json_pack("{s:s}", "op", "config"), CTL_ANSWER_SECONDS, show_settings);
}

/* ---- log ---- */

static enum ctl_exit show_level(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column told[] = {{"level", "LEVEL", false}};
    struct ctl_table *table;

    if (ctl->format == CTL_TEXT) {
        printf("the log has the level %s until the daemon reads its configuration again\n", ctl->args[0]);
        return CTL_DONE;
    }
    table = ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, told, CTL_COUNT(told));
    ctl_put_members(table, answer);
    return ctl_table_close(table);
}

enum ctl_exit ctl_log(const struct ctl *ctl)
{
    json_t *request = json_pack("{s:s, s:s}", "op", "log", "level", ctl->args[0]);

    if (request == NULL)
        return ctl_usage("not UTF-8: log: give error, warning, info or debug");
    return ctl_ask_show(ctl, request, CTL_ANSWER_SECONDS, show_level);
}

/* ---- reload ---- */

static void print_settings(const char *what, const json_t *names)
{
    size_t i;
    json_t *name;

    json_array_foreach(names, i, name)
    {
        char *text = ctl_clean_copy(json_string_length(name) > 0 ? json_string_value(name) : "?");

        printf("%s%s", i == 0 ? what : ", ", text != NULL ? text : "?");
        free(text);
    }
    if (json_array_size(names) > 0)
        putchar('\n');
}

static enum ctl_exit table_of_reloaded(const struct ctl *ctl, const json_t *changed, const json_t *restart)
{
    static const struct ctl_column columns[] = {{"setting", "SETTING", false}, {"what", "WHAT", false}};
    struct ctl_table *table =
        ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, columns, CTL_COUNT(columns));

    for (size_t i = 0; i < json_array_size(changed) + json_array_size(restart); i++) {
        bool now = i < json_array_size(changed);
        const json_t *name =
            now ? json_array_get(changed, i) : json_array_get(restart, i - json_array_size(changed));

        ctl_put_text(table, json_string_value(name));
        ctl_put_text(table, now ? "changed" : "restart");
        ctl_table_row(table);
    }
    return ctl_table_close(table);
}

static enum ctl_exit show_reloaded(const struct ctl *ctl, const json_t *answer)
{
    json_t *changed = json_object_get(answer, "changed"), *restart = json_object_get(answer, "restart");

    if (ctl->format == CTL_JSON)
        return ctl_json_print(stdout, json_pack("{s:O, s:O}", "changed", changed, "restart", restart));
    if (ctl->format == CTL_CSV)
        return table_of_reloaded(ctl, changed, restart);
    if (json_array_size(changed) == 0)
        puts("nothing has changed");
    print_settings("changed: ", changed);
    print_settings("restart for: ", restart);
    return CTL_DONE;
}

enum ctl_exit ctl_reload(const struct ctl *ctl)
{
    return ctl_ask_show(ctl, json_pack("{s:s}", "op", "reload"), CTL_ANSWER_SECONDS, show_reloaded);
}
