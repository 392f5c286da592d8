/* file.c - the probe `file`: a recorded fabric instead of a live one. */
#include "probes/capture/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "probes/core/record.h"

static const char option[] = ",prefix=";

/* Cut "PATH,prefix=0x..." apart. *prefix is 0 where none is given. Free *path. */
static int file_split_argument(const char *arg, char **path, uint64_t *prefix, struct fab_err *err)
{
    *path = NULL;
    *prefix = 0;
    if (arg == NULL || *arg == '\0')
        return fab_fail(err, PMIXFAB_ERR_INVAL, "the probe `file` needs a path: file:PATH[,prefix=0x...]");
    const char *at = NULL;
    for (const char *next = strstr(arg, option); next != NULL; next = strstr(next + 1, option))
        at = next; /* the last one: the path may hold such a text */
    if (at != NULL) {
        const char *digits = at + sizeof(option) - 1;
        char *end;
        errno = 0;
        unsigned long long v = strtoull(digits, &end, 16);
        if (*digits < '0' || *digits > 'f' || end == digits || *end != '\0' || errno != 0 || v == 0)
            return fab_fail(
                err, PMIXFAB_ERR_SYNTAX,
                "file:%s: \"%s\" is no subnet prefix; give 16 hexadecimal digits, as 0xfe80000000000000", arg,
                digits);
        *prefix = v;
    }
    *path = at != NULL ? strndup(arg, (size_t)(at - arg)) : strdup(arg);
    if (*path == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    if (**path == '\0')
        return fab_fail(err, PMIXFAB_ERR_INVAL, "the probe `file` needs a path before `,prefix=`");
    return PMIXFAB_OK;
}

static int file_load(const char *path, char **data, size_t *len, struct fab_err *err)
{
    FILE *file = fopen(path, "rbe");
    int why = file == NULL ? errno : record_read(file, FILE_LIMIT, data, len);
    if (file == NULL)
        return fab_fail(err, why == ENOENT ? PMIXFAB_ERR_NOTFOUND : PMIXFAB_ERR_IO,
                        "%s: cannot be opened: %s; give the path of a recorded fabric", path, strerror(why));
    if (why == ENOMEM)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "%s: out of memory", path);
    if (why == EFBIG)
        return fab_fail(err, PMIXFAB_ERR_RANGE, "%s: larger than %u bytes, which no recorded fabric is", path,
                        FILE_LIMIT);
    return why == 0 ? PMIXFAB_OK
                    : fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be read: %s", path, strerror(why));
}

static int file_check(const struct probe_config *config, struct fab_err *err)
{
    char *path;
    uint64_t prefix;
    int rc = file_split_argument(config->arg, &path, &prefix, err);
    free(path);
    return rc;
}

static int file_sweep(const struct probe_config *config, const struct probe_sink *sink,
                      struct fab_inventory *inv, struct fab_err *err)
{
    char *path, *data = NULL;
    uint64_t prefix;
    size_t len = 0;
    int rc = file_split_argument(config->arg, &path, &prefix, err);
    if (rc == PMIXFAB_OK)
        rc = file_load(path, &data, &len, err);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    rc = cache_is(data, len) ? cache_parse(path, data, len, sink, inv, err)
                             : capture_parse(path, data, len, sink, inv, err);
    if (rc != PMIXFAB_OK)
        goto cleanup;
    if (prefix != 0)
        inv->subnets[0].prefix = prefix;
    if (inv->n_dangling > 0)
        probe_note(sink, PMIXFAB_LOG_DEBUG,
                   "%s: ports that are up and lead nowhere: %u; the record is partial", path,
                   inv->n_dangling);

cleanup:
    free(data);
    free(path);
    return rc;
}

/* ---- the light sweep: is it another file, or has it been written? -------------------------------- */

#define FRESH_SECONDS 2 /* a file that was written so shortly before may have been so after it was read */

struct probe_monitor {
    char *path;
    struct stat seen; /* all zero: there was none that can be watched */
    bool fresh;
};

/* A pipe, or a file of /proc, tells of its readers or of the clock, not of what is to be read: as if there
 * were none, or each sweep would bring the next one. */
static void file_stat(const char *path, struct stat *st)
{
    if (path == NULL || stat(path, st) != 0 || !S_ISREG(st->st_mode) || st->st_size == 0)
        memset(st, 0, sizeof(*st));
}

static int monitor_open(const struct probe_config *config, const struct fab_inventory *inv,
                        struct probe_monitor **out, struct fab_err *err)
{
    uint64_t prefix;
    struct timespec now;
    (void)inv;
    struct probe_monitor *monitor = calloc(1, sizeof(*monitor));
    if (monitor == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    int rc = file_split_argument(config->arg, &monitor->path, &prefix, err);
    if (rc != PMIXFAB_OK) {
        free(monitor->path);
        free(monitor);
        return rc;
    }
    file_stat(monitor->path, &monitor->seen);
    clock_gettime(CLOCK_REALTIME, &now);
    monitor->fresh = monitor->seen.st_ctim.tv_sec + FRESH_SECONDS > now.tv_sec;
    *out = monitor;
    return PMIXFAB_OK;
}

static int monitor_poll(struct probe_monitor *monitor, struct dirty_switches *dirty, struct fab_err *err)
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

static void monitor_close(struct probe_monitor *monitor)
{
    if (monitor == NULL)
        return;
    free(monitor->path);
    free(monitor);
}

/* A file is read as a whole. */
static int file_sweep_partial(const struct probe_config *config, const struct probe_sink *sink,
                              const struct fab_inventory *last, const struct dirty_switches *dirty,
                              struct fab_inventory *inv, struct fab_err *err)
{
    (void)config, (void)sink, (void)last, (void)dirty, (void)inv;
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "a file is read as a whole");
}

static int file_available(char *text, size_t size)
{
    snprintf(text, size, "reads a recorded fabric; works everywhere");
    return PMIXFAB_OK;
}

const struct probe probe_file = {
    .name = "file",
    .summary = "PATH[,prefix=0x...]: what `ibnetdiscover` printed, or its --cache file",
    .check = file_check,
    .run = file_sweep,
    .monitor_open = monitor_open,
    .monitor_poll = monitor_poll,
    .monitor_close = monitor_close,
    .sweep_partial = file_sweep_partial,
    .available = file_available,
};
