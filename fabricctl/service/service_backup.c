/*
 * service_backup.c - the daemon's store into a file, and a file in its place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fabricctl/core/ask.h"
#include "fabricctl/core/ctl_control.h"
#include "fabricctl/core/table.h"
#include "fabricctl/service/service.h"

/* From one line of progress to the next: a slow disk may take its time. */
#define BACKUP_SECONDS 600
/* Until a daemon that begins anew answers again: it loads its store, and stops what it had started. */
#define AGAIN_SECONDS 120

static enum ctl_exit show_backup(const struct ctl *ctl, const json_t *answer)
{
    static const struct ctl_column told[] = {{"file", "FILE", false}, {"bytes", "BYTES", true}};
    struct ctl_table *table =
        ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, told, CTL_COUNT(told));

    ctl_put_text(table, ctl->args[0]);
    ctl_put_number(table, json_integer_value(json_object_get(answer, "bytes")));
    ctl_table_row(table);
    return ctl_table_close(table);
}

enum ctl_exit ctl_backup(const struct ctl *ctl)
{
    enum ctl_exit status = ctl_control_only(ctl, "backup");
    json_t *request;

    if (status != CTL_DONE)
        return status;
    if (ctl->args[0][0] != '/')
        return ctl_usage("not a whole path: %s: it is the daemon that writes the file", ctl->args[0]);
    request = json_pack("{s:s, s:s, s:b}", "op", "backup", "file", ctl->args[0], "force", ctl->force);
    if (request == NULL)
        return ctl_usage("not UTF-8: backup: give the file another name");
    return ctl_ask_show(ctl, request, BACKUP_SECONDS, show_backup);
}

/* ---- restore ---- */

/* The daemon that begins anew has a new socket: whoever answers there has the restored store. */
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
        *generation = json_integer_value(json_object_get(answer, "generation"));
        json_decref(answer);
    }
    if (status == CTL_DONE)
        return status;
    return ctl_error("the store is restored, but fabricd has not come back in %d s: %s", AGAIN_SECONDS, why);
}

static enum ctl_exit show_restored(const struct ctl *ctl, const char *file, const json_t *answer)
{
    static const struct ctl_column told[] = {
        {"file", "FILE", false}, {"kept", "KEPT", false}, {"generation", "GENERATION", true}};
    json_int_t generation;
    enum ctl_exit status = wait_for_daemon(ctl, &generation);
    struct ctl_table *table;

    if (status != CTL_DONE)
        return status;
    table = ctl_table_open(stdout, ctl->format, CTL_JSON_LINES, NULL, told, CTL_COUNT(told));
    ctl_put_text(table, file);
    ctl_put_member(table, answer, "kept");
    ctl_put_number(table, generation);
    ctl_table_row(table);
    return ctl_table_close(table);
}

/* The daemon takes one file: what lies in a log beside it would be lost. */
static enum ctl_exit check_log_beside(const char *file)
{
    char log[4096 + 8];
    struct stat st;

    snprintf(log, sizeof log, "%s-wal", file);
    if (stat(log, &st) != 0 || st.st_size == 0)
        return CTL_DONE;
    return ctl_error(
        "cannot be restored: %s: it is a store in use, %s is not folded in: restore a backup of it", file,
        log);
}

static enum ctl_exit restore_from(const struct ctl *ctl, const char *file, int fd)
{
    struct ctl_control *control;
    json_t *answer, *request;
    char why[CTL_WHY_SIZE];
    enum ctl_exit status = ctl_control_open(ctl->rundir, &control, why);

    if (status != CTL_DONE)
        return ctl_error("%s; while none runs, as root: fabricd --restore %s", why, file);
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
        status = ctl_error("cannot be read: %s: %s", ctl->args[0], strerror(errno));
    else
        status = check_log_beside(file);
    if (status == CTL_DONE)
        status = restore_from(ctl, file, fd);
    if (fd >= 0)
        close(fd);
    free(file);
    return status;
}
