/* plane_numbers.h - which plane of today is which plane of yesterday. */
#ifndef FABRICD_ENGINE_PLANE_NUMBERS_H
#define FABRICD_ENGINE_PLANE_NUMBERS_H

#include "fabricd/engine/compute.h"
#include "topo/plane/graph.h"

/*
 * Set index, name and is_new of out[0..planes->n-1]. Where a name is given already it stays, and names the
 * known plane that it is; else (an empty one) the members vote. fabs: of each known plane its last snapshot,
 * NULL where it cannot be read.
 */
int number_planes(const struct fab_planes *planes, const struct store_plane *known,
                  struct pmixfab *const *fabs, uint32_t n_known, struct built_plane *out,
                  struct fab_err *err);

#endif
