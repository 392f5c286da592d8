/* registry.c - the probes that a simulated daemon knows: its site, and those that read files. */
#include <string.h>

#include "probes/capture/file.h"
#include "probes/import/import.h"
#include "probes/registry.h"
#include "test/sim/played.h"

static const struct probe end = {0};
const struct probe *const probe_registry[] = {
    &probe_site, &probe_file, &probe_opensm_lst, &probe_nodes, &probe_slurm, &probe_topograph, &end};

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
