/*
 * repair_accept.c - a server without descriptors to spare becomes deaf for a while, not for good.
 *
 * The library's thread that takes connections ends when accept() says anything but that the other side has
 * gone. Here it is told that, a moment later; who waits to be taken goes on waiting in the kernel's queue,
 * and is taken when a descriptor is free.
 * And a server that dies while somebody is connected can be followed by another one at the same port at once.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mca/door/connections.h"
#include "mca/repairs/repair.h"
#include "mca/repairs/repair_versions.h"

#if REPAIRS_CONNECTIONS
#include <src/include/pmix_config.h>

#include <src/include/pmix_globals.h>
#include <src/mca/ptl/base/base.h>

static bool accept_is_librarys(int fd)
{
    return fd == pmix_ptl_base.listener.socket;
}
#else
/* All that is done then, to leave the port, does no harm to another socket. */
static bool accept_is_librarys(int fd)
{
    (void)fd;
    return true;
}
#endif

#define PAUSE_MS 100

typedef int (*accept_fn)(int fd, struct sockaddr *address, socklen_t *size);

/* That nothing is lost by trying again. */
static bool accept_is_transient(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == EPROTO ||
           error == EINTR;
}

/* The kernel keeps what is left of a connection for a minute, and keeps its port from a next server as long
 * as that has not been allowed. The library allows it only where it was told which port to take. */
static void accept_leaves_port(int fd)
{
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

/* Of the system, for everybody in this process; only the library's own listening socket is another matter. */
int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict size)
{
    accept_fn original;
    *(void **)&original = fab_repair_original("accept");
    if (original == NULL) {
        errno = ENOSYS;
        return -1;
    }
    int taken = original(fd, address, size);
    if (taken >= 0 && accept_is_librarys(fd))
        accept_leaves_port(taken); /* also one that is refused, which ends at this side */
    if (taken >= 0 && accept_is_librarys(fd) && fab_repair_wanted(FAB_REPAIR_CONNECTIONS) &&
        !connections_admit(taken)) {
        fab_repair_log(connections_is_only_own()
                           ? "a PMIx connection of another user was refused"
                           : "a PMIx connection was refused: its user or host has too many, or has ended the "
                             "process before");
        close(taken);
        errno = ECONNABORTED;
        return -1;
    }
    if (taken >= 0 || !accept_is_librarys(fd) || !accept_is_transient(errno) ||
        !fab_repair_wanted(FAB_REPAIR_CONNECTIONS))
        return taken;
    if (errno != EINTR)
        fab_repair_log(
            errno == EMFILE
                ? "PMIx connections wait to be taken: this process has no descriptor left: "
                  "raise its limit (LimitNOFILE= of the service)"
                : "PMIx connections wait to be taken: this host is short of descriptors or memory");
    poll(NULL, 0, PAUSE_MS); /* the thread has nothing else to do, and would be back at once */
    errno = ECONNABORTED;
    return -1;
}
