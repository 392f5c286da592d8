/*
 * pmix_server.h - the program fabricd-pmix, as fabricd sees it: a child that is replaced when it dies or
 * hangs, or a unit of its own, at which fabricd only looks. Nothing of fabricd depends on it. On the loop.
 *
 * Its listening socket outlives it: fabricd (or the service manager) keeps it for the next one, so that
 * nobody else gets its port.
 */
#ifndef FABRICD_PMIX_PMIX_SERVER_H
#define FABRICD_PMIX_PMIX_SERVER_H

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>

#include "fabricd/config/config.h"

/* None runs. NULL: no memory. */
struct pmix_server;
struct pmix_server *pmix_server_new(void);
void pmix_server_free(struct pmix_server *server); /* pmix_server_stop(), too; NULL allowed */

/*
 * Write the settings; start the first child, and wait for it for a while. The event loop runs meanwhile. An
 * error: the child says that it can never serve, or its settings cannot be written.
 */
int pmix_server_start(struct pmix_server *server, struct event_base *base, const struct config *config,
                      struct fab_err *err);
void pmix_server_stop(struct pmix_server *server);

/* The URI that tools connect to; "" before one serves. It stands in RUNDIR/fabricd.uri. */
const char *pmix_server_uri(const struct pmix_server *server);

/* The run directory was made anew: what is of the server there, too. */
void pmix_server_repair(struct pmix_server *server);

/*
 * Call next when the server serves this generation and has raised its UPDATED, or after PMIX_WAIT_MS; at once
 * where none serves. Whoever waits for a sweep gets its generation from the server then.
 */
#define PMIX_WAIT_MS 1000
void pmix_server_wait(struct pmix_server *server, uint64_t generation, void (*next)(void *cbdata),
                      void *cbdata);

/* One was lost. One function at most is told. */
void pmix_server_on_replaced(struct pmix_server *server, void (*fn)(void *cbdata), void *cbdata);

struct pmix_server_status {
    pid_t pid;            /* 0: none serves now */
    unsigned served;      /* servers that have begun to serve */
    unsigned replaced;    /* children that ended and were not meant to */
    int64_t last;         /* when the last of them did, microseconds since 1970 */
    const char *why;      /* and how, or why a unit's server does not serve; "". Until the next one ends */
    bool separated;       /* it has a user of its own, */
    uid_t uid;            /* this one */
    unsigned subscribers; /* relays that wait for the next generation */
    unsigned connected;   /* tools and relays that are */
    unsigned parted;      /* that were to the last one that ended */
    bool filtered, confined, bounded, guarded;
};
void pmix_server_status(const struct pmix_server *server, struct pmix_server_status *status);

/* The same for `fabricctl status`, and as metrics. */
json_t *pmix_server_json(const struct pmix_server *server);
void pmix_server_metrics(FILE *out, const struct pmix_server *server);

#endif
