/*
 * front.h - the process that strangers meet: it hosts the PMIx server, and can be lost.
 *
 * The library's listener takes messages from everybody on this host, and from others with remote = yes. It
 * runs in a child that has no store, no control socket and nothing to publish: it answers from the snapshots
 * of the run directory, which it maps, and asks this process for the rest. A front that dies, hangs or grows
 * is replaced by another one at the same address, and nothing that was published, stored or announced
 * depends on it. This header is this process's side; side/ is the front's. All on the loop; one front at a
 * time, of a role.
 */
#ifndef FABRICD_FRONT_FRONT_H
#define FABRICD_FRONT_FRONT_H

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#include "fabricd/config/config.h"
#include "fabricd/serving/plane_ref.h"
#include "fabricd/serving/served.h"
#include "guard/guard.h"

/* The first argument of the child's command line. */
#define FRONT_CHILD_OPTION "--front-child"
int front_child(int argc, char **argv);

/* fabricd --front: the front of the fabricd that has this run directory, started by the service manager.
 * `own` is a folder of its own. Returns the status of the program. */
int front_of(const char *rundir, const char *own);

/* Where that fabricd listens. PMIXFAB_ERR_RANGE: too long. */
int front_socket_path(const char *rundir, struct sockaddr_un *out, struct fab_err *err);

/* None runs. What is called from here on may be set before the start. NULL: no memory. */
struct front;
struct front *front_new(void);
void front_free(struct front *front); /* front_stop(), too; NULL allowed */

/*
 * Start the first one and wait until it serves what is served here. On error front_stop() need not be called,
 * but may. The event loop runs meanwhile.
 */
int front_start(struct front *front, struct event_base *base, const struct config *config,
                struct served *served, struct fab_err *err);
void front_stop(struct front *front);

/* The URI that tools connect to; "" before the start. It stays when a front is replaced. */
const char *front_uri(const struct front *front);

/* ---- what it is told; where no front runs the next one is told ---- */

/* Another set is being served: its files are in place. */
void front_serve(struct front *front);
void front_stale(struct front *front, bool stale);

/*
 * PENDING or UPDATED of these planes. done, once: when a front has said so, or has had its time; at once
 * where none serves. An UPDATED that no front has said is said by the next.
 */
#define FRONT_PENDING_MS 50
#define FRONT_UPDATED_MS                                                                                     \
    1000 /* then what is served is the new one for sure: who waits for a sweep waits for that */
void front_announce(struct front *front, bool pending, const struct event_plane *planes, uint32_t n,
                    uint64_t generation, void (*done)(void *cbdata), void *cbdata);

/* What is held of a host (0: nothing): its node is told when it asks. */
void front_held(struct front *front, const char *host, uint64_t digest);
/* A node (NULL: every one) is to scan its devices and deliver, changed or not. Without a front it is lost. */
void front_scan(struct front *front, const char *host);

/* ---- what it asks ---- */

/* A delivery of a node, as a credential: to be answered once, on the loop. NULL: all are turned away. */
void front_on_delivery(struct front *front, void (*fn)(const char *credential, uint64_t number, void *cbdata),
                       void *cbdata);

/* Who made this credential, with which somebody connects? To be answered on the loop. NULL: nobody can. */
void front_on_check(struct front *front, void (*fn)(const char *credential, uint64_t number, void *cbdata),
                    void *cbdata);
void front_checked(struct front *front, uint64_t number, bool good, uid_t uid, gid_t gid);

/* A new front begins: front_held() of every host of which something is held. */
void front_on_begin(struct front *front, void (*fn)(void *cbdata), void *cbdata);

/* Another one takes a front's place. One at most is told. */
void front_on_replaced(struct front *front, void (*fn)(void *cbdata), void *cbdata);

/* code 0: it is stored; `held`: digest of what is held of the host now; reason: "" for 0. */
void front_answer(struct front *front, uint64_t number, int code, uint64_t held, const char *reason);
void front_turn_away(struct front *front, uint64_t number); /* nobody takes deliveries (now) */

/* ---- how it is ---- */

/* What the front forbids itself, as far as the kernel can: */
#define FRONT_FILTERED 1u /* system calls that it has no use for */
#define FRONT_CONFINED 2u /* files that are none of its own */
#define FRONT_BOUNDED  4u /* more memory than a bound */
#define FRONT_GUARDED  8u /* what untrusted clients send (guard/guard.h) */

#define ORIGIN_TEXT 64 /* "uid 1000", "192.0.2.7" */

struct front_status {
    pid_t pid;                /* 0: none serves now */
    unsigned served;          /* fronts that have begun to serve */
    unsigned replaced;        /* fronts that ended and were not meant to */
    int64_t last;             /* when the last of them did, microseconds since 1970 */
    const char *why;          /* and how; "". Valid until the next one ends */
    char origin[ORIGIN_TEXT]; /* on whose message it was; "": on nobody's */
    bool separated;           /* it has a user of its own, */
    uid_t uid;                /* this one */
    unsigned holds;           /* FRONT_FILTERED and so on, as it said at its start */
    unsigned subscribers;     /* nodes that wait for the next generation */
    unsigned connected;       /* tools, relays and nodes that are */
    unsigned parted;          /* that were to the last one that ended */
};
void front_status(const struct front *front, struct front_status *status);

/* Those whose connections are refused now, from *at on (0), which goes on behind it. */
struct front_refused {
    char origin[ORIGIN_TEXT];
    unsigned seconds; /* more */
};
bool front_refused(const struct front *front, unsigned *at, struct front_refused *out);

#endif
