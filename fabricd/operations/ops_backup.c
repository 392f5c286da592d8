/*
 * ops_backup.c - `backup`, `check` of the store and `restore`, answered when they are done. A backup to
 * restore is received and checked, then the role starts again.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/config/config.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/jobs/backup.h"
#include "fabricd/operations/ops.h"
#include "fabricd/store/store.h"

struct waiting {
    struct pending pending; /* the first member */
    struct backup *backup;
    struct publisher *publisher;
    uint64_t generation; /* the backup has this generation, or a later one */
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

/* Takes `waiting`. False: an error was sent. */
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
        log_info("backup to %s requested by uid %u", file, (unsigned)connection->uid);
}

/* ---- comparison of the history with its digests ---- */

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

/* ---- restore ---- */

struct restoring {
    struct pending pending; /* the first member */
    struct ops_parts *parts;
    struct receiving *receiving;
    char file[PATH_MAX];
};

static void restoring_free(struct restoring *r)
{
    connection_receive_end(r->receiving);
    free(r);
}

static void restore_refuse(struct restoring *r, int code, const char *message)
{
    connection_fail(r->pending.connection, code, "%s", message);
    connection_answered(&r->pending);
    restoring_free(r);
}

/* The caller is gone: the store stays unchanged. */
static void restore_on_caller_gone(struct pending *pending)
{
    struct restoring *r = (struct restoring *)pending;
    if (r->receiving == NULL)
        backup_give_up(r->parts->backup);
    restoring_free(r);
}

static void restore_send_progress(const char *line, void *arg)
{
    struct restoring *r = arg;
    connection_progress(r->pending.connection, line);
}

/* The role sends the answer, when the copy is in place (main/). */
static void restore_on_copied(int code, const char *message, uint64_t bytes, void *arg)
{
    struct restoring *r = arg;
    (void)bytes;
    int answer = fcntl(bufferevent_getfd(r->pending.connection->bev), F_DUPFD_CLOEXEC, 3);
    if (code != PMIXFAB_OK || answer < 0) {
        restore_refuse(r, code != PMIXFAB_OK ? code : PMIXFAB_ERR_IO,
                       code != PMIXFAB_OK ? message : "restore: no file descriptor is free: try again");
        if (answer >= 0)
            close(answer);
        return;
    }
    r->parts->restored = answer;
    log_warning("restore: %s replaces the store: restarting", r->file);
    event_base_loopbreak(r->parts->base);
}

static void restore_on_file(int fd, void *arg)
{
    struct restoring *r = arg;
    struct fab_err err = {""};
    const struct backup_order order = {.file = r->file,
                                       .restore = fd,
                                       .progress = restore_send_progress,
                                       .done = restore_on_copied,
                                       .cbdata = r};
    int rc = fd >= 0 ? store_restorable(r->parts->config->store, r->file, fd, &err)
                     : fab_fail(&err, PMIXFAB_ERR_SYNTAX, "control: restore needs a file's descriptor");
    const bool own = rc == PMIXFAB_ERR_CONFLICT; /* closing this descriptor would drop SQLite's locks */
    if (rc == PMIXFAB_OK)
        rc = backup_start(r->parts->backup, &order, &err);
    if (rc != PMIXFAB_OK) {
        if (fd >= 0 && !own)
            close(fd);
        restore_refuse(r, rc, err.text);
        return;
    }
    connection_receive_end(r->receiving);
    r->receiving = NULL;
}

void control_op_restore(struct connection *connection, json_t *request)
{
    struct ops_parts *parts = connection->control->owner;
    const char *file = json_string_value(json_object_get(request, "file"));
    struct scheduler_status status;
    if (!connection_allowed(connection, "restore"))
        return;
    scheduler_status(parts->scheduler, &status);
    struct fab_err err = {""};
    /* the role starts again with that configuration */
    if (config_can_start(parts->config, &err) != PMIXFAB_OK) {
        connection_fail(connection, PMIXFAB_ERR_INVAL, "restore: %s", err.text);
        return;
    }
    if (status.sweeping) {
        connection_fail(connection, PMIXFAB_ERR_BUSY, "restore: a sweep is running: try again after it");
        return;
    }
    struct restoring *r = file == NULL ? NULL : calloc(1, sizeof(*r));
    if (r != NULL && (r->receiving = connection_receive(connection, restore_on_file, r)) == NULL) {
        free(r);
        r = NULL;
    }
    if (r == NULL) {
        connection_fail(connection, PMIXFAB_ERR_SYNTAX, "control: restore needs a file, as a string");
        return;
    }
    r->parts = parts;
    r->pending.gone = restore_on_caller_gone;
    snprintf(r->file, sizeof(r->file), "%.*s", (int)sizeof(r->file) - 1, file);
    log_info("restore of %s requested by uid %u", r->file, (unsigned)connection->uid);
    connection_later(connection, &r->pending);
}
