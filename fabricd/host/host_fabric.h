/* host_fabric.h - the fabric's answers, from the run directory of a node's or the scheduler's fabricd. */
#ifndef FABRICD_HOST_HOST_FABRIC_H
#define FABRICD_HOST_HOST_FABRIC_H

#include <event2/event.h>

#include "fabricd/serving/served.h"
#include "topo/base/error.h"

/* Serve what stands in it, and what comes later, with the pair of events around each change. It need not be
 * there. Before the server starts. */
int host_fabric_start(struct event_base *base, const char *rundir, struct fab_err *err);

/* What is served; NULL before the start. */
struct served *host_fabric_served(void);

/* After the server has stopped. */
void host_fabric_stop(void);

#endif
