/*
 * front_unit.c - a front that the service manager starts, as another user: it connects to a socket in a
 * folder that only the two may enter. This process can neither start it nor kill it: at the end of its
 * connection it ends by itself, and the manager starts the next.
 */
#include <errno.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/front/front_state.h"

int front_socket_path(const char *rundir, struct sockaddr_un *out, struct fab_err *err)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int size = snprintf(out->sun_path, sizeof(out->sun_path), "%s/front/socket", rundir);
    if (size >= (int)sizeof(out->sun_path))
        return fab_fail(err, PMIXFAB_ERR_RANGE,
                        "%.200s/front/socket: the path is too long for a socket: choose a shorter rundir",
                        rundir);
    return PMIXFAB_OK;
}

/* The last one that came is the one that lives: those before it were started before it. */
static void unit_on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                           int len, void *arg)
{
    struct front *front = arg;
    struct front_unit *unit = &front->unit;
    struct ucred caller;
    socklen_t size = sizeof(caller);
    (void)listener, (void)address, (void)len;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &caller, &size) != 0 || caller.uid != front->status.uid) {
        log_warning("%s: uid %u knocked, who is not " FRONT_USER, unit->address.sun_path,
                    (unsigned)caller.uid);
        close(fd);
        return;
    }
    if (unit->waiting >= 0)
        close(unit->waiting);
    unit->waiting = fd;
    unit->pid = caller.pid;
    unit->came(front);
}

int front_unit_take(struct front *front, pid_t *pid)
{
    struct front_unit *unit = &front->unit;
    const int fd = unit->waiting;
    unit->waiting = -1;
    *pid = unit->pid;
    return fd;
}

/* Its group may enter it, and look for nothing in it. */
static int unit_make_folder(struct front *front, struct fab_err *err)
{
    struct front_unit *unit = &front->unit;
    struct stat st;
    mkdir(unit->folder, 0700);
    const int fd = open(unit->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const bool own = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid();
    const bool made = own && fchown(fd, (uid_t)-1, front->gid) == 0 && fchmod(fd, 0710) == 0;
    const int failed = own || fd < 0 ? errno : EEXIST;
    if (fd >= 0)
        close(fd);
    if (made)
        return PMIXFAB_OK;
    return fab_fail(err, PMIXFAB_ERR_IO,
                    "%s: cannot be made a folder for the group of " FRONT_USER
                    ", which the user of fabricd has to be in: %s",
                    unit->folder, strerror(failed));
}

int front_unit_listen(struct front *front, timer_fn came, struct fab_err *err)
{
    struct front_unit *unit = &front->unit;
    int rc = front_socket_path(front->config->rundir, &unit->address, err);
    if (rc != PMIXFAB_OK || (unit->listener != NULL && access(unit->address.sun_path, F_OK) == 0))
        return rc; /* the second: nobody has removed it */
    unit->came = came;
    snprintf(unit->folder, sizeof(unit->folder), "%s/front", front->config->rundir);
    rc = unit_make_folder(front, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (unit->listener != NULL)
        evconnlistener_free(unit->listener);
    unlink(unit->address.sun_path); /* the lock of the run directory is held: nobody listens there */
    unit->listener = evconnlistener_new_bind(front->base, unit_on_accept, front,
                                             LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 8,
                                             (struct sockaddr *)&unit->address, sizeof(unit->address));
    if (unit->listener == NULL ||
        chmod(unit->address.sun_path, 0666) != 0) /* the folder keeps the others out */
        return fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot listen: %s", unit->address.sun_path,
                        strerror(errno));
    return PMIXFAB_OK;
}

void front_unit_stop(struct front *front)
{
    struct front_unit *unit = &front->unit;
    pid_t pid;
    const int waiting = front_unit_take(front, &pid);
    if (waiting >= 0)
        close(waiting);
    if (unit->listener == NULL)
        return;
    evconnlistener_free(unit->listener);
    unit->listener = NULL;
    unlink(unit->address.sun_path);
    rmdir(unit->folder);
}
