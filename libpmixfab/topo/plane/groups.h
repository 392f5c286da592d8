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
 * Compute the groups, numbered from 0. They are ordered by their first host, then by their second, and so on.
 * A host on two edge switches is in two groups. Each connected pair of devices without a switch, and each
 * single one, is a group. In an unattached plane, each host is a group.
 *
 * A group has one of these names, which is valid as long as the plane's inventory:
 * - the name of its leaf
 * - "pod2", or "group2" in a dragonfly, with the first number of the coordinates
 * - "unit3" for the unit labelled 2
 * - the name of the first host, if the devices have no switch.
 */
int fab_groups_compute(const struct fab_plane *plane, const struct fab_geometry *geometry,
                       enum fab_group_by by, struct fab_groups *out);
void fab_groups_destroy(struct fab_groups *groups);

#endif
