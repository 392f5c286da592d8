/*
 * control.h - the room of the control socket: JSON lines from fabricctl (docs/control.md), the callers'
 * permissions, and the answers. The roles define the operations.
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
struct control_op; /* see connection.h */

/*
 * Create the socket in config->rundir. ops: the role's operations, terminated by an entry without a name.
 * owner: the pointer that is passed to the operations.
 */
int control_new(struct event_base *base, struct config *config, struct counts *counts,
                const struct control_op *ops, void *owner, struct control **out, struct fab_err *err);
void control_free(struct control *control); /* NULL allowed; removes the socket */

/* Listen again, after the socket's file was removed. Connections stay. */
int control_listen(struct control *control, struct fab_err *err);

/* The result of a sweep, for waiting callers. */
struct swept {
    uint64_t number;
    int code;
    const char *message; /* why it failed */
    uint64_t generation;
    bool changed, partial;
    bool part;                                /* only the requested switch and dirty ones were swept */
    const char *why_full;                     /* why a request for a part swept everything; "" */
    uint32_t suppressed, suppressed_switches; /* numbers of suppressed cables and switches */
};
void control_swept(struct control *control, const struct swept *swept);

/* Send a progress line to all waiting callers. */
void control_progress(struct control *control, const char *what);

/* Call run(arg), which takes long, on a thread, and wait for it. Meanwhile callers of `status` get the state
 * from before. control NULL: no callers. */
void control_beside(struct control *control, void (*run)(void *arg), void *arg);

/* Refuse connections of this user: that of the PMIx server, which an untrusted client may have taken over. */
void control_refuse(struct control *control, uid_t uid);

/* Set the function to call when settings have changed. */
void control_on_reload(struct control *control, void (*fn)(void *owner, const struct config_reload *reload));

/* Set the function that repairs the run directory, and returns the number of planes repaired. */
void control_on_mend(struct control *control, uint32_t (*fn)(void *owner));

/* Handle SIGHUP: reload the configuration, and log the result. */
void control_hangup(struct control *control);

/* Send the number of a published generation to its watchers, whether or not it contains a plane. */
void control_published(struct control *control, uint64_t generation);

/* Send an event to followers, and store it for later requests. */
void control_event(struct control *control, bool pending, const struct event_plane *plane,
                   uint64_t generation);

#endif
