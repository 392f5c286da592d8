#include "fabricd/endpoints/starter.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabricd/base/loop.h"
#include "fabricd/base/watch.h"

#define RESERVE 512 /* descriptors */

/*
 * When it began: field 22 of /proc/PID/stat; what stands before the last ')' is its name. 0: not to be seen,
 * as another user's under ProtectProc=invisible.
 */
static uint64_t starter_began(pid_t pid)
{
    char path[64], line[1024] = "";
    unsigned long long began = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const size_t n = file == NULL ? 0 : fread(line, 1, sizeof(line) - 1, file);
    line[n] = '\0';
    if (file != NULL)
        fclose(file);
    const char *at = strrchr(line, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && sscanf(at, " %llu", &began) == 1 ? began : 0;
}

bool starter_is_gone(const struct starter *starter)
{
    struct pollfd poll_fd = {.fd = starter->fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) > 0;
}

static int starter_error(int error)
{
    switch (error) {
    case ESRCH:
    case ENOENT: /* a thread has the number now; */
    case EINVAL: /* likewise, of older kernels */
        return PMIXFAB_ERR_NOTFOUND;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return PMIXFAB_ERR_BUSY; /* it may pass */
    default:
        return PMIXFAB_ERR_UNSUPPORTED;
    }
}

/* Callers, the store and children need descriptors, too, so starters get no more than leaves so many. The
 * kernel gives the lowest number that is free. */
static bool leaves_reserve(int fd)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    const rlim_t reserve = limit.rlim_cur / 2 < RESERVE ? limit.rlim_cur / 2 : RESERVE;
    return (rlim_t)fd < limit.rlim_cur - reserve;
}

int starter_new(struct event_base *base, pid_t pid, watch_fn ended, void *owner, struct starter **out,
                struct fab_err *err)
{
    struct starter *starter = calloc(1, sizeof(*starter));
    *out = NULL;
    if (starter == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "endpoints: out of memory");
    *starter = (struct starter){.owner = owner, .pid = pid, .fd = -1};
    if (pid > 0)
        starter->fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (starter->fd >= 0 && !leaves_reserve(starter->fd)) {
        close(starter->fd);
        starter->fd = -1;
        errno = EMFILE;
    }
    int rc = starter->fd >= 0 ? PMIXFAB_OK : starter_error(pid > 0 ? errno : 0);
    if (rc != PMIXFAB_OK)
        fab_fail(err, rc, "endpoints: process %d cannot be watched: %s", (int)pid,
                 pid > 0 ? strerror(errno) : "it is in another PID namespace");
    else if ((starter->ended = watch_new(base, starter->fd, WATCH_READ, ended, starter)) == NULL)
        rc = fab_fail(err, PMIXFAB_ERR_NOMEM, "endpoints: out of memory");
    if (rc != PMIXFAB_OK) {
        starter_free(starter);
        return rc;
    }
    starter->started = starter_began(pid);
    *out = starter;
    return PMIXFAB_OK;
}

void starter_free(struct starter *starter)
{
    if (starter == NULL)
        return;
    watch_free(starter->ended);
    if (starter->fd >= 0)
        close(starter->fd);
    free(starter);
}
