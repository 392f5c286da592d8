/* rail_planes.h - planes that are one rail each of the hosts that they share. */
#ifndef FABRICD_ENGINE_RAIL_PLANES_H
#define FABRICD_ENGINE_RAIL_PLANES_H

#include <stdbool.h>

#include "topo/plane/geometry.h"

/* is_rail, per plane. 0 or PMIXFAB_ERR_NOMEM. */
int rail_planes_find(const struct fab_planes *planes, bool *is_rail);

/* Such a plane is the rail of its number, where it has no rails inside. */
void rail_planes_mark(const struct fab_plane *plane, uint32_t number, struct fab_geometry *geometry);

#endif
