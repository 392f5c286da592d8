/* ethernet_planes.h - the configured planes of network interfaces, as joining wants them. */
#ifndef FABRICD_ENGINE_ETHERNET_PLANES_H
#define FABRICD_ENGINE_ETHERNET_PLANES_H

#include "fabricd/config/config.h"
#include "topo/join/join.h"

struct ethernet_planes {
    struct fab_ethernet_plane planes[CONFIG_MAX_LIST]; /* point into names and into the configuration */
    char names[CONFIG_MAX_LIST][64];
    uint32_t n;
};

void ethernet_planes(const struct config *config, struct ethernet_planes *out);

/* The one whose subnet has this prefix; NULL. */
const struct fab_ethernet_plane *ethernet_find(const struct ethernet_planes *planes, uint64_t prefix);

#endif
