/* ops_backup.c - `backup` and `check` of the store on the control socket: answered when they are done. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabricd/base/log.h"
#include "fabricd/engine/publish.h"
#include "fabricd/jobs/backup.h"
#include "fabricd/operations/ops.h"
#include "fabricd/store/store.h"

struct waiting {
    struct pending pending; /* the first member */
    struct backup *backup;
    struct publisher *publisher;
    uint64_t generation; /* that it has, or a later one */
    char file[PATH_MAX];
};

static void backup_send_progress(const char *line, void *arg)
{
    struct waiting *waiting = arg;
    connection_progress(waiting->pending.connection, line);
}

static void on_done(int code, const char *message, uint64_t bytes, void *arg)
{
    struct waiting *waiting = arg;
    if (code == PMIXFAB_OK)
        store_mark_backup(publisher_store(waiting->publisher), waiting->generation, waiting->file);
    if (code == PMIXFAB_OK)
        connection_send(waiting->pending.connection,
                        json_pack("{s:b, s:I}", "ok", 1, "bytes", (json_int_t)bytes));
    else
        connection_fail(waiting->pending.connection, code, "%s", message);
    connection_answered(&waiting->pending);
    free(waiting);
}

static void backup_on_caller_gone(struct pending *pending)
{
    struct waiting *waiting = (struct waiting *)pending;
    backup_give_up(waiting->backup);
    free(waiting);
}

/* Takes waiting; false: the caller was told why not. */
static bool waiting_begin(struct waiting *waiting, struct connection *connection,
                          const struct backup_order *order)
{
    const struct ops_parts *parts = connection->control->owner;
    struct fab_err err = {""};
    waiting->backup = parts->backup;
    waiting->pending.gone = backup_on_caller_gone;
    int rc = backup_start(waiting->backup, order, &err);
    if (rc != PMIXFAB_OK) {
        free(waiting);
        connection_fail(connection, rc, "%s", err.text);
        return false;
    }
    connection_later(connection, &waiting->pending);
    return true;
}

void control_op_backup(struct connection *connection, json_t *request)
{
    const struct ops_parts *parts = connection->control->owner;
    const char *file = json_string_value(json_object_get(request, "file"));
    if (!connection_allowed(connection, "backup"))
        return;
    struct waiting *waiting = calloc(1, sizeof(*waiting));
    if (file == NULL || waiting == NULL) {
        free(waiting);
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: backup needs a file, as a string");
        return;
    }
    waiting->publisher = parts->publisher;
    waiting->generation = publisher_generation(parts->publisher);
    snprintf(waiting->file, sizeof(waiting->file), "%.*s", (int)sizeof(waiting->file) - 1, file);
    const struct backup_order order = {.file = file,
                                       .force = json_is_true(json_object_get(request, "force")),
                                       .progress = backup_send_progress,
                                       .done = on_done,
                                       .cbdata = waiting};
    if (waiting_begin(waiting, connection, &order))
        log_info("backup to %s asked for by uid %u", file, (unsigned)connection->uid);
}

/* ---- is the history as it was published? ---- */

static void verify_on_done(int code, const char *message, uint64_t generations, void *arg)
{
    struct waiting *waiting = arg;
    if (code == PMIXFAB_OK)
        connection_send(waiting->pending.connection,
                        json_pack("{s:b, s:I, s:I}", "ok", 1, "compared", (json_int_t)generations, "without",
                                  (json_int_t)backup_verified(waiting->backup)->without));
    else
        connection_fail(waiting->pending.connection, code, "%s", message);
    connection_answered(&waiting->pending);
    free(waiting);
}

void control_check_store(struct connection *connection)
{
    const struct ops_parts *parts = connection->control->owner;
    if (!connection_allowed(connection, "check of the store"))
        return;
    struct waiting *waiting = calloc(1, sizeof(*waiting));
    if (waiting == NULL) {
        connection_fail(connection, PMIXFAB_ERR_NOMEM, "check: out of memory");
        return;
    }
    const struct backup_order order = {.file = parts->config->store,
                                       .verify = true,
                                       .newest = publisher_generation(parts->publisher),
                                       .progress = backup_send_progress,
                                       .done = verify_on_done,
                                       .cbdata = waiting};
    waiting_begin(waiting, connection, &order);
}
