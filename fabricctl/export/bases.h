/*
 * bases.h - at which of its leaves a host stands in a tree. A base is what may become a leaf: an edge switch,
 * or the leaves of a unit.
 */
#ifndef FABRICCTL_EXPORT_BASES_H
#define FABRICCTL_EXPORT_BASES_H

#include "fabricctl/export/output.h"

/* The hosts that have a device of those that --interface, else [fabric] compute, chooses: into x->chosen, by
 * name (strcmp). Tells its failures. */
enum ctl_exit ctl_bases_choose(struct ctl_export *x);

/* Is this host one of them? */
bool ctl_host_is_chosen(const struct ctl_export *x, const char *host);

struct ctl_bases {
    const struct ctl_export *x;
    const struct pmixfab *fab;
    const struct pmixfab_plane *plane;
    const uint32_t *base; /* of each switch */
    uint32_t n;
};

/* How it is known where a host is. */
enum ctl_at {
    CTL_AT_NONE,      /* none of its devices is at a switch */
    CTL_AT_ELSEWHERE, /* all that are chosen are in other planes */
    CTL_AT_ONE,       /* all of its devices, or all that are chosen, are there */
    CTL_AT_SEVERAL    /* others are elsewhere */
};

/*
 * host_base[h] of each host of the plane, and how. Of the devices that are chosen, else of all: the base
 * where most are, of equals the first. Bases that tell nobody apart come last: most of their hosts have a
 * device at one that has fewer hosts (so it is with a leaf for storage). False without memory.
 */
bool ctl_bases_of_hosts(const struct ctl_bases *bases, uint32_t *host_base, enum ctl_at *how);

#endif
