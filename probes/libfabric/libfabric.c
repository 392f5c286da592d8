/*
 * libfabric.c - the probe `libfabric`: which providers of libfabric can use which device of this host.
 *
 * Everything is asked at once and without hints: hints leave out what does not meet them. Most of its time
 * goes by before, while the libraries of the providers are loaded.
 */
#include "probes/libfabric/libfabric.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/core/record.h"

/* Old enough for every library that tells of network cards. */
#define API_VERSION FI_VERSION(1, 9)

static int get_list(struct fi_info **list, struct fab_err *err)
{
    setenv("FI_LOG_LEVEL", "none", 0);
    int rc = fi_getinfo(API_VERSION, NULL, NULL, 0, NULL, list);
    if (rc == -FI_ENODATA || (rc == 0 && *list == NULL))
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "libfabric: no provider can use anything on this host");
    if (rc == -FI_ENOMEM)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "libfabric: out of memory");
    return rc == 0 ? PMIXFAB_OK : fab_fail(err, PMIXFAB_ERR_IO, "libfabric: %s", fi_strerror(-rc));
}

static int libfabric_scan(const struct probe_config *config, const struct probe_sink *sink,
                          struct fab_report *report, struct fab_err *err)
{
    struct fi_info *list = NULL;
    (void)sink;
    if (config->arg != NULL)
        return record_scan(config->arg, FAB_FROM_LIBFABRIC, report, err);
    int rc = get_list(&list, err);
    if (rc != PMIXFAB_OK)
        return rc;
    rc = libfabric_report(list, fact_interface, report);
    fi_freeinfo(list);
    return rc == PMIXFAB_OK ? rc : fab_fail(err, rc, "libfabric: %s", pmixfab_strerror(rc));
}

static int libfabric_available(char *text, size_t size)
{
    struct fi_info *list = NULL;
    struct fab_err err = {{0}};
    const char *hardware = NULL;
    int rc = get_list(&list, &err);
    if (rc != PMIXFAB_OK) {
        snprintf(text, size, "%s", err.text);
        return rc;
    }
    for (const struct fi_info *info = list; info != NULL && hardware == NULL; info = info->next) {
        const char *name = info->fabric_attr != NULL ? info->fabric_attr->prov_name : NULL;
        if (name != NULL && !libfabric_is_software(name))
            hardware = name;
    }
    uint32_t version = fi_version();
    snprintf(text, size, "libfabric %u.%u, %s%s", FI_MAJOR(version), FI_MINOR(version),
             hardware == NULL ? "providers of software alone" : "hardware by its provider ",
             hardware == NULL ? "" : hardware);
    fi_freeinfo(list);
    return PMIXFAB_OK;
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "libfabric",
    .scan = libfabric_scan,
    .available = libfabric_available,
};
