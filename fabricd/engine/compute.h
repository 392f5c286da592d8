/*
 * compute.h - from a joined inventory to the snapshots of its planes: a pure function of it and of what the
 * planes were last. From there are the planes' numbers, the coordinates of what did not change, and the costs
 * that cannot have changed.
 */
#ifndef FABRICD_ENGINE_COMPUTE_H
#define FABRICD_ENGINE_COMPUTE_H

#include "fabricd/config/config.h"
#include "fabricd/store/store_tables.h"
#include "topo/join/join.h"

/* The plane of what has no cable. */
#define UNATTACHED_PLANE "unattached"

/* One built snapshot, its generation and time still zero. */
struct built_plane {
    uint32_t index;
    bool is_new; /* has no predecessor among the known planes */
    char name[64];
    void *bytes;
    size_t size;
};

struct built {
    struct built_plane *planes;
    uint32_t n;
};

/*
 * Compute every plane and give each its number. Of InfiniBand planes that of the known one with which it
 * shares the most ports and switches, the active ones before the retired ones; a new number where it shares
 * none. Ethernet planes and that of unattached ports have their names from the configuration, and the number
 * of the known one of that name; so have topologies of a file, from there. The default plane is the
 * configured one, else the file's, else the known one that is it, else the one with most devices that is not
 * the unattached one.
 */
int compute_planes(const struct fab_joined *joined, const struct config *config,
                   const struct store_plane *known, uint32_t n_known, struct built *out, struct fab_err *err);
void built_destroy(struct built *built);

#endif
