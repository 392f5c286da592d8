/* source_file.h - common parts of the probes that read the fabric from a file. */
#ifndef FAB_PROBES_CORE_SOURCE_FILE_H
#define FAB_PROBES_CORE_SOURCE_FILE_H

#include "probes/core/probe.h"

#define SOURCE_FILE_MAX (1u << 30) /* bytes; larger files are rejected */

/* Read a file's bytes into inv (initialised, empty) and finish it. Errors begin file:line:column. */
typedef int source_file_reader(const char *file, const char *text, size_t len, const struct probe_sink *sink,
                               struct fab_inventory *inv, struct fab_err *err);

/* Read all bytes of a file. PMIXFAB_ERR_NOTFOUND, _IO, _RANGE (too large), _NOMEM. Free *data with free(). */
int source_file_load(const char *path, char **data, size_t *len, struct fab_err *err);

/* The callbacks of a probe whose argument is only the file's path. */
int source_file_check(const struct probe_config *config, struct fab_err *err);
int source_file_run(const struct probe_config *config, source_file_reader *read,
                    const struct probe_sink *sink, struct fab_inventory *inv, struct fab_err *err);
int source_file_monitor(const struct probe_config *config, const struct fab_inventory *inv,
                        struct probe_monitor **out, struct fab_err *err);

/* As above, for a path: if it is another file, or was written since, everything is dirty. */
int source_file_watch(const char *path, struct probe_monitor **out, struct fab_err *err);
int source_file_poll(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err);
void source_file_unwatch(struct probe_monitor *monitor);

/* PMIXFAB_ERR_UNSUPPORTED: a file is only read as a whole. */
int source_file_switches(const struct probe_config *config, const struct probe_sink *sink,
                         const struct fab_inventory *last, const struct dirty_switches *dirty,
                         struct fab_inventory *inv, struct fab_err *err);
int source_file_available(char *text, size_t size);

/* The entries of a probe's table, without monitor_open(). */
#define SOURCE_FILE_CALLBACKS                                                                                \
    .file = true, .monitor_poll = source_file_poll, .monitor_close = source_file_unwatch,                    \
    .sweep_switches = source_file_switches, .available = source_file_available

/* Define a probe whose argument is only the file's path: probe_NAME. */
#define SOURCE_FILE_PROBE(NAME, TITLE, SUMMARY, READ)                                                        \
    static int NAME##_run(const struct probe_config *config, const struct probe_sink *sink,                  \
                          struct fab_inventory *inv, struct fab_err *err)                                    \
    {                                                                                                        \
        return source_file_run(config, READ, sink, inv, err);                                                \
    }                                                                                                        \
    const struct probe probe_##NAME = {.name = (TITLE),                                                      \
                                       .summary = (SUMMARY),                                                 \
                                       .check = source_file_check,                                           \
                                       .run = NAME##_run,                                                    \
                                       .monitor_open = source_file_monitor,                                  \
                                       SOURCE_FILE_CALLBACKS}

#endif
