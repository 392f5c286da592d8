/*
 * server.h - the PMIx server: answers fabric calls and queries from the served set. The room server/ also
 * sends the events, and serves the relays of other hosts.
 *
 * The library calls functions of this room on its own thread. They only read the current served set.
 */
#ifndef FABRICD_SERVER_SERVER_H
#define FABRICD_SERVER_SERVER_H

#include <pmix_server.h>

#include "fabricd/config/config.h"
#include "fabricd/serving/served.h"

/*
 * Start the server in the configured role. Its files go into the run directory. A node's server accepts its
 * own host only, and has a name of its own, as each relay must.
 *
 * served: the source of all answers.
 * module: the role's functions, valid while the server runs. This function adds those that count connections.
 */
int server_start(const struct config *config, struct served *served, pmix_server_module_t *module,
                 struct fab_err *err);
/*
 * Set the listening socket of an earlier server, before the start. If the library accepts a socket
 * (guard.h), the new server takes it over; otherwise the socket is closed. fd -1: none.
 */
void server_listen_on(int fd);
/* Return whether the server listens on that socket. */
bool server_took_over(void);
/* Return the server's listening socket; -1: not known. */
int server_listening(void);
void server_stop(void);

/* Return the URI that tools connect to; empty before the start. */
const char *server_uri(void);

/* Return the server's own name, for events. */
const pmix_proc_t *server_self(void);

#endif
