/*
 * pmix_starter.h - the starter of this process: fabricd, as its parent, or the service manager. It provides
 * the listening socket of the last server, and gets the socket and the status.
 *
 * A child has a socket to fabricd as descriptor 0, and a pipe to it as descriptor 3.
 */
#ifndef FABRICD_PMIX_PMIX_STARTER_H
#define FABRICD_PMIX_PMIX_STARTER_H

#include <stdbool.h>

#include "topo/base/error.h"

/*
 * Find the starter. Call this first, before the environment is changed. daemon: the process number of
 * fabricd as text; NULL: the service manager is the starter. False: fabricd is gone.
 */
bool starter_open(const char *daemon);
bool starter_is_daemon(void);

/* Return the listening socket of the last server; -1: none. Call it once. */
int starter_take_socket(void);

/* Store this socket for the next server. */
void starter_keep_socket(int fd);

/* As a child, wait at most so many milliseconds for the end of fabricd. True: it has ended. */
bool starter_has_ended(int milliseconds);

/* As a unit, create the status file in this folder, before the creation of files is forbidden. */
int starter_open_status(const char *folder, struct fab_err *err);

/* Send the status as one line of JSON. Any thread. */
void starter_say(const char *line);

#endif
