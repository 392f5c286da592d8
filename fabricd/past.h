/* past.h - whose a GUID or a MAC is in what is served, for a join that finds several who claim it. */
#ifndef FABRICD_PAST_H
#define FABRICD_PAST_H

#include "fabricd/served.h"
#include "topo/join.h"

/* Devices by what facts alone tell, a MAC or a system image GUID with a node GUID, collected when it is first
 * asked for: a report may claim thousands. */
struct past_table {
    struct past_entry {
        uint64_t value, node; /* node: 0 of a MAC */
        const char *host;
        uint32_t place; /* of those alike the first counts */
    } * entries;
    uint32_t n;
    bool collected;
};

struct past {
    struct served_set *served;
    struct past_table macs, ids;
};

/* Holds what is served until past_close(). One thread. */
void past_open(struct past *past);
void past_close(struct past *past);

/* As struct fab_past wants it; cbdata: the past. NULL also without memory. */
const char *past_holder(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node);

#endif
