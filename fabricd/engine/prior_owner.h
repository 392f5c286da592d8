/* prior_owner.h - whose a GUID or a MAC is in what is served, for a join that finds several who claim it. */
#ifndef FABRICD_ENGINE_PRIOR_OWNER_H
#define FABRICD_ENGINE_PRIOR_OWNER_H

#include "fabricd/serving/served.h"
#include "topo/join/join.h"

/* Devices by what facts alone tell, a MAC or a system image GUID with a node GUID, collected when it is first
 * asked for: a report may claim thousands. */
struct prior_owner_table {
    struct prior_owner_entry {
        uint64_t value, node; /* node: 0 of a MAC */
        const char *host;
        uint32_t place; /* of those alike the first counts */
    } * entries;
    uint32_t n;
    bool collected;
};

struct prior_owner {
    struct served_set *served;
    struct prior_owner_table macs, ids;
};

/* Holds what is served until prior_owner_close(). One thread. */
void prior_owner_open(struct prior_owner *prior, struct served *served);
void prior_owner_close(struct prior_owner *prior);

/* As struct fab_prior_owners wants it; cbdata: the prior. NULL also without memory. */
const char *prior_owner_of(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node);

#endif
