/*
 * pmix_starter.h - who has started this process: fabricd, whose child it is, or the service manager. Of it
 * come the listening socket of the server before this one, and to it go the socket and the status.
 *
 * A child has a socket to fabricd as descriptor 0, and a pipe to it as descriptor 3.
 */
#ifndef FABRICD_PMIX_PMIX_STARTER_H
#define FABRICD_PMIX_PMIX_STARTER_H

#include <stdbool.h>

#include "topo/base/error.h"

/* First of all, before the environment is changed. daemon: the process number of fabricd as text; NULL: the
 * manager has started it. False: fabricd is gone. */
bool starter_open(const char *daemon);
bool starter_is_daemon(void);

/* The listening socket of the server before; -1: none. Once. */
int starter_take_socket(void);

/* Keep this socket for the next server. */
void starter_keep_socket(int fd);

/* A child: wait at most so many milliseconds for the end of fabricd. True: it has come. */
bool starter_has_ended(int milliseconds);

/* Before files can be made no more: the manager's child writes its status into a file of this folder. */
int starter_open_status(const char *folder, struct fab_err *err);

/* The status as one line of JSON. Any thread. */
void starter_say(const char *line);

#endif
