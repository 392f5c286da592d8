/* api_stale.c - find out whether the snapshots in a run directory are kept up to date. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "topo/base/library_log.h"
#include "topo/snapshot/snapshot.h"

/*
 * Test whether a fabricd runs: it listens on its control socket. The connection is closed at once, without a
 * request. The socket left by a killed daemon refuses connections.
 */
static int stale_answers(const struct sockaddr_un *address, bool *answers)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return PMIXFAB_ERR_IO;
    /* EAGAIN: its queue of callers is full, so it runs */
    int failed = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : errno;
    close(fd);
    *answers = failed == 0 || failed == EAGAIN;
    return failed == EACCES || failed == EPERM ? PMIXFAB_ERR_PERM : PMIXFAB_OK;
}

int pmixfab_stale_rundir(const char *rundir, int *stale)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[4096];
    bool answers = false;

    if (stale == NULL || (rundir != NULL && rundir[0] == '\0'))
        return PMIXFAB_ERR_INVAL;
    if (rundir == NULL)
        rundir = FAB_DEFAULT_RUNDIR;
    if (access(rundir, X_OK) != 0) {
        const int rc = errno == EACCES ? PMIXFAB_ERR_PERM : PMIXFAB_ERR_NOTFOUND;
        fab_log(PMIXFAB_LOG_ERROR, "%s: %s: check that fabricd runs here", rundir, strerror(errno));
        return rc;
    }
    int n = snprintf(path, sizeof(path), "%s/" FAB_RUNDIR_STALE, rundir);
    if (n < 0 || (size_t)n >= sizeof(path))
        return PMIXFAB_ERR_RANGE;
    /* no fabricd can listen if the socket's name is too long */
    n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", rundir);
    int rc = (size_t)n < sizeof(address.sun_path) ? stale_answers(&address, &answers) : PMIXFAB_OK;
    if (rc == PMIXFAB_OK)
        *stale = !answers || access(path, F_OK) == 0;
    return rc;
}
