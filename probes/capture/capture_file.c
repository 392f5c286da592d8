/* capture_file.c - the probes `file` and `opensm-lst`: a recorded fabric instead of a live one. */
#include "probes/capture/capture_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/source_file.h"

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
        rc = source_file_load(path, &data, &len, err);
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

static int file_monitor_open(const struct probe_config *config, const struct fab_inventory *inv,
                             struct probe_monitor **out, struct fab_err *err)
{
    char *path;
    uint64_t prefix;
    (void)inv;
    int rc = file_split_argument(config->arg, &path, &prefix, err) ?: source_file_watch(path, out, err);
    free(path);
    return rc;
}

const struct probe probe_file = {
    .name = "file",
    .summary = "PATH[,prefix=0x...]: a recorded subnet, as of ibnetdiscover",
    .check = file_check,
    .run = file_sweep,
    .monitor_open = file_monitor_open,
    SOURCE_FILE_CALLBACKS,
};

static int opensm_lst_run(const struct probe_config *config, const struct probe_sink *sink,
                          struct fab_inventory *inv, struct fab_err *err)
{
    return source_file_run(config, subnet_parse, sink, inv, err);
}

const struct probe probe_opensm_lst = {
    .name = "opensm-lst",
    .summary = "PATH: what OpenSM writes as opensm-subnet.lst",
    .check = source_file_check,
    .run = opensm_lst_run,
    .monitor_open = source_file_monitor,
    SOURCE_FILE_CALLBACKS,
};
