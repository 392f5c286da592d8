#include "fabricd-pmix/pmix_starter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabricd/base/log.h"
#include "fabricd/base/notify.h"
#include "fabricd/pmix/pmix_link.h"
#include "fabricd/process/child.h"

#define FIRST_PASSED 3 /* the service manager's first descriptor */

static bool of_daemon;
static int status_fd = -1; /* a unit's file */
static int passed = -1;    /* a unit's socket */

/* A manager that stores descriptors passes them to the next start (sd_listen_fds(3)). */
static void starter_take_passed(void)
{
    const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
    const long n_passed =
        pid != NULL && n != NULL && strtol(pid, NULL, 10) == getpid() ? strtol(n, NULL, 10) : 0;
    if (n_passed > 0)
        passed = fcntl(FIRST_PASSED, F_DUPFD_CLOEXEC, 16);
    for (long i = 0; passed >= 0 && i < n_passed && i < 16; i++)
        close(FIRST_PASSED + (int)i);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

bool starter_open(const char *daemon)
{
    const struct rlimit no_core = {0, 0};
    of_daemon = daemon != NULL;
    setrlimit(RLIMIT_CORE, &no_core);
    if (of_daemon) {
        log_to_daemon();
        return child_begin(daemon);
    }
    starter_take_passed();
    notify_open();
    return true;
}

bool starter_is_daemon(void)
{
    return of_daemon;
}

int starter_take_socket(void)
{
    int fd = passed;
    passed = -1;
    if (of_daemon)
        (void)pmix_take_socket(STDIN_FILENO, &fd);
    return fd;
}

void starter_keep_socket(int fd)
{
    if (of_daemon)
        (void)pmix_give_socket(STDIN_FILENO, fd);
    else
        notify_keep(fd, "pmix");
}

bool starter_has_ended(int milliseconds)
{
    struct pollfd channel = {.fd = of_daemon ? STDIN_FILENO : -1, .events = POLLIN};
    return poll(&channel, 1, milliseconds) > 0;
}

int starter_open_status(const char *folder, struct fab_err *err)
{
    char path[4096];
    if (of_daemon)
        return PMIXFAB_OK;
    snprintf(path, sizeof(path), "%s/" PMIX_STATUS_FILE, folder);
    unlink(path);
    status_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    return status_fd >= 0 ? PMIXFAB_OK
                          : fab_fail(err, PMIXFAB_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
}

void starter_say(const char *line)
{
    char text[PMIX_STATUS_MAX];
    const int n = snprintf(text, sizeof(text), "%s\n", line);
    if (n < 0 || (size_t)n >= sizeof(text))
        return;
    if (of_daemon) {
        (void)child_write(text, (size_t)n);
    } else if (status_fd >= 0) {
        memset(text + n, ' ', sizeof(text) - (size_t)n); /* overwrites a longer old line */
        (void)!pwrite(status_fd, text, sizeof(text), 0);
    }
}
