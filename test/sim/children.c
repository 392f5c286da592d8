/*
 * children.c - fabricd/process/child.h as the simulation plays it. A child that probes is its own function,
 * called in this process when its time is over; the light sweep's child looks at the site at its pace; hooks
 * and exports end well.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/timer.h"
#include "fabricd/discovery/counters.h"
#include "fabricd/discovery/host_scan.h"
#include "fabricd/discovery/monitor.h"
#include "fabricd/discovery/sweep.h"
#include "fabricd/process/child.h"
#include "fabricd/util/log.h"
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
    bool asked;               /* to end */
    struct sweep_parts parts; /* of a light sweep: what its probes saw last */
    uint64_t seen;            /* the version of the site then */
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
        n += !stays(child) && child->how != SIM_SWEEPS_HANG;
    }
    return n;
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
    sweep_parts_destroy(&child->parts);
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
        fab_fail(&result.err, code, "%s: not done after %u s, killed", child->what, child->order.deadline);
    else if (code != PMIXFAB_OK)
        fab_fail(&result.err, code, "%s: %s", child->what, child->reason);
    child->order.done(&result, child->order.cbdata);
    child->bytes = result.bytes;
    child_free(child);
}

static void child_on_end(void *arg)
{
    struct child *child = arg;
    int (*run)(int argc, char **argv) = child->order.program != NULL ? NULL : main_of(child->argv[1]);
    if (child->how == SIM_SWEEPS_CRASH) {
        snprintf(child->reason, sizeof(child->reason), "the child died of signal 6 (Aborted)");
        child_end(child, -1, PMIXFAB_ERR_IO);
        return;
    }
    if (child->order.program != NULL)
        sim_note(children.sim, "child: %s ends with 0", child->order.program);
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

static bool same_end(const struct fab_inventory *a, uint32_t one, const struct fab_inventory *b,
                     uint32_t other)
{
    const struct fab_port *p = &a->ports[one], *q = &b->ports[other];
    if (p->num != q->num || p->state != q->state || !fab_same_rate(p, q) ||
        (p->peer == FAB_NONE) != (q->peer == FAB_NONE))
        return false;
    return p->peer == FAB_NONE ||
           (a->ports[p->peer].num == b->ports[q->peer].num &&
            a->nodes[a->ports[p->peer].node].guid == b->nodes[b->ports[q->peer].node].guid);
}

static bool same_ports(const struct fab_inventory *a, const struct fab_node *one,
                       const struct fab_inventory *b, const struct fab_node *other)
{
    bool same = one->n_ports == other->n_ports && one->kind == other->kind;
    for (uint32_t i = 0; same && i < one->n_ports; i++)
        same = same_end(a, one->first_port + i, b, other->first_port + i);
    return same;
}

/* Switches of `a` that are otherwise in `b`, or not there. */
static void print_dirty(FILE *out, const struct fab_inventory *a, const struct fab_inventory *b)
{
    for (uint32_t i = 0; i < a->n_nodes; i++) {
        const uint32_t at = fab_inventory_find(b, a->nodes[i].guid);
        if (a->nodes[i].kind == FAB_SWITCH &&
            (at == FAB_NONE || !same_ports(a, &a->nodes[i], b, &b->nodes[at])))
            fprintf(out, "node 0x%016" PRIx64 "\n", a->nodes[i].guid);
    }
}

static void child_say(struct child *child, const char *text, size_t size)
{
    children.current = child;
    child_write(text, size);
    children.current = NULL;
    const size_t gone = child->order.said(child->bytes, child->size, child->order.cbdata);
    memmove(child->bytes, child->bytes + gone, child->size - gone);
    child->size -= gone;
}

static void light_sweep_on_time(void *arg)
{
    struct child *child = arg;
    char *text = NULL;
    size_t size = 0;
    struct fab_inventory now;
    timer_after(child->ends, strtol(child->argv[3], NULL, 10) * 1000);
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        sim_fail("out of memory");
    if (child->seen != site_version(sim_site(children.sim))) {
        site_inventory(sim_site(children.sim), NULL, &now);
        print_dirty(out, &child->parts.inv[0], &now);
        fab_inventory_destroy(&child->parts.inv[0]);
        child->parts.inv[0] = now;
        child->seen = site_version(sim_site(children.sim));
    }
    fprintf(out, "manager 0 1 0 0x%016" PRIx64 " %d\n", sim_manager_guid(children.sim),
            sim_manager_guid(children.sim) != 0);
    fprintf(out, "poll 1000 %u\n", child->parts.inv[0].n_nodes);
    fclose(out);
    child_say(child, text, size);
    free(text);
}

static void light_sweep_on_asked(void *arg)
{
    child_end(arg, 1, PMIXFAB_ERR_IO);
}

/* ---- the daemon's side
 * ----------------------------------------------------------------------------------------------------- */

static void child_begin_light_sweeps(struct child *child)
{
    struct fab_err err = {""};
    child->seen = UINT64_MAX;
    child->ends = timer_new(sim_base(children.sim), light_sweep_on_time, child);
    if (sweep_parts_decode(child->order.input, child->order.input_size, &child->parts, &err) != PMIXFAB_OK)
        sim_fail("light sweep: %s", err.text);
    timer_after(child->ends, strtol(child->argv[3], NULL, 10) * 1000);
}

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
        child_begin_light_sweeps(child);
        return PMIXFAB_OK;
    }
    if (order->program == NULL && strcmp(child->argv[1], SWEEP_CHILD_OPTION) == 0)
        child->how = sim_sweeps_end(children.sim, &missed);
    child->ends = timer_new(base, child_on_end, child);
    child->deadline = timer_new(base, child_on_deadline, child);
    if (order->deadline > 0)
        timer_after(child->deadline, order->deadline * 1000ll);
    if (child->how != SIM_SWEEPS_HANG)
        timer_after_us(child->ends, TAKES);
    return PMIXFAB_OK;
}

