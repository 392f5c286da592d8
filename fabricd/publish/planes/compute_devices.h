/* compute_devices.h - which devices jobs use, in the site's words ([fabric] compute). */
#ifndef FABRICD_PUBLISH_PLANES_COMPUTE_DEVICES_H
#define FABRICD_PUBLISH_PLANES_COMPUTE_DEVICES_H

#include "topo/graph/graph.h"
#include "topo/inventory/details.h"

/* Mark the devices of the plane that the patterns (NULL: none are marked) have by their name, with or without
 * a port, by their network interface, or by their leaf. Returns how many. */
uint32_t compute_devices_mark(struct fab_plane *plane, const struct fab_details *details,
                              const char *patterns);

#endif
