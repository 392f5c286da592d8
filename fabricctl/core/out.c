/*
 * out.c - how fabricctl tells failures, ends, and is interrupted.
 */
#include "fabricctl/core/ctl.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricctl/core/ctl_text.h"

static void stderr_vprint(const char *fmt, va_list args)
{
    char *line = NULL;

    if (vasprintf(&line, fmt, args) < 0) {
        fputs("fabricctl: out of memory\n", stderr);
        return;
    }
    ctl_clean(line);
    fprintf(stderr, "fabricctl: %s\n", line);
    free(line);
}

enum ctl_exit ctl_error(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    stderr_vprint(fmt, args);
    va_end(args);
    return CTL_FAILED;
}

enum ctl_exit ctl_usage(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    stderr_vprint(fmt, args);
    va_end(args);
    return CTL_USAGE;
}

enum ctl_exit ctl_nomem(void)
{
    return ctl_error("out of memory: this process: ask for less, or raise its limit");
}

enum ctl_exit ctl_finish(enum ctl_exit status)
{
    int saved;

    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    saved = errno;
    /* who closed the pipe knows it; `fabricctl devices | head` is no error to talk about */
    if (saved != EPIPE)
        ctl_error("cannot write: standard output: %s",
                  saved != 0 ? strerror(saved) : "an earlier write failed");
    return CTL_FAILED;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void ctl_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool ctl_interrupted(void)
{
    return interrupted != 0;
}
