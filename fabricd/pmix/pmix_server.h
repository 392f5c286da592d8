/*
 * pmix_server.h - fabricd's side of the program fabricd-pmix. The program is a child of fabricd, which
 * replaces it when it dies or hangs. Or it is a unit of its own, which fabricd only watches. fabricd works
 * without it. All functions run on the loop.
 *
 * The listening socket outlives the server. fabricd (or the service manager) keeps the socket for the next
 * server, so that no other program can take its port.
 */
#ifndef FABRICD_PMIX_PMIX_SERVER_H
#define FABRICD_PMIX_PMIX_SERVER_H

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>

#include "fabricd/config/config.h"

/* Create the handle; no server runs yet. NULL: no memory. */
struct pmix_server;
struct pmix_server *pmix_server_new(void);
void pmix_server_free(struct pmix_server *server); /* also stops the server; NULL allowed */

/*
 * Write the settings, start the first child, and wait for it for a while. The event loop runs meanwhile.
 * Error: the child can never serve, or its settings cannot be written.
 */
int pmix_server_start(struct pmix_server *server, struct event_base *base, const struct config *config,
                      struct fab_err *err);
void pmix_server_stop(struct pmix_server *server);

/* Return the URI that tools connect to; "" before the first server serves. RUNDIR/fabricd.uri contains it. */
const char *pmix_server_uri(const struct pmix_server *server);

/* Write the server's files into a run directory that was made again. */
void pmix_server_repair(struct pmix_server *server);

/*
 * Call next when the server serves this generation and has raised its UPDATED, or after PMIX_WAIT_MS; at once
 * if no server runs. So a caller that waited for a sweep gets its generation from the server.
 */
#define PMIX_WAIT_MS 1000
void pmix_server_wait(struct pmix_server *server, uint64_t generation, void (*next)(void *cbdata),
                      void *cbdata);

/* Set the function to call when a server was lost. One function at most. */
void pmix_server_on_replaced(struct pmix_server *server, void (*fn)(void *cbdata), void *cbdata);

struct pmix_server_status {
    pid_t pid;         /* 0: no server runs */
    unsigned served;   /* servers that have begun to serve */
    unsigned replaced; /* servers lost */
    int64_t last;      /* time of the last loss, microseconds since 1970 */
    /* reason of the last loss, or why a unit's server does not serve; "": none. Valid until the next loss */
    const char *why;
    bool separated;       /* it runs as a user of its own, */
    uid_t uid;            /* which is this one */
    unsigned subscribers; /* relays that wait for the next generation */
    unsigned connected;   /* connected tools and relays */
    unsigned parted;      /* tools and relays connected to the last lost server */
    bool filtered, confined, bounded, guarded;
};
void pmix_server_status(const struct pmix_server *server, struct pmix_server_status *status);

/* The same for `fabricctl status`, and as metrics. */
json_t *pmix_server_json(const struct pmix_server *server);
void pmix_server_metrics(FILE *out, const struct pmix_server *server);

#endif
