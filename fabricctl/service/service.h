/* service.h - interface of the commands about the daemon and the hosts that report to it. */
#ifndef FABRICCTL_SERVICE_SERVICE_H
#define FABRICCTL_SERVICE_SERVICE_H

#include "fabricctl/core/ctl.h"

enum ctl_exit ctl_status(const struct ctl *ctl);
enum ctl_exit ctl_top(const struct ctl *ctl);
enum ctl_exit ctl_nodes(const struct ctl *ctl);
enum ctl_exit ctl_endpoints(const struct ctl *ctl);
enum ctl_exit ctl_forget(const struct ctl *ctl);
enum ctl_exit ctl_metrics(const struct ctl *ctl);
enum ctl_exit ctl_config(const struct ctl *ctl);
enum ctl_exit ctl_reload(const struct ctl *ctl);
enum ctl_exit ctl_log(const struct ctl *ctl);
enum ctl_exit ctl_schema(const struct ctl *ctl);
enum ctl_exit ctl_backup(const struct ctl *ctl);
enum ctl_exit ctl_restore(const struct ctl *ctl);

/* The JSON Schema of all commands (fabricctl/schema.json), without a final null byte. */
extern const unsigned char ctl_schema_text[];
extern const size_t ctl_schema_text_size;

/* Call fn for each command that has a schema. */
void ctl_schema_each(void (*fn)(const char *command, void *arg), void *arg);

/*
 * Return an object like `fabricctl --format json status`, with no row in `planes`; a new reference, NULL
 * without memory. Wait at most `seconds` for the daemon; if it gave no answer, the cause is in `why`, else
 * "".
 */
json_t *ctl_status_facts(const struct ctl *ctl, const struct ctl_view *view, int seconds,
                         char why[static CTL_WHY_SIZE]);

#endif
