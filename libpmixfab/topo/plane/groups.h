/* groups.h - groups of hosts (PMIX_FABRIC_GROUPS). */
#ifndef FAB_TOPO_PLANE_GROUPS_H
#define FAB_TOPO_PLANE_GROUPS_H

#include "topo/plane/geometry.h"

enum fab_group_by {
    FAB_GROUP_LEAF = 0, /* hosts that share an edge switch */
    FAB_GROUP_POD = 1,  /* hosts in one pod or dragonfly group; one group of all if the kind has neither */
    FAB_GROUP_UNIT = 2, /* hosts in one unit (units.h); elsewhere as by leaf */
    FAB_GROUP_AUTO = 3  /* as by unit; in dragonflies, meshes and tori as by leaf */
};

struct fab_groups {
    uint32_t n, n_members;
    uint32_t *start;   /* n+1: group g is members[start[g] .. start[g+1]-1] */
    uint32_t *members; /* host indices, ascending within a group */
    const char **names;
    uint32_t *leaf; /* per group: the switch whose name it has; FAB_NONE: another name */
    char *made;     /* names that are not those of a leaf or host */
};

/*
 * Compute the groups, ordered by their first host, then second, ...; numbered from 0. A host on two edge
 * switches is in two groups. Devices without a switch: one group for each connected pair or single device; in
 * an unattached plane one for each host.
 *
 * Names are those of the leaves, "pod2" and "group2" (of a dragonfly) with the first number of the
 * coordinates, "unit3" for the unit labelled 2; for devices without a switch the name of their first host.
 * They live as long as the plane's inventory.
 */
int fab_groups_compute(const struct fab_plane *plane, const struct fab_geometry *geometry,
                       enum fab_group_by by, struct fab_groups *out);
void fab_groups_destroy(struct fab_groups *groups);

#endif
