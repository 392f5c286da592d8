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
    for (size_t i = 0; probe_registry[i]->name != NULL; i++) {
        const char *name = probe_registry[i]->name;
        if (strlen(name) != len || memcmp(name, spec, len) != 0)
            continue;
        if (arg != NULL && spec[len] == ':')
            *arg = spec + len + 1;
        return probe_registry[i];
    }
    return NULL;
}
