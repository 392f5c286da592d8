/*
 * server.h - the PMIx server: answers fabric calls and queries from what is being served. The room server/
 * also sends the events, and serves the relays of other hosts.
 *
 * The library calls in on its own thread; everything here that it calls only reads the current served set.
 */
#ifndef FABRICD_SERVER_SERVER_H
#define FABRICD_SERVER_SERVER_H

#include <pmix_server.h>

#include "fabricd/config/config.h"
#include "fabricd/serving/served.h"

/*
 * Start the server in the role that is configured. Files of its own go into the run directory. A node's is
 * for its own host only, and not called as any other node's: a relay's name has to be its own.
 *
 * served: what queries and fabric calls are answered from.
 * module: what the role answers, for as long as the server runs. Who is connected is noted here.
 */
int server_start(const struct config *config, struct served *served, pmix_server_module_t *module,
                 struct fab_err *err);
/* Before the start: the listening socket of a server before, which the next start takes over where the
 * library can be given one (guard.h); else it is closed. fd -1: there is none. */
void server_listen_on(int fd);
/* It listens on that socket. */
bool server_took_over(void);
/* The socket that it listens on; -1: not known. */
int server_listening(void);
void server_stop(void);

/* The URI that tools connect to; empty before the start. */
const char *server_uri(void);

/* The server's own name, for events. */
const pmix_proc_t *server_self(void);

#endif
