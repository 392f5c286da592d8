/* starter.h - the processes that have endpoints for their jobs, and the end of each. For the room endpoints.
 */
#ifndef FABRICD_ENDPOINTS_STARTER_H
#define FABRICD_ENDPOINTS_STARTER_H

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fabricd/base/watch.h"
#include "topo/base/error.h"

struct starter {
    struct starter *prev, *next; /* utlist */
    void *owner;
    pid_t pid;
    uint64_t started; /* in the kernel's ticks since boot; 0: it cannot be seen */
    int fd;           /* of the process, and of no later one with this number; -1: it is gone */
    struct watch *ended;
};

/* Watch a process: `ended` is called when it ends, and may free it. PMIXFAB_ERR_NOTFOUND: there is none.
 * _UNSUPPORTED: the kernel cannot, or it is out of sight. _BUSY: no descriptor is left. _NOMEM. */
int starter_new(struct event_base *base, pid_t pid, watch_fn ended, void *owner, struct starter **out,
                struct fab_err *err);
void starter_free(struct starter *starter); /* NULL allowed */

bool starter_is_gone(const struct starter *starter);

#endif
