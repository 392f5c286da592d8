/*
 * build.h - from an inventory to the snapshots of its planes: a pure function, with the planes' numbers.
 */
#ifndef FABRICD_BUILD_H
#define FABRICD_BUILD_H

#include "fabricd/config.h"
#include "fabricd/store.h"
#include "topo/inventory.h"

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
 * Compute every plane of inv and give each its number: that of the known plane with which it shares the most
 * ports and switches, the active ones before the retired ones; a new number where it shares none.
 */
int build_planes(const struct fab_inventory *inv, const struct config *config,
                 const struct store_plane *known, uint32_t n_known, struct built *out, struct fab_err *err);
void built_destroy(struct built *built);

#endif
