/* plane_ref.h - which plane: its index and name, for those who tell of it. */
#ifndef FABRICD_SERVING_PLANE_REF_H
#define FABRICD_SERVING_PLANE_REF_H

#include <stdint.h>

/* One plane of a change. */
struct event_plane {
    uint32_t index;
    char name[64];
    char reason[160]; /* what changed about the plane as a whole: its kind, its shape; empty: nothing */
};

#endif
