/*
 * backup.c - the daemon's store into a file.
 */
#include "changes.h"
#include "list.h"

/* From one line of progress to the next: a slow disk may take its time. */
#define BACKUP_SECONDS 600

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
