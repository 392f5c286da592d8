/* control_config.c - the configuration: its values, its reload, and the level of the log. */
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/control/connection.h"
#include "topo/base/text.h"

/* ---- the values in force ---- */

static json_t *config_origin(const struct config *config, struct config_place at)
{
    if (at.line > 0)
        return json_sprintf("%s:%d", config->file, at.line);
    return json_string(at.line == CONFIG_COMMAND_LINE ? "command line"
                       : at.line == CONFIG_RUN_TIME   ? "fabricctl log"
                                                      : "default");
}

struct config_rows {
    const struct config *config;
    json_t *rows;
};

static void config_row(const struct config_value *value, void *cbdata)
{
    char clean[4096];
    const struct config_rows *to = cbdata;
    if (value->value != NULL)
        fab_text_clean(clean, sizeof(clean), value->value, strlen(value->value), NULL); /* JSON is UTF-8 */
    json_array_append_new(to->rows, json_pack("{s:s, s:s, s:s?, s:o}", "section", value->section, "name",
                                              value->name, "value", value->value == NULL ? NULL : clean,
                                              "from", config_origin(to->config, value->at)));
}

void control_op_config(struct connection *connection, json_t *request)
{
    const struct config *config = connection->control->config;
    (void)request;
    if (!connection_allowed(connection, "config"))
        return;
    const struct config_rows to = {config, json_array()};
    if (config_tell(config, config_row, (void *)&to) != PMIXFAB_OK) {
        json_decref(to.rows);
        connection_fail(connection, PMIXFAB_ERR_NOMEM, "config: out of memory");
        return;
    }
    connection_send(connection,
                    json_pack("{s:b, s:s?, s:o}", "ok", 1, "file", config->file, "settings", to.rows));
}

/* ---- the log ---- */

void control_op_log(struct connection *connection, json_t *request)
{
    struct config *config = connection->control->config;
    const char *level = json_string_value(json_object_get(request, "level"));
    const struct config_place at = {CONFIG_RUN_TIME, 0};
    const struct config_line line = {"fabricd", "log", level, at, at};
    struct config_mistakes mistakes = {0};
    if (!connection_allowed(connection, "log"))
        return;
    if (level == NULL) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: level is not a string");
    } else if (config_put(config, &line, &mistakes) != PMIXFAB_OK) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "%s",
                        mistakes.n > 0 ? mistakes.items[0].text : "out of memory");
    } else {
        log_set_level(config->log);
        log_info("log level %s, requested by uid %u", level, (unsigned)connection->uid);
        connection_send(connection, json_pack("{s:b, s:s}", "ok", 1, "level", level));
    }
    config_mistakes_destroy(&mistakes);
}

/* ---- reload ---- */

void control_on_reload(struct control *control, void (*fn)(void *owner, const struct config_reload *reload))
{
    control->on_reload = fn;
}

#define NOT_TAKEN "the configuration is rejected: %u mistake%s; the old settings stay in force"

static int read_again(struct control *control, struct config_reload *out)
{
    char names[CONFIG_NAMES_SIZE];
    int rc = config_reload(control->config, out);
    const unsigned n = config_mistakes_count(&out->mistakes);
    if (rc != PMIXFAB_OK) {
        config_mistakes_log(&out->mistakes);
        log_error(NOT_TAKEN, n, n == 1 ? "" : "s");
        return rc;
    }
    log_set_level(control->config->log);
    callers_look(control->callers, true);
    control->on_reload(control->owner, out);
    config_names_text(out->changed, out->n_changed, names);
    log_info("the configuration was reloaded: %s%s", out->n_changed > 0 ? "changed: " : "nothing has changed",
             names);
    config_names_text(out->restart, out->n_restart, names);
    if (out->n_restart > 0)
        log_warning("settings have changed that need a restart of fabricd: %s", names);
    return PMIXFAB_OK;
}

/* Ends with config_reload_destroy(). */
static int control_reload(struct control *control, struct config_reload *out)
{
    notify_send("RELOADING=1");
    int rc = read_again(control, out);
    notify_send("READY=1");
    return rc;
}

void control_hangup(struct control *control)
{
    struct config_reload reload;
    log_info("SIGHUP: reloading the configuration");
    control_reload(control, &reload);
    config_reload_destroy(&reload);
}

static json_t *names_of_settings(const struct setting *const *settings, unsigned n)
{
    json_t *names = json_array();
    for (unsigned i = 0; i < n; i++) {
        char name[CONFIG_NAME_SIZE];
        config_name_text(settings[i], name);
        json_array_append_new(names, json_string(name));
    }
    return names;
}

static void append_line(const char *line, void *cbdata)
{
    json_array_append_new(cbdata, json_string(line));
}

void control_op_reload(struct connection *connection, json_t *request)
{
    struct config_reload reload;
    (void)request;
    if (!connection_allowed(connection, "reload"))
        return;
    log_info("reload requested by uid %u", (unsigned)connection->uid);
    int rc = control_reload(connection->control, &reload);
    if (rc == PMIXFAB_OK) {
        connection_send(connection, json_pack("{s:b, s:o, s:o}", "ok", 1, "changed",
                                              names_of_settings(reload.changed, reload.n_changed), "restart",
                                              names_of_settings(reload.restart, reload.n_restart)));
    } else {
        const unsigned n = config_mistakes_count(&reload.mistakes);
        json_t *lines = json_array();
        config_mistakes_tell(&reload.mistakes, append_line, lines);
        connection_send(connection,
                        json_pack("{s:b, s:i, s:o, s:o}", "ok", 0, "error", rc, "message",
                                  json_sprintf(NOT_TAKEN, n, n == 1 ? "" : "s"), "mistakes", lines));
    }
    config_reload_destroy(&reload);
}

void control_on_mend(struct control *control, uint32_t (*fn)(void *owner))
{
    control->on_mend = fn;
}

/* For all readers of a damaged snapshot. Its cost does not depend on their number. */
void control_op_mend(struct connection *connection, json_t *request)
{
    struct control *control = connection->control;
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    const bool again = control->mended != 0 && now - control->mended < control->mend_pause;
    (void)request;
    const uint32_t mended = again || control->on_mend == NULL ? 0 : control->on_mend(control->owner);
    if (!again) {
        control->mended = clock_now(CLOCK_MONOTONIC);
        control->mend_pause =
            CONTROL_MEND_S * INT64_C(1000000) + CONTROL_MEND_SHARE * (control->mended - now);
    }
    connection_send(connection, json_pack("{s:b, s:I}", "ok", 1, "mended", (json_int_t)mended));
}
