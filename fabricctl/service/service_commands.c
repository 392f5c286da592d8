/*
 * service_commands.c - commands about the daemon: hosts that report, endpoints, configuration, log, schema of
 * the output, metrics, backups.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"
#include "fabricctl/service/service.h"
#include "topo/base/nearest_words.h"

/* ---- the hosts that report their own devices, from the daemon ---- */

static const struct ctl_column node_columns[] = {
    {"host", "HOST", false}, {"devices", "DEVICES", true},  {"unseen", "UNSEEN", true},
    {"items", NULL, true},   {"sources", "SOURCES", false}, {"received", "RECEIVED", false},
    {"age", NULL, true},     {"uid", "UID", true},          {"digest", NULL, false},
    {"failed", NULL, false}, {"remarks", NULL, false},
};

/* Print failures and remarks of the join below the table, one a line. */
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
    status = ctl_rows_table(ctl, node_columns, CTL_COUNT(node_columns), nodes, NULL);
    if (status == CTL_DONE && ctl->format == CTL_TEXT)
        print_remarks(nodes);
    return status;
}

/* Send a request about the host of the command line, if there is one. */
static enum ctl_exit ask_of_host(const struct ctl *ctl, ctl_show_fn *show)
{
    return ctl_ask_show(
        ctl, json_pack("{s:s, s:s*}", "op", ctl->command, "host", ctl->n_args > 0 ? ctl->args[0] : NULL),
        CTL_ANSWER_SECONDS, show);
}

enum ctl_exit ctl_nodes(const struct ctl *ctl)
{
    return ask_of_host(ctl, nodes_show);
}

static enum ctl_exit show_forgotten(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column told[] = {{"host", "HOST", false}, {"forgotten", "FORGOTTEN", false}};
    struct ctl_table *table;
    const bool retired = ctl_number_of(answer, "retired") > 0;
    const bool lost = ctl_number_of(answer, "lost") > 0;
    if (ctl->format == CTL_TEXT) {
        printf("%s is forgotten%s\n", ctl->args[0],
               retired ? ": its place is not kept any more"
               : lost  ? ": fabricd does not wait for it any more"
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
    return ask_of_host(ctl, show_forgotten);
}

/* ---- endpoints of jobs ---- */

static const struct ctl_column endpoints_columns[] = {
    {"plane", "PLANE", false}, {"first", "FIRST", true}, {"last", "LAST", true},    {"job", "JOB", false},
    {"uid", "UID", true},      {"pid", "PID", true},     {"since", "SINCE", false},
};

static enum ctl_exit show_endpoints(const struct ctl *ctl, const json_t *answer)
{
    const json_t *list = json_object_get(answer, "endpoints");
    if (ctl->format == CTL_TEXT && json_array_size(list) == 0) {
        puts("no job has endpoints");
        return CTL_DONE;
    }
    return ctl_rows_table(ctl, endpoints_columns, CTL_COUNT(endpoints_columns), list, NULL);
}

static enum ctl_exit show_freed(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column columns[] = {{"job", "JOB", false}, {"pid", "PID", true}};
    json_t *list;
    enum ctl_exit status;
    (void)answer;
    if (ctl->format == CTL_TEXT) {
        printf("the endpoints of job %s of process %s are released\n", ctl->args[0], ctl->args[1]);
        return CTL_DONE;
    }
    list = json_pack("[{s:s, s:I}]", "job", ctl->args[0], "pid", (json_int_t)atol(ctl->args[1]));
    status = list == NULL ? ctl_nomem() : ctl_rows_table(ctl, columns, CTL_COUNT(columns), list, NULL);
    json_decref(list);
    return status;
}

enum ctl_exit ctl_endpoints(const struct ctl *ctl)
{
    char *end;
    long pid;
    if (!ctl->free && ctl->n_args > 0)
        return ctl_usage("too many arguments: %s: give --free, too, to release a job's endpoints",
                         ctl->args[0]);
    if (!ctl->free)
        return ctl_ask_op(ctl, "endpoints", show_endpoints);
    if (ctl->n_args != 2)
        return ctl_usage("no job and process: --free: give both as `fabricctl endpoints` shows them");
    errno = 0;
    pid = strtol(ctl->args[1], &end, 10);
    if (errno != 0 || *end != '\0' || pid < 1 || pid > INT_MAX)
        return ctl_usage("not the number of a process: %s: see `fabricctl endpoints`", ctl->args[1]);
    return ctl_ask_show(ctl,
                        json_pack("{s:s, s:b, s:s, s:I}", "op", "endpoints", "give_back", 1, "job",
                                  ctl->args[0], "pid", (json_int_t)pid),
                        CTL_ANSWER_SECONDS, show_freed);
}

/* ---- the daemon's configuration: the settings in force, reload, and the level of its log. */

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
    return ctl_ask_op(ctl, "config", show_settings);
}

/* ---- log ---- */

static enum ctl_exit show_level(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column columns[] = {{"level", "LEVEL", false}};
    if (ctl->format != CTL_TEXT)
        return ctl_row_print(ctl, columns, CTL_COUNT(columns), json_incref((json_t *)answer));
    printf("the log has the level %s until the daemon reads its configuration again\n", ctl->args[0]);
    return CTL_DONE;
}

enum ctl_exit ctl_log(const struct ctl *ctl)
{
    return ctl_ask_show(ctl, json_pack("{s:s, s:s}", "op", "log", "level", ctl->args[0]), CTL_ANSWER_SECONDS,
                        show_level);
}

/* ---- the JSON Schema of what commands print with --json ---- */

#define SCHEMAS_MOST 64

/* Return the names of commands in the schema, which are valid as long as it. Types that several commands use
 * begin with "_". */
static size_t schema_names(const json_t *schema, const char *names[static SCHEMAS_MOST])
{
    size_t n = 0;
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(schema, "$defs"), name, value)
    {
        if (name[0] != '_' && n < SCHEMAS_MOST)
            names[n++] = name;
    }
    return n;
}

