/*
 * endpoints.h - the room of endpoints: numbers of a plane that are assigned to jobs. A job keeps them until
 * its starter returns them or ends (docs/design/launch.md, "Endpoints"). One thread at a time.
 */
#ifndef FABRICD_ENDPOINTS_ENDPOINTS_H
#define FABRICD_ENDPOINTS_ENDPOINTS_H

#include <event2/event.h>
#include <sys/types.h>

#include "fabricd/config/config.h"
#include "fabricd/store/store_tables.h"

#define ENDPOINTS_MAX_PLANES 32   /* planes of a request */
#define ENDPOINTS_MAX_JOB    1024 /* bytes of a job's name */
#define ENDPOINTS_ANY_USER   ((uid_t)-1)
#define ENDPOINTS_BURST      32  /* changes of a user at once, */
#define ENDPOINTS_REFILL_MS  100 /* and one more each such time */

struct endpoints;

/* Load the endpoints, and check which starters still run. The base, the configuration and the store outlive
 * the handle. */
int endpoints_new(struct event_base *base, const struct config *config, struct store *store,
                  struct endpoints **out, struct fab_err *err);
void endpoints_free(struct endpoints *endpoints); /* NULL allowed; endpoints stay assigned */

/* Return whether this user may take or return endpoints now: each change waits for the disk, and blocks all
 * other callers. PMIXFAB_ERR_BUSY: not yet. Root and the daemon's own user always may. */
int endpoints_admit(struct endpoints *endpoints, uid_t uid, struct fab_err *err);

/* A starter's request for one of its jobs. pid and uid are from the kernel. */
struct endpoints_request {
    pid_t pid;
    uid_t uid;
    const char *job;
    const char *planes[ENDPOINTS_MAX_PLANES]; /* planes without a pool are skipped, unless none has a pool */
    uint32_t n_planes;
    uint32_t count; /* for each plane */
};

/*
 * Assign endpoints; they are on the disk on return. PMIXFAB_OK also for a repeated request that is already
 * fulfilled. PMIXFAB_ERR_NOTFOUND: no pool of these planes is configured. _RANGE: too few are left, or the
 * user's quota is exceeded. _CONFLICT: the job has other endpoints. _UNSUPPORTED: the starter cannot be
 * watched. _BUSY: it cannot be watched now, but perhaps in a moment.
 */
int endpoints_take(struct endpoints *endpoints, const struct endpoints_request *request, struct fab_err *err);

/*
 * Free the endpoints of a job of this starter and user. PMIXFAB_ERR_NOTFOUND: it has none. Errors of the
 * store. The uid is compared, too: a caller may leave its connection to a child, and then its pid can be
 * reused by any user.
 */
int endpoints_give_back(struct endpoints *endpoints, pid_t pid, uid_t uid, const char *job,
                        struct fab_err *err);

/* Return all assigned endpoints, by plane and number. Valid until the next call. */
const struct store_endpoints *endpoints_all(const struct endpoints *endpoints, uint32_t *n);

#endif
