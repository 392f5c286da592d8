/* walk.h - a long walk of a site (walk.c). */
#ifndef FAB_TEST_SIM_WALK_H
#define FAB_TEST_SIM_WALK_H

#include <stdint.h>

struct walk_counts {
    unsigned hands, restarts;
    uint64_t generations;
};

/* Walk for so many microseconds of virtual time. What goes wrong ends the process with the seed and the
 * journal. */
struct walk_counts walk(uint64_t seed, int64_t time);

#endif
