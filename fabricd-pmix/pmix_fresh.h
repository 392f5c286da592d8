/* pmix_fresh.h - find out whether the run directory is up to date. */
#ifndef FABRICD_PMIX_PMIX_FRESH_H
#define FABRICD_PMIX_PMIX_FRESH_H

#include <event2/event.h>
#include <stdbool.h>

#include "topo/base/error.h"

/*
 * Watch the run directory. It is stale if the file `stale` exists, if no process listens on the control
 * socket, or if the listener has not reacted for FRESH_SILENCE_S. changed is called on the loop when this
 * changes, and once at the start. runs: fabricd runs, although it does not listen yet.
 */
#define FRESH_SILENCE_S 30
struct pmix_fresh;
int pmix_fresh_start(struct event_base *base, const char *rundir, bool runs,
                     void (*changed)(bool stale, void *cbdata), void *cbdata, struct pmix_fresh **out,
                     struct fab_err *err);

/* Note that the run directory has changed. */
void pmix_fresh_look(struct pmix_fresh *fresh);

#endif
