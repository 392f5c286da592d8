/* plane_ref.h - reference to a plane: its index and name, for events and messages. */
#ifndef FABRICD_SERVING_PLANE_REF_H
#define FABRICD_SERVING_PLANE_REF_H

#include <stdint.h>

/* A plane in an event. */
struct event_plane {
    uint32_t index;
    char name[64];
    char reason[160]; /* change of the plane as a whole: its kind, its shape; empty: none */
};

#endif
