/* registry.c - the one table that a new probe is added to. */
#include <string.h>

#include "probes/probes.h"

static const struct probe end = {0};

const struct probe *const probe_registry[] = {
#ifdef HAVE_IBNETDISC
    &probe_ibnetdisc,
#endif
    &probe_file,
    &end,
};

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
