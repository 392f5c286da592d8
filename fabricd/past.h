/* past.h - whose a GUID or a MAC is in what is served, for a join that finds several who claim it. */
#ifndef FABRICD_PAST_H
#define FABRICD_PAST_H

#include "fabricd/served.h"
#include "topo/join.h"
#include "topo/keys.h"

/* Devices by a number that facts alone tell, collected when it is first asked for: a report may claim
 * thousands. */
struct past_table {
    struct fab_key *keys;
    const char **hosts;
    uint32_t n;
    bool collected;
};

struct past {
    struct served_set *served;
    struct past_table macs, systems;
};

/* Holds what is served until past_close(). One thread. */
void past_open(struct past *past);
void past_close(struct past *past);

/* As struct fab_past wants it; cbdata: the past. NULL also without memory. */
const char *past_holder(void *cbdata, enum fab_fact kind, uint64_t value);

#endif
