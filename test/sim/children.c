/*
 * children.c - fabricd/process/child.h as the simulation plays it. A child that probes is its own function,
 * called in this process when its time is over; the light sweep's child makes its steps at its pace. Other
 * programs: programs.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/process/child.h"
#include "fabricd/sources/host_scan.h"
#include "fabricd/sources/monitor.h"
#include "fabricd/sources/port_counters.h"
#include "fabricd/sources/sweep.h"
#include "test/sim/played.h"

#define TAKES          (20 * SIM_MS) /* a child that probes */
#define MOST_ARGUMENTS 64

struct child {
    struct child *prev, *next;
    struct child_order order;
    char what[64];
    char *argv[MOST_ARGUMENTS];
    int argc;
    pid_t pid;
    struct timer *ends, *deadline;
    int64_t began;
    char reason[400];
    unsigned char *bytes; /* what it has written */
    size_t size;
    enum sim_sweeps how;
    struct program program; /* of another one than fabricd */
    bool asked;             /* to end */
    struct light_sweeps *sweeps;
};

static struct {
    struct sim *sim;
    struct child *all, *current;
    pid_t last_pid;
} children;

static int (*main_of(const char *option))(int argc, char **argv)
{
    return strcmp(option, SWEEP_CHILD_OPTION) == 0       ? sweep_child
           : strcmp(option, COUNTERS_CHILD_OPTION) == 0  ? counters_child
           : strcmp(option, HOST_SCAN_CHILD_OPTION) == 0 ? host_scan_child
                                                         : NULL;
}

void children_begin(struct sim *s)
{
    children.sim = s;
    children.all = children.current = NULL;
    children.last_pid = 100;
    sim_programs(s, NULL);
}

static bool stays(const struct child *child)
{
    return child->order.program == NULL && strcmp(child->argv[1], MONITOR_CHILD_OPTION) == 0;
}

unsigned children_under_way(void)
{
    const struct child *child;
    unsigned n = 0;
    DL_FOREACH(children.all, child)
    {
        n += !stays(child) && child->how != SIM_SWEEPS_HANG && child->program.takes >= 0 &&
             child->program.takes <= SIM_SECOND;
    }
    return n;
}

const char *sim_children(struct sim *s)
{
    static char text[1024];
    const struct child *child;
    size_t len = 0;
    (void)s;
    text[0] = '\0';
    DL_FOREACH(children.all, child)
    {
        if (len < sizeof(text))
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\n", child->what);
    }
    return text;
}

/* ---- its side
 * ---------------------------------------------------------------------------------------------------------
 */

bool child_begin(const char *daemon)
{
    (void)daemon;
    return children.current != NULL;
}

void child_note(enum pmixfab_level level, const char *line, void *cbdata)
{
    struct child *child = children.current;
    (void)cbdata;
    if (level == PMIXFAB_LOG_ERROR && !child->order.logs)
        snprintf(child->reason, sizeof(child->reason), "%s", line);
    else
        log_line(level, "%s: %s", child->what, line);
}

