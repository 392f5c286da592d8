/* registry.c - the probes that a simulated daemon knows: its site, those that read files, and those of a
 * host, which read recorded machines. */
#include <string.h>

#include "probes/capture/capture_file.h"
#include "probes/core/record.h"
#include "probes/import/import.h"
#include "probes/registry.h"
#include "test/sim/played.h"

static int record_of(const struct probe_config *config, enum fab_source source, struct fab_report *report,
                     struct fab_err *err)
{
    if (config->arg == NULL)
        return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED,
                        "a simulated host has no devices: name a recorded machine");
    return record_scan(config->arg, source, report, err);
}

static int check_nothing(const struct probe_config *config, struct fab_err *err)
{
    (void)config, (void)err;
    return PMIXFAB_OK;
}

#define HOST_PROBE(NAME, SOURCE)                                                                             \
    static int scan_##NAME(const struct probe_config *config, const struct probe_sink *sink,                 \
                           struct fab_report *report, struct fab_err *err)                                   \
    {                                                                                                        \
        (void)sink;                                                                                          \
        return record_of(config, (SOURCE), report, err);                                                     \
    }                                                                                                        \
    static const struct probe probe_##NAME = {                                                               \
        .name = #NAME, .summary = "a recorded machine", .check = check_nothing, .scan = scan_##NAME}
HOST_PROBE(hwloc, FAB_FROM_HWLOC);
HOST_PROBE(verbs, FAB_FROM_VERBS);
HOST_PROBE(libfabric, FAB_FROM_LIBFABRIC);
HOST_PROBE(ucx, FAB_FROM_UCX);
HOST_PROBE(ethernet, FAB_FROM_ETHERNET);
HOST_PROBE(lldp, FAB_FROM_LLDP);

static const struct probe end = {0};
const struct probe *const probe_registry[] = {
    &probe_site,  &probe_file,  &probe_opensm_lst, &probe_nodes, &probe_slurm,    &probe_topograph,
    &probe_hwloc, &probe_verbs, &probe_libfabric,  &probe_ucx,   &probe_ethernet, &probe_lldp,
    &end};

bool probe_is_local(const struct probe *probe)
{
    return probe->module || probe->scan != NULL;
}

const struct probe *probe_find(const char *spec, const char **arg)
{
    const size_t len = spec == NULL ? 0 : strcspn(spec, ":");
    if (arg != NULL)
        *arg = NULL;
    for (size_t i = 0; spec != NULL && probe_registry[i]->name != NULL; i++) {
        if (strlen(probe_registry[i]->name) != len || memcmp(probe_registry[i]->name, spec, len) != 0)
            continue;
        if (arg != NULL && spec[len] == ':')
            *arg = spec + len + 1;
        return probe_registry[i];
    }
    return NULL;
}
