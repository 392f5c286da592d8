/*
 * watch.c - preloaded into a server: writes to standard error where the library closes a descriptor that is
 * closed, or takes a closed one off its events. It stands in for munge's library, too: a credential "MUNGE:"
 * is opened after UPSTREAM_MUNGE_DELAY seconds.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/types.h>
#include <unistd.h>

#define MUNGE_SUCCESS 0

int munge_encode(char **cred, void *context, const void *bytes, int size);
int munge_decode(const char *cred, void *context, void **bytes, int *size, uid_t *uid, gid_t *gid);

static void report(const char *what, long number)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "watch: %s %ld\n", what, number);
    if (write(STDERR_FILENO, line, (size_t)n) != n)
        abort();
}

int close(int fd)
{
    int (*original)(int);
    *(void **)&original = dlsym(RTLD_NEXT, "close");
    int rc = original(fd);
    if (rc != 0 && errno == EBADF) {
        report("close of a closed descriptor", fd);
        errno = EBADF;
    }
    return rc;
}

int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    int (*original)(int, int, int, struct epoll_event *);
    *(void **)&original = dlsym(RTLD_NEXT, "epoll_ctl");
    int rc = original(epoll, op, fd, event);
    if (rc != 0 && errno == EBADF) {
        report("event of a closed descriptor", fd);
        errno = EBADF;
    }
    return rc;
}

int munge_encode(char **cred, void *context, const void *bytes, int size)
{
    (void)context, (void)bytes, (void)size;
    *cred = strdup("MUNGE:");
    return MUNGE_SUCCESS;
}

int munge_decode(const char *cred, void *context, void **bytes, int *size, uid_t *uid, gid_t *gid)
{
    const char *delay = getenv("UPSTREAM_MUNGE_DELAY");
    (void)context;
    report("credential of bytes", (long)strlen(cred));
    if (delay != NULL)
        sleep((unsigned)atoi(delay));
    if (bytes != NULL)
        *bytes = NULL;
    if (size != NULL)
        *size = 0;
    *uid = geteuid();
    *gid = getegid();
    return MUNGE_SUCCESS;
}
