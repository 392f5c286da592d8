/*
 * repair_peer.h - the other end of a connection, for the repairs that take none of its bytes from the
 * library.
 */
#ifndef FAB_MCA_REPAIRS_REPAIR_PEER_H
#define FAB_MCA_REPAIRS_REPAIR_PEER_H

#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "mca/door/opened.h"

/* Nothing that has arrived or arrives is read from it any more; who reads it next finds its end. (After
 * shutdown() the kernel goes on taking what the other side sends.) */
static inline void repair_end_connection(int sd)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    if (connect(sd, &nobody, sizeof(nobody)) != 0)
        shutdown(sd, SHUT_RDWR);
}

/* The socket counts as readable when so many bytes are there, or its end. */
static inline int repair_wait_for_bytes(int sd, int bytes)
{
    return setsockopt(sd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

/* The library is going to ask munge about this credential: it is told this. (repair_psec.c) */
void repair_credential_opened(const char *credential, const struct door_opened *opened);

/* The thread on which the library does everything: set where it comes by (repair_leave.c). */
extern _Thread_local bool repair_on_library_thread;

/* The connection of a client or tool has ended. It is told, unless somebody else is connected by its name,
 * and what the library knows of it is released: of a process of a job with that (repair.h). */
void repair_peer_lost(pmix_peer_t *peer);

#endif
