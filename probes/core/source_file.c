/*
 * source_file.c - read a file that describes the fabric as a whole, and watch it between sweeps. Also find
 * dirty switches.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "probes/core/probe.h"
#include "probes/core/record.h"
#include "probes/core/source_file.h"
#include "topo/base/array.h"

/* ---- a file that describes the fabric: read as a whole, and watched between sweeps ---- */

int source_file_load(const char *path, char **data, size_t *len, struct fab_err *err)
{
    FILE *file = fopen(path, "rbe");
    int why = file == NULL ? errno : record_read(file, SOURCE_FILE_MAX, data, len);
    if (file == NULL)
        return fab_fail(err, why == ENOENT ? PMIXFAB_ERR_NOTFOUND : PMIXFAB_ERR_IO,
                        "%s: cannot be opened: %s; give the path of a recorded fabric", path, strerror(why));
    if (why == ENOMEM)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", path);
    if (why == EFBIG)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%s: larger than %u bytes, the limit for a recorded fabric",
                        path, SOURCE_FILE_MAX);
    return why == 0 ? PMIXFAB_OK
                    : fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be read: %s", path, strerror(why));
}

int source_file_check(const struct probe_config *config, struct fab_err *err)
{
    if (config->arg == NULL || config->arg[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_INVAL, "this probe needs a colon and the path of a file");
    return PMIXFAB_OK;
}

int source_file_run(const struct probe_config *config, source_file_reader *read,
                    const struct probe_sink *sink, struct fab_inventory *inv, struct fab_err *err)
{
    char *data = NULL;
    size_t len = 0;
    int rc = source_file_check(config, err)
             ?: source_file_load(config->arg, &data, &len, err)
             ?: read(config->arg, data, len, sink, inv, err);
    free(data);
    return rc;
}

/* ---- the light sweep: check for another or changed file -------------------------------- */

#define FRESH_SECONDS 2 /* a file written so recently may have been written again after it was read */

struct probe_monitor {
    char *path;
    struct stat seen; /* all zero: there was no file that can be watched */
    bool fresh;
};

/*
 * The times of a pipe, or of a file of /proc, depend on its readers or on the clock. Treat such a file as
 * missing, or each sweep would cause the next sweep.
 */
static void file_stat(const char *path, struct stat *st)
{
    if (stat(path, st) != 0 || !S_ISREG(st->st_mode) || st->st_size == 0)
        memset(st, 0, sizeof(*st));
}

int source_file_watch(const char *path, struct probe_monitor **out, struct fab_err *err)
{
    struct timespec now;
    struct probe_monitor *monitor = calloc(1, sizeof(*monitor));
    if (monitor == NULL || (monitor->path = strdup(path)) == NULL) {
        free(monitor);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    file_stat(monitor->path, &monitor->seen);
    clock_gettime(CLOCK_REALTIME, &now);
    monitor->fresh = monitor->seen.st_ctim.tv_sec + FRESH_SECONDS > now.tv_sec;
    *out = monitor;
    return PMIXFAB_OK;
}

int source_file_monitor(const struct probe_config *config, const struct fab_inventory *inv,
                        struct probe_monitor **out, struct fab_err *err)
{
    (void)inv;
    return source_file_check(config, err) ?: source_file_watch(config->arg, out, err);
}

int source_file_poll(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err)
{
    struct stat now;
    const struct stat *seen = &monitor->seen;
    (void)err;
    file_stat(monitor->path, &now);
    if (monitor->fresh || now.st_ino != seen->st_ino || now.st_dev != seen->st_dev ||
        now.st_size != seen->st_size || now.st_mtim.tv_sec != seen->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != seen->st_mtim.tv_nsec)
        dirty->all = true;
    monitor->fresh = false;
    monitor->seen = now;
    dirty->requests++;
    return PMIXFAB_OK;
}

void source_file_unwatch(struct probe_monitor *monitor)
{
    if (monitor == NULL)
        return;
    free(monitor->path);
    free(monitor);
}

int source_file_switches(const struct probe_config *config, const struct probe_sink *sink,
                         const struct fab_inventory *last, const struct dirty_switches *dirty,
                         struct fab_inventory *inv, struct fab_err *err)
{
    (void)config, (void)sink, (void)last, (void)dirty, (void)inv;
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "a file is only read as a whole");
}

int source_file_available(char *text, size_t size)
{
    snprintf(text, size, "reads a file that describes the fabric; works everywhere");
    return PMIXFAB_OK;
}

/* ---- the list of switches that a light sweep finds changed ---- */

int dirty_switches_add(struct dirty_switches *dirty, uint64_t guid, struct fab_err *err)
{
    for (uint32_t i = 0; i < dirty->n; i++)
        if (dirty->guids[i] == guid)
            return PMIXFAB_OK;
    if (!FAB_ARRAY_ROOM(&dirty->guids, &dirty->cap, (uint64_t)dirty->n + 1))
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory for %u changes", dirty->n + 1);
    dirty->guids[dirty->n++] = guid;
    return PMIXFAB_OK;
}

void dirty_switches_free(struct dirty_switches *dirty)
{
    free(dirty->guids);
    *dirty = (struct dirty_switches){0};
}
