/* child_side.c - what the children that probe have in common. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fabricd/process/child.h"

#define PIPE_FD 3

bool child_begin(const char *daemon)
{
    const struct rlimit no_core = {0, 0};
    /* No orphan goes on probing, nor one whose daemon died before it could be said so. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)strtol(daemon, NULL, 10))
        return false;
    setrlimit(RLIMIT_CORE, &no_core);
    setvbuf(stderr, NULL, _IOLBF, 0);
    return true;
}

/* The parent reads standard error line by line; a mark in front tells it how much a line matters. */
void child_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    fprintf(stderr, "<%d>%s\n", (int)level, line);
}

int child_read(void **bytes, size_t *size, size_t limit)
{
    size_t room = 1u << 16;
    char *buffer = malloc(room);
    *bytes = NULL;
    *size = 0;
    for (;;) {
        if (buffer != NULL && *size == room) {
            char *bigger = room > limit ? NULL : realloc(buffer, room * 2);
            if (bigger == NULL)
                free(buffer);
            buffer = bigger;
            room *= 2;
        }
        if (buffer == NULL)
            return *size > limit ? PMIXFAB_ERR_RANGE : PMIXFAB_ERR_NOMEM;
        const ssize_t n = read(STDIN_FILENO, buffer + *size, room - *size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            *bytes = buffer;
            if (n < 0)
                free(buffer);
            return n < 0 ? PMIXFAB_ERR_IO : PMIXFAB_OK;
        }
        *size += (size_t)n;
    }
}

int child_write(const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(PIPE_FD, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return PMIXFAB_ERR_IO;
        at += n;
        size -= (size_t)n;
    }
    return PMIXFAB_OK;
}