static json_t *schema_load(void)
{
    return json_loadb((const char *)ctl_schema_text, ctl_schema_text_size, 0, NULL);
}

void ctl_schema_each(void (*fn)(const char *command, void *arg), void *arg)
{
    const char *names[SCHEMAS_MOST];
    json_t *schema = schema_load();
    const size_t n = schema_names(schema, names);
    for (size_t i = 0; i < n; i++)
        fn(names[i], arg);
    json_decref(schema);
}

/* Add a reference to the schema of this command. */
static enum ctl_exit schema_select(json_t *schema, const char *command)
{
    const char *names[SCHEMAS_MOST], *nearest;
    const size_t n = schema_names(schema, names);
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], command) == 0)
            return json_object_set_new(schema, "$ref", json_sprintf("#/$defs/%s", command)) == 0
                       ? CTL_DONE
                       : ctl_nomem();
    nearest = fab_nearest_word(command, names, n);
    return nearest != NULL ? ctl_usage("no schema: %s: did you mean %s?", command, nearest)
                           : ctl_usage("no schema: %s: this command has no JSON output", command);
}

enum ctl_exit ctl_schema(const struct ctl *ctl)
{
    json_t *schema = schema_load();
    const enum ctl_exit status = schema == NULL     ? ctl_nomem()
                                 : ctl->n_args == 0 ? CTL_DONE
                                                    : schema_select(schema, ctl->args[0]);
    if (status == CTL_DONE)
        return ctl_json_print(stdout, schema);
    json_decref(schema);
    return status;
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
    return ctl_ask_op(ctl, "reload", show_reloaded);
}

/* ---- the daemon's counters and gauges ---- */

/* Return the value without the backslashes of the text format. */
static json_t *label_value(const char *value, size_t len)
{
    char *plain = malloc(len + 1);
    json_t *text;
    size_t n = 0;
    if (plain == NULL)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        const bool escaped = value[i] == '\\' && i + 1 < len;
        i += escaped;
        plain[n++] = escaped && value[i] == 'n' ? '\n' : value[i];
    }
    text = json_stringn(plain, n);
    free(plain);
    return text;
}

/* Return the labels of a sample, `a="b",c="d"}`; *text moves past them. */
static json_t *labels_json(const char **text)
{
    json_t *labels = json_object();
    char key[64];
    size_t len;
    while (**text != '}' && **text != '\n' && **text != '\0') {
        const char *name = *text, *value = strstr(name, "=\"");
        if (value == NULL)
            break;
        value += 2;
        for (len = 0; value[len] != '"' && value[len] != '\0'; len++)
            len += value[len] == '\\' && value[len + 1] != '\0';
        snprintf(key, sizeof(key), "%.*s", (int)(value - 2 - name), name);
        json_object_set_new(labels, key, label_value(value, len));
        *text = value + len + (value[len] == '"');
        *text += **text == ',';
    }
    *text += **text == '}';
    return labels;
}

/* Return each sample as an object; lines that begin with # are comments. */
static json_t *metrics_json(const char *text)
{
    json_t *list = json_array();
    for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n') {
        const size_t len = strcspn(text, "{ \n");
        const char *name = text;
        json_t *labels;
        if (*text == '#' || len == 0)
            continue;
        text += len + (text[len] == '{');
        labels = name[len] == '{' ? labels_json(&text) : json_object();
        json_array_append_new(list, json_pack("{s:s#, s:o, s:f}", "name", name, (int)len, "labels", labels,
                                              "value", strtod(text, NULL)));
    }
    return list;
}

static enum ctl_exit show_metrics(const struct ctl *ctl, const json_t *answer)
{
    const char *text = ctl_text_of(answer, "text");
    if (ctl->format == CTL_JSON)
        return ctl_json_print(stdout, metrics_json(text != NULL ? text : ""));
    fputs(text != NULL ? text : "", stdout);
    return CTL_DONE;
}

