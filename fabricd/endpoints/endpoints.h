/*
 * endpoints.h - the room of endpoints: numbers of a plane that jobs have, and whose they are. A job has them
 * until its starter gives them back or ends, whichever comes first (docs/design/launch.md, "Endpoints"). One
 * thread at a time.
 */
#ifndef FABRICD_ENDPOINTS_ENDPOINTS_H
#define FABRICD_ENDPOINTS_ENDPOINTS_H

#include <event2/event.h>
#include <sys/types.h>

#include "fabricd/config/config.h"
#include "fabricd/store/store_tables.h"

#define ENDPOINTS_MAX_PLANES 32   /* of one request */
#define ENDPOINTS_MAX_JOB    1024 /* bytes of a job's name */
#define ENDPOINTS_ANY_USER   ((uid_t)-1)
#define ENDPOINTS_BURST      32  /* changes that a user may ask for at once, */
#define ENDPOINTS_REFILL_MS  100 /* and one more each such time */

struct endpoints;

/* Looks which starters of before are still there. The base, the configuration and the store outlive it. */
int endpoints_new(struct event_base *base, const struct config *config, struct store *store,
                  struct endpoints **out, struct fab_err *err);
void endpoints_free(struct endpoints *endpoints); /* NULL allowed; nothing is given back */

/* May this user take or give back now? Each change waits for the disk, and everybody else for it.
 * PMIXFAB_ERR_BUSY: in a moment. Root and the daemon's own user always may. */
int endpoints_admit(struct endpoints *endpoints, uid_t uid, struct fab_err *err);

/* A starter's request for one of its jobs. The kernel named pid and uid. */
struct endpoints_request {
    pid_t pid;
    uid_t uid;
    const char *job;
    const char *planes[ENDPOINTS_MAX_PLANES]; /* those without a pool get nothing, unless none has one */
    uint32_t n_planes;
    uint32_t count; /* of each plane */
};

/*
 * Hand out what is asked for; on the disk when it returns. Asked again for the same: PMIXFAB_OK, it has them.
 * PMIXFAB_ERR_NOTFOUND: no pool of these planes is configured. _RANGE: too few are left, or that would be
 * more than the user may have. _CONFLICT: the job has others. _UNSUPPORTED: the starter cannot be watched.
 * _BUSY: nor can it now, but perhaps in a moment.
 */
int endpoints_take(struct endpoints *endpoints, const struct endpoints_request *request, struct fab_err *err);

/*
 * What a job of this starter and user has is free. PMIXFAB_ERR_NOTFOUND: it has none. Errors of the store.
 * The user counts, too: who connected may have left the connection to a child, and his number to anybody.
 */
int endpoints_give_back(struct endpoints *endpoints, pid_t pid, uid_t uid, const char *job,
                        struct fab_err *err);

/* All that is handed out, by plane and number. Valid until the next call. */
const struct store_endpoints *endpoints_all(const struct endpoints *endpoints, uint32_t *n);

#endif
