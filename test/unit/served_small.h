/* served_small.h - two small planes as fabricd serves them, for tests of answers. */
#ifndef FAB_TEST_SERVED_SMALL_H
#define FAB_TEST_SERVED_SMALL_H

#include <stdlib.h>
#include <string.h>

#include "fabricd/serving/served.h"
#include "test/fabrics/snapshot.h"

/* One plane's snapshot; NULL when it cannot be built. */
static inline struct served_plane *small_plane(const char *spec, const char *name, uint32_t index,
                                               bool is_default)
{
    const struct fab_snapshot_meta meta = {.generation = 7,
                                           .published = 1700000000123456,
                                           .index = index,
                                           .is_default = is_default,
                                           .name = name,
                                           .vendor = "Mellanox",
                                           .identifier = "fe80000000000000"};
    struct served_plane *out = NULL;
    void *bytes = NULL;
    size_t size = 0;
    if (fabric_snapshot(spec, &meta, &bytes, &size) == 0)
        served_plane_new(bytes, size, "/nowhere", &out, NULL);
    return out;
}

/* Serve "ib1", index 1, the default one (2 leaves, 1 spine, 2 hosts a leaf), and "ib2", index 2 (a torus of 3
 * by 3, a host each). No plane has the index 0. */
static inline bool small_serve(struct served *served)
{
    struct served_plane *planes[] = {small_plane("fattree2:2,1,2", "ib1", 1, true),
                                     small_plane("torus:3,3:1", "ib2", 2, false)};
    if (planes[0] == NULL || planes[1] == NULL)
        return false;
    struct served_set *set = served_set_new(planes, 2, 7, 1700000000123456);
    if (set == NULL)
        return false;
    served_swap(served, set);
    return true;
}

#endif
