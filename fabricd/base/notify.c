#include "fabricd/base/notify.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "topo/base/text.h"

#define STARTING_S 120

static struct sockaddr_un manager;
static socklen_t manager_size; /* 0: there is none */
static int notify_fd = -1;
static int64_t watchdog, starting_told;

/* "@" stands for the 0 that an abstract name begins with. */
static void notify_find(const char *path)
{
    size_t len = path == NULL ? 0 : strlen(path);
    if (len < 2 || len >= sizeof(manager.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    manager.sun_family = AF_UNIX;
    memcpy(manager.sun_path, path, len);
    if (path[0] == '@')
        manager.sun_path[0] = '\0';
    notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify_fd >= 0)
        manager_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void notify_open(void)
{
    const char *pid = getenv("WATCHDOG_PID"), *time = getenv("WATCHDOG_USEC");
    notify_find(getenv("NOTIFY_SOCKET"));
    const bool ours = time != NULL && (pid == NULL || strtol(pid, NULL, 10) == getpid());
    starting_told = 0;
    watchdog = ours ? strtoll(time, NULL, 10) : 0;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
}

/* A manager that does not listen is no reason to wait or to fail. */
void notify_send(const char *assignments)
{
    if (manager_size > 0)
        (void)!sendto(notify_fd, assignments, strlen(assignments), MSG_NOSIGNAL, (struct sockaddr *)&manager,
                      manager_size);
}

void notify_keep(int fd, const char *name)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } passed = {.bytes = {0}};
    char text[80];
    struct iovec part = {text, (size_t)snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%.40s", name)};
    const struct msghdr message = {.msg_name = &manager,
                                   .msg_namelen = manager_size,
                                   .msg_iov = &part,
                                   .msg_iovlen = 1,
                                   .msg_control = passed.bytes,
                                   .msg_controllen = sizeof(passed.bytes)};
    passed.header =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&passed.header), &fd, sizeof(fd));
    if (manager_size > 0)
        (void)!sendmsg(notify_fd, &message, MSG_NOSIGNAL);
}

void notify_status(const char *fmt, ...)
{
    char text[512] = "STATUS=";
    const size_t name = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + name, sizeof(text) - name, fmt, args);
    va_end(args);
    fab_text_clean(text, sizeof(text), text, strlen(text), NULL); /* a name must not become an assignment */
    notify_send(text);
}

void notify_starting(void)
{
    const int64_t now = clock_now(CLOCK_MONOTONIC);
    char text[64];
    if (starting_told != 0 && now - starting_told < 1000000)
        return;
    starting_told = now;
    snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%lld\n" NOTIFY_ALIVE, STARTING_S * 1000000LL);
    notify_send(text);
}

int64_t notify_watchdog(void)
{
    return manager_size > 0 ? watchdog : 0;
}
