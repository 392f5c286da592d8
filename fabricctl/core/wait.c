#include "fabricctl/core/ctl.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

int64_t ctl_now(void)
{
    return (int64_t)time(NULL);
}

int64_t ctl_wait_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int ctl_wait(int fd, short what, int64_t deadline)
{
    struct pollfd fds[2] = {{.fd = fd, .events = what}, {.fd = STDOUT_FILENO}};
    sigset_t block, before;
    int n = 0;
    /* the signal may arrive between the check and the wait: it is unblocked only during the wait */
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &before);
    while (!ctl_interrupted()) {
        int64_t left = deadline < 0 ? 0 : deadline - ctl_wait_now();
        struct timespec timeout;
        left = left < 0 ? 0 : left;
        timeout = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        n = ppoll(fds, deadline < 0 ? 2 : 1, deadline < 0 ? NULL : &timeout, &before);
        if (n >= 0 || errno != EINTR)
            break;
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (ctl_interrupted() || n < 0)
        return -1;
    if (deadline < 0 && (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0)
        return -1;
    return n > 0;
}
