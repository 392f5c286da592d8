#include "probes/registry.h"

#include <string.h>

#include "probes/capture/capture_file.h"
#include "probes/import/import.h"
#ifdef HAVE_IBNETDISC
#include "probes/ibnetdisc/ibnetdisc.h"
#endif

static const struct probe end = {0};

/* The argument of a local probe is the file of a recorded machine. */
static int check_record(const struct probe_config *config, struct fab_err *err)
{
    if (config->arg != NULL && config->arg[0] == '\0')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX, "the file of a recorded machine is missing after the colon");
    return PMIXFAB_OK;
}

#define MODULE(NAME, SUMMARY)                                                                                \
    static const struct probe module_##NAME = {                                                              \
        .name = #NAME, .summary = (SUMMARY), .module = true, .check = check_record}
MODULE(hwloc,
       "this host: PCI addresses, names, NUMA nodes of network and RDMA devices, by hwloc; or FILE.xml");
MODULE(verbs, "this host: RDMA devices and their ports, by libibverbs; or FILE, a recorded machine");
MODULE(libfabric,
       "this host: devices and the libfabric providers that can use them; or FILE, a recorded machine");
MODULE(ucx, "this host: UCX's transports and their estimates; or FILE, a recorded machine");
MODULE(ethernet, "this host: network interfaces and their addresses; or FILE, a recorded machine");
MODULE(lldp,
       "this host: the switches that its interfaces are cabled to, by lldpd; or FILE, a recorded machine");

const struct probe *const probe_registry[] = {
#ifdef HAVE_IBNETDISC
    &probe_ibnetdisc,
#endif
    &probe_file,      &probe_opensm_lst, &probe_nodes, &probe_slurm,     &probe_topograph, &module_hwloc,
    &module_verbs,    &module_libfabric, &module_ucx,  &module_ethernet, &module_lldp,     &end,
};

bool probe_is_local(const struct probe *probe)
{
    return probe->module || probe->scan != NULL;
}

const struct probe *probe_find(const char *spec, const char **arg)
{
    if (arg != NULL)
        *arg = NULL;
    if (spec == NULL)
        return NULL;
    size_t len = strcspn(spec, ":");
    const size_t n_probes = sizeof(probe_registry) / sizeof(probe_registry[0]) - 1;
    for (size_t i = 0; i < n_probes; i++) {
        const struct probe *probe = probe_registry[i];
        if (strlen(probe->name) != len || memcmp(probe->name, spec, len) != 0)
            continue;
        if (arg != NULL && spec[len] == ':')
            *arg = spec + len + 1;
        return probe;
    }
    return NULL;
}
