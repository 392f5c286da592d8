/*
 * show_place.h - lists of hosts that are asked for, and how an answer is told.
 */
#ifndef FABRICCTL_SHOW_SHOW_PLACE_H
#define FABRICCTL_SHOW_SHOW_PLACE_H

#include "fabricctl/core/ctl.h"

/* The hosts of a job, in the order of its ranks, and what else is told of them. */
struct ctl_placed {
    const struct pmixfab *fab;
    uint32_t *hosts;
    uint32_t n;
    const char *objective; /* NULL: nobody chose the hosts, they were given */
    struct pmixfab_placement placement;
};

/* What is wanted: the list alone, the ranks as CSV, one JSON object, or for people what the job would feel.
 */
enum ctl_exit ctl_placed_show(const struct ctl *ctl, const struct ctl_placed *placed);

#endif
