/* verbs.c - the probe `verbs`: this host's RDMA devices and their ports, as libibverbs tells them. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "probes/core/record.h"
#include "probes/verbs/verbs_priv.h"

#define CLASS_DIR "/sys/class/infiniband"

/* The devices of this host; n > 0. Free with ibv_free_device_list(). */
static int verbs_list_devices(struct ibv_device ***list, int *n, struct fab_err *err)
{
    *n = 0;
    errno = 0;
    *list = ibv_get_device_list(n);
    if (*list != NULL && *n > 0)
        return PMIXFAB_OK;
    int why = *list == NULL ? errno : 0;
    if (*list != NULL)
        ibv_free_device_list(*list);
    if (why != 0 && why != ENOSYS && why != ENOENT && why != ENODEV)
        return fab_fail(err, why == ENOMEM ? PMIXFAB_ERR_NOMEM : PMIXFAB_ERR_IO,
                        "verbs: the RDMA devices cannot be listed: %s", strerror(why));
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "verbs: this host has no RDMA device that can be used: %s",
                    access(CLASS_DIR, F_OK) != 0 ? CLASS_DIR
                        " is absent (no device, or its driver is not loaded)"
                    : why == ENOSYS ? "the module ib_uverbs is not loaded"
                                    : "libibverbs lists none");
}

static int verbs_scan(const struct probe_config *config, const struct probe_sink *sink,
                      struct fab_report *report, struct fab_err *err)
{
    struct ibv_device **list;
    struct fab_err why = {{0}};
    int n, failed = 0;
    if (config->arg != NULL)
        return record_scan(config->arg, FAB_FROM_VERBS, report, err);
    int rc = verbs_list_devices(&list, &n, err);
    if (rc != PMIXFAB_OK)
        return rc;
    for (int i = 0; i < n && rc == PMIXFAB_OK; i++) {
        rc = verbs_device_report(list[i], sink, report, &why);
        if (rc == PMIXFAB_ERR_IO) {
            probe_note(sink, PMIXFAB_LOG_WARNING, "%s; it is left out", why.text);
            failed++;
            rc = PMIXFAB_OK;
        }
    }
    ibv_free_device_list(list);
    if (rc != PMIXFAB_OK)
        return fab_fail(err, rc, "verbs: %s", pmixfab_strerror(rc));
    if (failed == n) /* then what was known before holds */
        return fab_fail(err, PMIXFAB_ERR_IO, "%s", why.text);
    return PMIXFAB_OK;
}

static int verbs_available(char *text, size_t size)
{
    struct ibv_device **list;
    struct fab_err err = {{0}};
    int n;
    int rc = verbs_list_devices(&list, &n, &err);
    if (rc != PMIXFAB_OK) {
        snprintf(text, size, "%s", err.text);
        return rc;
    }
    snprintf(text, size, "%d RDMA device%s, the first is %s", n, n == 1 ? "" : "s",
             ibv_get_device_name(list[0]));
    ibv_free_device_list(list);
    return PMIXFAB_OK;
}

__attribute__((visibility("default"))) const struct probe fabricd_probe = {
    .name = "verbs",
    .scan = verbs_scan,
    .available = verbs_available,
};
