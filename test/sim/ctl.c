/* ctl.c - fabricctl in the process of the site: where it would wait for the daemon, the daemon goes on. And
 * fabricd as an operator calls it beside the daemon. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabricctl/core/ctl.h"
#include "fabricd/base/clock.h"
#include "fabricd/config/config.h"
#include "fabricd/main/fabricd_main.h"
#include "test/sim/played.h"

#define MOST_ARGUMENTS 64

int64_t ctl_now(void)
{
    return clock_now(CLOCK_REALTIME) / SIM_SECOND;
}

int64_t ctl_wait_now(void)
{
    return clock_now(CLOCK_MONOTONIC) / SIM_MS;
}

static bool (*on_wait)(void);

void sim_on_wait(struct sim *s, bool (*fn)(void))
{
    (void)s;
    on_wait = fn;
}

int ctl_wait(int fd, short what, int64_t deadline)
{
    struct pollfd one = {.fd = fd, .events = what};
    if ((what & POLLIN) == 0)
        return poll(&one, 1, 0) > 0 ? 1 : 0;
    do {
        if (sim_run_until_readable(the_sim(), fd, 0))
            return 1;
    } while (on_wait != NULL && on_wait());
    const int64_t left = deadline < 0 ? SIM_DAY : (deadline - ctl_wait_now()) * SIM_MS;
    return sim_run_until_readable(the_sim(), fd, left) ? 1 : deadline < 0 ? -1 : 0;
}

/* A stream of this process goes to memory until captured_end(). */
struct captured {
    FILE *stream;
    int fd, own, memory;
};

static struct captured captured_begin(FILE *stream)
{
    fflush(stream);
    struct captured c = {.stream = stream, .fd = fileno(stream)};
    c.own = dup(c.fd);
    c.memory = memfd_create("sim", MFD_CLOEXEC);
    if (c.own < 0 || c.memory < 0 || dup2(c.memory, c.fd) < 0)
        sim_fail("no memory for what fabricctl prints: %s", strerror(errno));
    return c;
}

static char *captured_end(struct captured c)
{
    fflush(c.stream);
    dup2(c.own, c.fd);
    close(c.own);
    const off_t size = lseek(c.memory, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    if (text == NULL || pread(c.memory, text, (size_t)size, 0) != size)
        sim_fail("what fabricctl printed cannot be read");
    text[size] = '\0';
    close(c.memory);
    return text;
}

int ctl_run(const char *rundir, char *const *argv, char **out, char **err)
{
    char *whole[MOST_ARGUMENTS] = {"fabricctl"};
    int argc = 1;
    setenv("FABRICD_RUNDIR", rundir, 1); /* as a default, so that a test can give another place */
    for (int i = 0; argv[i] != NULL && argc < MOST_ARGUMENTS - 1; i++)
        whole[argc++] = argv[i];
    const struct captured o = captured_begin(stdout), e = captured_begin(stderr);
    const int status = ctl_main(argc, whole);
    *err = captured_end(e);
    *out = captured_end(o);
    return status;
}

int sim_ctl(struct sim *s, const char *const *argv, const char **out, const char **err)
{
    return sim_ctl_of(sim_rundir(s), argv, out, err);
}

int sim_ctl_of(const char *rundir, const char *const *argv, const char **out, const char **err)
{
    static char *printed, *errors;
    free(printed);
    free(errors);
    const int status = ctl_run(rundir, (char *const *)argv, &printed, &errors);
    *out = printed;
    *err = errors;
    return status;
}

int sim_fabricd(struct sim *s, const char *const *argv)
{
    char *whole[MOST_ARGUMENTS] = {"fabricd", "--config", (char *)sim_settings(s)};
    int argc = 3, status = 2;
    struct config config;
    for (int i = 0; argv[i] != NULL && argc < MOST_ARGUMENTS - 1; i++)
        whole[argc++] = (char *)argv[i];
    config_init(&config);
    if (options_parse(argc, whole, &config) == PMIXFAB_OK)
        status = config.restore != NULL ? restore_run(&config) : 0;
    config_destroy(&config);
    return status;
}
