#include "fabricd/engine/ethernet_planes.h"

#include <string.h>

void ethernet_planes(const struct config *config, struct ethernet_planes *out)
{
    out->n = 0;
    for (unsigned i = 0; i < config->ethernet.n; i++) {
        const char *item = config->ethernet.items[i], *equals = strchr(item, '=');
        if (equals == NULL || (size_t)(equals - item) >= sizeof(out->names[0]))
            continue; /* config_set() lets none of these in */
        memcpy(out->names[out->n], item, (size_t)(equals - item));
        out->names[out->n][equals - item] = '\0';
        out->planes[out->n] = (struct fab_ethernet_plane){.name = out->names[out->n], .cidr = equals + 1};
        out->n++;
    }
}

const struct fab_ethernet_plane *ethernet_find(const struct ethernet_planes *planes, uint64_t prefix)
{
    for (uint32_t i = 0; i < planes->n; i++)
        if (fab_ethernet_prefix(planes->planes[i].name) == prefix)
            return &planes->planes[i];
    return NULL;
}