enum ctl_exit ctl_metrics(const struct ctl *ctl)
{
    enum ctl_exit status = ctl_control_only(ctl, "metrics");
    if (status != CTL_DONE)
        return status;
    if (ctl->format == CTL_CSV)
        return ctl_usage("no such format of metrics: csv: there are text (Prometheus') and json");
    return ctl_ask_op(ctl, "metrics", show_metrics);
}

/* ---- backup of the daemon's store to a file, and restore ---- */

/* From one line of progress to the next, also on a slow disk. */
#define BACKUP_SECONDS 600
/* Until a restarted daemon answers again: it loads its store and stops its former children. */
#define AGAIN_SECONDS 120

static enum ctl_exit show_backup(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column columns[] = {{"file", "FILE", false}, {"bytes", "BYTES", true}};
    return ctl_row_print(
        ctl, columns, CTL_COUNT(columns),
        json_pack("{s:s, s:I}", "file", ctl->args[0], "bytes", ctl_number_of(answer, "bytes")));
}

enum ctl_exit ctl_backup(const struct ctl *ctl)
{
    enum ctl_exit status = ctl_control_only(ctl, "backup");
    if (status != CTL_DONE)
        return status;
    if (ctl->args[0][0] != '/')
        return ctl_usage("not an absolute path: %s: the daemon writes the file", ctl->args[0]);
    return ctl_ask_show(
        ctl, json_pack("{s:s, s:s, s:b}", "op", "backup", "file", ctl->args[0], "force", ctl->force),
        BACKUP_SECONDS, show_backup);
}

/* ---- restore ---- */

/* Wait for the restarted daemon. It has a new socket, so any answer comes from the restored store. */
static enum ctl_exit wait_for_daemon(const struct ctl *ctl, json_int_t *generation)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    enum ctl_exit status = CTL_FAILED;
    char why[CTL_WHY_SIZE];
    for (int i = 0; i < AGAIN_SECONDS * 10 && status != CTL_DONE; i++) {
        json_t *answer;
        if (i > 0)
            nanosleep(&pause, NULL);
        status = ctl_control_ask(ctl->rundir, json_pack("{s:s}", "op", "status"), CTL_ANSWER_SECONDS, &answer,
                                 why);
        *generation = ctl_number_of(answer, "generation");
        json_decref(answer);
    }
    if (status == CTL_DONE)
        return status;
    return ctl_error("the store is restored, but fabricd has not come back in %d s: %s", AGAIN_SECONDS, why);
}

static enum ctl_exit show_restored(const struct ctl *ctl, const char *file, const json_t *answer)
{
    static const struct ctl_column columns[] = {
        {"file", "FILE", false}, {"kept", "KEPT", false}, {"generation", "GENERATION", true}};
    json_int_t generation;
    enum ctl_exit status = wait_for_daemon(ctl, &generation);
    if (status != CTL_DONE)
        return status;
    return ctl_row_print(ctl, columns, CTL_COUNT(columns),
                         json_pack("{s:s, s:O?, s:I}", "file", file, "kept", json_object_get(answer, "kept"),
                                   "generation", generation));
}

/*
 * Reject a store with a log beside it: the daemon restores one file, and the contents of the log would be
 * lost.
 */
static enum ctl_exit check_log_beside(const char *file)
{
    char log[4096 + 8];
    struct stat st;
    snprintf(log, sizeof log, "%s-wal", file);
    if (stat(log, &st) != 0 || st.st_size == 0)
        return CTL_DONE;
    return ctl_error(
        "cannot restore: %s: it is a store in use, and %s is not merged into it: restore a backup of it",
        file, log);
}

static enum ctl_exit restore_from(const struct ctl *ctl, const char *file, int fd)
{
    struct ctl_control *control;
    json_t *answer, *request;
    char why[CTL_WHY_SIZE];
    enum ctl_exit status = ctl_control_open(ctl->rundir, &control, why);
    if (status != CTL_DONE)
        return ctl_error("%s; if fabricd is stopped, run as root: fabricd --restore %s", why, file);
    request = json_pack("{s:s, s:s}", "op", "restore", "file", file);
    if (request == NULL) {
        ctl_control_close(control);
        return ctl_usage("not UTF-8: restore: give the file another name");
    }
    status = ctl_control_give(control, request, fd, BACKUP_SECONDS, &answer, why);
    ctl_control_close(control);
    status = status == CTL_DONE ? show_restored(ctl, file, answer) : ctl_error("%s", why);
    json_decref(answer);
    return status;
}

enum ctl_exit ctl_restore(const struct ctl *ctl)
{
    enum ctl_exit status = ctl_control_only(ctl, "restore");
    char *file;
    int fd;
    if (status != CTL_DONE)
        return status;
    file = realpath(ctl->args[0], NULL);
    fd = file == NULL ? -1 : open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        status = ctl_error("cannot read: %s: %s", ctl->args[0], strerror(errno));
    else
        status = check_log_beside(file);
    if (status == CTL_DONE)
        status = restore_from(ctl, file, fd);
    if (fd >= 0)
        close(fd);
    free(file);
    return status;
}
