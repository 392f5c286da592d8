/*
 * side.h - inside the front: the process that hosts the PMIx server. Its loop talks to fabricd; the library's
 * thread answers from the served set, which this process maps.
 */
#ifndef FABRICD_FRONT_SIDE_SIDE_H
#define FABRICD_FRONT_SIDE_SIDE_H

#include <event2/event.h>
#include <pmix_server.h>

#include "fabricd/front/channel.h"
#include "fabricd/serving/served.h"

/* ---- side_channel.c ---- */

/* Before all else: where fabricd reads on whose message this process died. */
void side_take_note(void);
int side_listen(struct event_base *base, const struct channel_fns *fns);
/* To fabricd, from any thread. */
void side_say(const struct front_message *message);

/* ---- side_served.c ---- */

/* Serve this set: planes that are new are mapped. */
void side_serve(const char *rundir, struct served *served, const struct front_message *message);

#endif
