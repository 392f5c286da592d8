/*
 * repair_accept.c - a server without descriptors to spare becomes deaf for a while, not for good.
 *
 * Up to 4.2 the library has a thread that takes connections, and ends when accept() says anything but that
 * the other side has gone. From 5.0 on its only thread takes them, and closes the listening socket when
 * accept() says anything but that nobody is there. Here it is told that, a moment later; who waits to be
 * taken goes on waiting in the kernel's queue, and is taken when a descriptor is free.
 * And a server that dies while somebody is connected can be followed by another one at the same port at once.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mca/door/connections.h"
#include "mca/repairs/repair.h"
#include "mca/repairs/repair_versions.h"

#define PAUSE_MS 100

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

#if REPAIRS_CONNECTIONS && PMIX_VERSION_MAJOR >= 5
#define ACCEPT_LATER EAGAIN

static void accept_on_pause_over(evutil_socket_t none, short what, void *arg)
{
    (void)none, (void)what, (void)arg;
    if (pmix_ptl_base.listener.active)
        event_add(&pmix_ptl_base.listener.ev, NULL);
}

/* The library's only thread does everything else meanwhile. */
static void accept_pause(void)
{
    const struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
    if (event_base_once(pmix_globals.evbase, -1, EV_TIMEOUT, accept_on_pause_over, NULL, &pause) == 0)
        event_del(&pmix_ptl_base.listener.ev);
}
#else
#define ACCEPT_LATER ECONNABORTED

/* The thread has nothing else to do, and would be back at once. */
static void accept_pause(void)
{
    poll(NULL, 0, PAUSE_MS);
}
#endif

typedef int (*accept_fn)(int fd, struct sockaddr *address, socklen_t *size);

static bool accept_is_short(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* It is about the one who would have been taken, or about none. */
static bool accept_is_transient(int error)
{
    return error == EPROTO || error == EINTR || error == ECONNABORTED || error == EPERM;
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
        errno = ACCEPT_LATER;
        return -1;
    }
    if (taken >= 0 || !accept_is_librarys(fd) || !fab_repair_wanted(FAB_REPAIR_CONNECTIONS) ||
        !(accept_is_short(errno) || accept_is_transient(errno)))
        return taken;
    if (accept_is_short(errno)) {
        fab_repair_log(
            errno == EMFILE
                ? "PMIx connections wait to be taken: this process has no descriptor left: "
                  "raise its limit (LimitNOFILE= of the service)"
                : "PMIx connections wait to be taken: this host is short of descriptors or memory");
        accept_pause();
    }
    errno = ACCEPT_LATER;
    return -1;
}
