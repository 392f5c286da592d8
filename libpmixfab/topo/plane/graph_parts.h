/* graph_parts.h - between graph.c, which finds the connected parts, and graph_fill.c, which makes planes of
 * them. */
#ifndef FAB_TOPO_PLANE_GRAPH_PARTS_H
#define FAB_TOPO_PLANE_GRAPH_PARTS_H

#include "topo/plane/graph.h"

struct fab_part_size {
    uint32_t devices, switches, cables;
    uint32_t ends; /* of cables between switches: the most entries that adj can get */
};

int fab_plane_allocate(struct fab_plane *plane, const struct fab_part_size *size);
void fab_plane_release(struct fab_plane *plane);

/*
 * Fill allocated planes. plane_of: per vertex the plane or FAB_NONE; a switch's vertex is its node, any other
 * port's n_nodes + port.
 */
int fab_planes_fill(struct fab_planes *planes, const uint32_t *plane_of);

#endif
