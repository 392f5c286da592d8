/* pmix_fresh.h - is what the run directory holds kept up to date? */
#ifndef FABRICD_PMIX_PMIX_FRESH_H
#define FABRICD_PMIX_PMIX_FRESH_H

#include <event2/event.h>
#include <stdbool.h>

#include "topo/base/error.h"

/*
 * It is stale where the file `stale` stands in it, where nobody listens on the control socket, and where
 * whoever listens has not reacted for FRESH_SILENCE_S. changed is called on the loop when that changes, and
 * with what it is at the start. runs: a fabricd does, although it does not listen yet.
 */
#define FRESH_SILENCE_S 30
struct pmix_fresh;
int pmix_fresh_start(struct event_base *base, const char *rundir, bool runs,
                     void (*changed)(bool stale, void *cbdata), void *cbdata, struct pmix_fresh **out,
                     struct fab_err *err);

/* Something has happened in the run directory. */
void pmix_fresh_look(struct pmix_fresh *fresh);

#endif