int child_read(void **bytes, size_t *size, size_t limit)
{
    const struct child_order *order = &children.current->order;
    *bytes = NULL;
    *size = order->input == NULL ? 0 : order->input_size;
    if (*size > limit)
        return PMIXFAB_ERR_RANGE;
    if (*size == 0)
        return PMIXFAB_OK;
    *bytes = malloc(*size);
    if (*bytes == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(*bytes, order->input, *size);
    return PMIXFAB_OK;
}

int child_write(const void *bytes, size_t size)
{
    struct child *child = children.current;
    unsigned char *grown = realloc(child->bytes, child->size + size + 1);
    if (grown == NULL)
        return PMIXFAB_ERR_NOMEM;
    memcpy(grown + child->size, bytes, size);
    child->bytes = grown;
    child->size += size;
    return PMIXFAB_OK;
}

/* ---- its end
 * ------------------------------------------------------------------------------------------------------------
 */

static void child_free(struct child *child)
{
    DL_DELETE(children.all, child);
    timer_free(child->ends);
    timer_free(child->deadline);
    for (int i = 0; i < child->argc; i++)
        free(child->argv[i]);
    light_sweeps_close(child->sweeps);
    program_free(&child->program);
    free(child->bytes);
    free(child);
}

static void child_end(struct child *child, int status, int code)
{
    struct child_result result = {.code = code,
                                  .exit_status = status,
                                  .bytes = child->bytes,
                                  .size = child->size,
                                  .milliseconds = (double)(clock_now(CLOCK_MONOTONIC) - child->began) / 1000};
    if (code == PMIXFAB_ERR_TIMEOUT)
        fab_fail(&result.err, code, "%s: timed out after %u s: killed", child->what, child->order.deadline);
    else if (code != PMIXFAB_OK)
        fab_fail(&result.err, code, "%s: %s", child->what, child->reason);
    child->order.done(&result, child->order.cbdata);
    child->bytes = result.bytes;
    child_free(child);
}

static void child_program_ends(struct child *child)
{
    char last[200];
    program_end(&child->order, child->argv, &child->program, last, sizeof(last));
    const int status = child->program.status;
    snprintf(child->reason, sizeof(child->reason), "the child ended with status %d; its last output was: %s",
             status, last[0] != '\0' ? last : "none");
    child_end(child, status, status == 0 ? PMIXFAB_OK : PMIXFAB_ERR_IO);
}

static void child_on_end(void *arg)
{
    struct child *child = arg;
    int (*run)(int argc, char **argv) = child->order.program != NULL ? NULL : main_of(child->argv[1]);
    if (child->how == SIM_SWEEPS_CRASH) {
        snprintf(child->reason, sizeof(child->reason), "the child was killed by signal 6 (Aborted)");
        child_end(child, -1, PMIXFAB_ERR_IO);
        return;
    }
    if (child->order.program != NULL) {
        child_program_ends(child);
        return;
    }
    children.current = child;
    const int status = run == NULL ? 0 : run(child->argc, child->argv);
    children.current = NULL;
    child_end(child, status,
              status == 0               ? PMIXFAB_OK
              : status == CHILD_NOTHING ? PMIXFAB_ERR_UNSUPPORTED
                                        : PMIXFAB_ERR_IO);
}

static void child_on_deadline(void *arg)
{
    child_end(arg, -1, PMIXFAB_ERR_TIMEOUT);
}

/* ---- the light sweep
 * ----------------------------------------------------------------------------------------------------- */

static void light_sweep_fails(struct child *child, int status, int code, const char *why)
{
    snprintf(child->reason, sizeof(child->reason), "%s", why);
    child_end(child, status, code);
}

/* Open the probes, or make one light sweep; the daemon reads what it says at once. */
static void light_sweep_on_time(void *arg)
{
    struct child *child = arg;
    struct fab_err err = {""};
    int rc = PMIXFAB_OK;
    child->how = sim_light_sweeps_end(children.sim);
    if (child->how == SIM_SWEEPS_HANG)
        return;
    if (child->how == SIM_SWEEPS_CRASH) {
        light_sweep_fails(child, -1, PMIXFAB_ERR_IO, "the child died of signal 9 (Killed)");
        return;
    }
    timer_after(child->ends, strtol(child->argv[3], NULL, 10) * 1000);
    children.current = child;
    if (child->sweeps == NULL)
        rc = light_sweeps_open(child->argv, (unsigned)child->argc - 7, &child->sweeps, &err);
    if (rc == PMIXFAB_OK)
        rc = light_sweeps_look(child->sweeps, &err);
    children.current = NULL;
    if (rc != PMIXFAB_OK) {
        light_sweep_fails(child, rc == PMIXFAB_ERR_UNSUPPORTED ? CHILD_NOTHING : 1,
                          rc == PMIXFAB_ERR_UNSUPPORTED ? rc : PMIXFAB_ERR_IO, err.text);
        return;
    }
    const size_t gone = child->order.said(child->bytes, child->size, child->order.cbdata);
    memmove(child->bytes, child->bytes + gone, child->size - gone);
    child->size -= gone;
}

static void light_sweep_on_asked(void *arg)
{
    child_end(arg, 1, PMIXFAB_ERR_IO);
}

/* ---- the daemon's side
 * ----------------------------------------------------------------------------------------------------- */

int child_start(struct event_base *base, const struct child_order *order, struct child **out,
                struct fab_err *err)
{
    const char *missed;
    struct child *child = *out = calloc(1, sizeof(*child));
    (void)err;
    if (child == NULL)
        sim_fail("out of memory");
    child->order = *order;
    snprintf(child->what, sizeof(child->what), "%s", order->what);
    child->order.what = child->what;
    for (child->argc = 0; order->argv[child->argc] != NULL; child->argc++) {
        if (child->argc == MOST_ARGUMENTS - 1)
            sim_fail("%s: too many arguments", order->what);
        child->argv[child->argc] = strdup(order->argv[child->argc]);
    }
    child->pid = ++children.last_pid;
    child->began = clock_now(CLOCK_MONOTONIC);
    DL_APPEND(children.all, child);
    if (stays(child)) {
        child->ends = timer_new(base, light_sweep_on_time, child);
        timer_after_us(child->ends, TAKES);
        return PMIXFAB_OK;
    }
    child->program.takes = TAKES;
    if (order->program == NULL && strcmp(child->argv[1], SWEEP_CHILD_OPTION) == 0) {
        child->how = sim_sweeps_end(children.sim, &missed);
        child->program.takes = sim_sweep_takes(children.sim);
    }
    child->ends = timer_new(base, child_on_end, child);
    child->deadline = timer_new(base, child_on_deadline, child);
    if (order->deadline > 0)
        timer_after(child->deadline, order->deadline * 1000ll);
    if (order->program != NULL)
        program_begin(order, &child->program);
    if (child->how != SIM_SWEEPS_HANG && child->program.takes >= 0)
        timer_after_us(child->ends, child->program.takes);
    return PMIXFAB_OK;
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

void child_cancel(struct child *child)
{
    if (child == NULL)
        return;
    if (child->order.program != NULL)
        sim_note(children.sim, "child: %s: killed", child->what);
    child_free(child);
}

void child_ask_to_end(struct child *child)
{
    if (child->asked || child->how == SIM_SWEEPS_HANG)
        return;
    child->asked = true;
    timer_free(child->ends);
    child->ends = timer_new(sim_base(children.sim), light_sweep_on_asked, child);
    timer_after_us(child->ends, SIM_MS);
}

void child_leave(struct child *child, bool ask)
{
    (void)child, (void)ask;
}
