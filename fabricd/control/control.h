/*
 * control.h - the room of the control socket: JSON lines from fabricctl (docs/control.md), who sends them,
 * and the answers. What can be asked is the roles'.
 */
#ifndef FABRICD_CONTROL_CONTROL_H
#define FABRICD_CONTROL_CONTROL_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fabricd/base/counts.h"
#include "fabricd/config/config.h"
#include "fabricd/serving/plane_ref.h"

struct control;
struct control_op; /* connection.h */

/*
 * The socket in config->rundir. ops: what can be asked (of the role), ended by an entry without a name;
 * owner: what they work on.
 */
int control_new(struct event_base *base, struct config *config, struct counts *counts,
                const struct control_op *ops, void *owner, struct control **out, struct fab_err *err);
void control_free(struct control *control); /* NULL allowed; removes the socket */

/* Listen anew, because the socket's file is gone. Those who are connected stay so. */
int control_listen(struct control *control, struct fab_err *err);

/* What came of a sweep, for those who wait for it. */
struct swept {
    uint64_t number;
    int code;
    const char *message; /* why it failed */
    uint64_t generation;
    bool changed, partial;
    bool part;                                /* only what was asked for was swept, and what was dirty */
    const char *why_full;                     /* why it was everything where a part was asked for; "" */
    uint32_t suppressed, suppressed_switches; /* cables and switches that are suppressed */
};
void control_swept(struct control *control, const struct swept *swept);

/* A line for those who wait, on what is being done for them. */
void control_progress(struct control *control, const char *what);

/* Call run(arg), which takes long, on a thread, and wait for it; meanwhile callers that ask for `status`
 * are answered with what it was before. control NULL: nobody is. */
void control_beside(struct control *control, void (*run)(void *arg), void *arg);

/* Nothing is answered to this user: it is the PMIx server's, which an untrusted client may have taken over.
 */
void control_refuse(struct control *control, uid_t uid);

/* Whoever has to do something about settings that changed, called when they have. */
void control_on_reload(struct control *control, void (*fn)(void *owner, const struct config_reload *reload));

/* Who looks whether the run directory is as it is served, and returns how many planes were not. */
void control_on_mend(struct control *control, uint32_t (*fn)(void *owner));

/* SIGHUP: read the configuration again, and say in the log what came of it. */
void control_hangup(struct control *control);

/* Tell who watches that this generation is published, whether or not a plane is in it. */
void control_published(struct control *control, uint64_t generation);

/* Tell followers of an event, and remember it for those who ask later. */
void control_event(struct control *control, bool pending, const struct event_plane *plane,
                   uint64_t generation);

#endif
