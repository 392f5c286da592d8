/* units_priv.h - between the files that find units and rails. */
#ifndef FAB_TOPO_PLANE_UNITS_PRIV_H
#define FAB_TOPO_PLANE_UNITS_PRIV_H

#include "topo/plane/layout.h"
#include "topo/plane/units.h"

#define UNITS_MOST_DEVICES 64 /* of a host */

struct units_work {
    const struct fab_plane *plane;
    struct fab_units *out;
    uint32_t *first;   /* per switch and one more: its devices are devices[first[s] .. first[s+1]-1] */
    uint32_t *devices; /* ascending, so those of one host are neighbours */
    uint32_t *n_hosts; /* per switch: those that count */
    uint32_t *set;     /* disjoint sets of switches */
    uint32_t *rank;    /* per switch of a unit: its place by name among the leaves of the unit */
    uint32_t *scratch; /* three numbers a switch */
};

/* Does a host say anything of who belongs together? One that goes by its GUID may be a part of any other, and
 * one with more ports than hosts have is several that are called the same ("localhost"). */
static inline bool units_host_counts(const struct fab_plane *plane, const struct fab_host *host)
{
    const struct fab_inventory *inv = plane->inv;
    uint32_t cables = 0; /* functions of a card have none of their own */
    for (uint32_t i = host->first; i < host->first + host->n && cables <= UNITS_MOST_DEVICES; i++)
        cables += inv->ports[plane->devices[i].port].peer != FAB_NONE;
    return cables <= UNITS_MOST_DEVICES &&
           !inv->nodes[inv->ports[plane->devices[host->first].port].node].unnamed;
}

/* The units are there: give their leaves rails, and find the strays. 0 or PMIXFAB_ERR_NOMEM. */
int units_find_rails(struct units_work *work);

#endif