pid_t child_pid(const struct child *child)
{
    return child->pid;
}

void child_cancel(struct child *child)
{
    if (child != NULL)
        child_free(child);
}

void child_ask_to_end(struct child *child)
{
    if (child->asked)
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

/* ---- the probe
 * ----------------------------------------------------------------------------------------------------------------
 */

static int site_check(const struct probe_config *config, struct fab_err *err)
{
    (void)config, (void)err;
    return PMIXFAB_OK;
}

static int site_run(const struct probe_config *config, const struct probe_sink *sink,
                    struct fab_inventory *inv, struct fab_err *err)
{
    const char *missed;
    const enum sim_sweeps how = sim_sweeps_end(children.sim, &missed);
    (void)config, (void)sink;
    if (how == SIM_SWEEPS_FAIL)
        return fab_fail(err, PMIXFAB_ERR_IO, "the port is down");
    fab_inventory_destroy(inv);
    site_inventory(sim_site(children.sim), how == SIM_SWEEPS_MISS ? missed : NULL, inv);
    if (how == SIM_SWEEPS_GOOD)
        sim_on_swept(children.sim, inv);
    return PMIXFAB_OK;
}

/* The light sweep's child is played above. */
static int site_monitor_open(const struct probe_config *config, const struct fab_inventory *inv,
                             struct probe_monitor **out, struct fab_err *err)
{
    (void)config, (void)inv, (void)out;
    return fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "the simulation looks by itself");
}

static bool is_dirty(const struct dirty_switches *dirty, uint64_t guid)
{
    for (uint32_t i = 0; i < dirty->n; i++)
        if (dirty->guids[i] == guid)
            return true;
    return false;
}

/* Where nothing else has changed meanwhile, what is dirty and what was are all there is. */
static int site_sweep_partial(const struct probe_config *config, const struct probe_sink *sink,
                              const struct fab_inventory *last, const struct dirty_switches *dirty,
                              struct fab_inventory *inv, struct fab_err *err)
{
    int rc = site_run(config, sink, inv, err);
    for (uint32_t i = 0; rc == PMIXFAB_OK && i < last->n_nodes; i++) {
        const struct fab_node *was = &last->nodes[i];
        const uint32_t at = fab_inventory_find(inv, was->guid);
        if (was->kind == FAB_SWITCH && !is_dirty(dirty, was->guid) &&
            (at == FAB_NONE || !same_ports(last, was, inv, &inv->nodes[at])))
            rc = fab_fail(err, PMIXFAB_ERR_UNSUPPORTED, "another switch has changed meanwhile");
    }
    return rc;
}

const struct probe probe_site = {.name = "site",
                                 .summary = "the site of a simulation",
                                 .check = site_check,
                                 .run = site_run,
                                 .monitor_open = site_monitor_open,
                                 .sweep_partial = site_sweep_partial};
