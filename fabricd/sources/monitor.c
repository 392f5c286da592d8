/* monitor.c - the daemon's side of light sweeps: the child's lifetime and its output. */
#include "fabricd/sources/monitor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/process/child.h"
#include "fabricd/process/supervisor.h"
#include "fabricd/sources/sweep.h"
#include "probes/registry.h"

#define FIRST_PAUSE 1000 /* milliseconds before the restart of a child; doubled each time */
#define MAX_PAUSE   60000
#define GOOD_POLLS  30u  /* of one child: then an earlier failure is over */
#define TO_END      2000 /* milliseconds for a child that was asked to end */
#define LINES_LIMIT (1u << 20)

struct monitor {
    struct event_base *base;
    const struct config *config;
    struct monitor_fns fns;
    struct child *child;
    struct timer *timer; /* for its next start; while it runs, its timeout */
    void *bytes;         /* the inventory of the child */
    size_t size;
    void *next; /* the inventory for the next child, once this one has ended; NULL: none */
    size_t next_size;
    struct monitor_lines lines;
    struct supervisor life;
    unsigned polls; /* light sweeps of this child */
    bool told;      /* its failure was logged */
};

bool monitor_wanted(const struct config *config)
{
    if (config->light_sweep == 0 || config->once || config->role != ROLE_SCHEDULER)
        return false;
    for (unsigned i = 0; i < config->probes.n; i++) {
        const struct probe *probe = probe_find(config->probes.items[i], NULL);
        if (probe != NULL && probe->monitor_open != NULL)
            return true;
    }
    return false;
}

/* ---- the child's output --------------------------------------------------------------------------- */

static bool monitor_any(const struct dirty_switches *dirty)
{
    return dirty->all || dirty->probes != 0 || dirty->n > 0;
}

void monitor_forget(struct dirty_switches *dirty)
{
    dirty->all = false;
    dirty->probes = 0;
    dirty->n = 0;
}

bool monitor_line(struct monitor_lines *lines, const char *line)
{
    struct monitor_status *status = &lines->status;
    uint64_t guid, requests, microseconds, probe;
    char more;
    if (sscanf(line, "all %" SCNu64 "%c", &probe, &more) == 1) {
        if (probe < CONFIG_MAX_LIST)
            lines->dirty.probes |= 1u << probe;
    } else if (sscanf(line, "node 0x%" SCNx64 "%c", &guid, &more) == 1) {
        if (dirty_switches_add(&lines->dirty, guid, NULL) != PMIXFAB_OK)
            lines->dirty.all = true;
    } else if (sscanf(line, "poll %" SCNu64 " %" SCNu64 "%c", &microseconds, &requests, &more) == 2) {
        status->light_sweeps++;
        status->dirty += monitor_any(&lines->dirty);
        status->requests = requests;
        status->poll_ms = (double)microseconds / 1e3;
        status->monitoring = true;
        return true;
    }
    return false;
}

bool monitor_manager_line(const char *line, unsigned *probe, struct probe_manager *out)
{
    unsigned lid, priority, master;
    char more;
    *out = (struct probe_manager){.asked = true};
    if (sscanf(line, "manager %u %u %u 0x%" SCNx64 " %u%c", probe, &lid, &priority, &out->guid, &master,
               &more) != 5 ||
        *probe >= CONFIG_MAX_LIST || lid > UINT16_MAX || priority > UINT8_MAX)
        return false;
    out->lid = (uint16_t)lid;
    out->priority = (uint8_t)priority;
    out->master = master != 0;
    return true;
}

/* Restart the child's timeout: it may take as long as a sweep. */
static void watch_over(struct monitor *monitor)
{
    timer_after(monitor->timer, (monitor->config->light_sweep + monitor->config->deadline) * INT64_C(1000));
}

static size_t on_said(const unsigned char *bytes, size_t n, void *cbdata)
{
    struct monitor *monitor = cbdata;
    size_t at = 0;
    const unsigned char *end;
    while ((end = memchr(bytes + at, '\n', n - at)) != NULL) {
        char line[80];
        snprintf(line, sizeof(line), "%.*s", (int)(end - (bytes + at)), (const char *)bytes + at);
        at = (size_t)(end - bytes) + 1;
        unsigned probe;
        struct probe_manager manager;
        if (monitor_manager_line(line, &probe, &manager))
            monitor->fns.manager(probe, &manager, monitor->fns.cbdata);
        if (!monitor_line(&monitor->lines, line))
            continue;
        if (++monitor->polls == GOOD_POLLS) {
            supervisor_good(&monitor->life);
            monitor->told = false;
        }
        if (monitor->next == NULL) /* otherwise it is about to end */
            watch_over(monitor);
        struct dirty_switches *dirty = &monitor->lines.dirty;
        if (monitor_any(dirty))
            monitor->fns.dirty(dirty, monitor->fns.cbdata);
        monitor_forget(dirty);
    }
    return at;
}

/* ---- the child's lifetime ------------------------------------------------------------------------- */

static int64_t monitor_now(void)
{
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

/* The child has ended: start another one after a pause. */
static void monitor_ended(struct monitor *monitor, const char *why)
{
    const int64_t pause =
        supervisor_lost(&monitor->life, why, false, monitor_now(), clock_now(CLOCK_REALTIME));
    monitor->lines.status.monitoring = false;
    if (!monitor->told)
        log_warning("%s: changes are noticed at sweeps only, until light sweeps run again",
                    monitor->life.why);
    monitor->told = true;
    timer_after(monitor->timer, pause);
}

static void monitor_start_child(struct monitor *monitor);

static void monitor_on_child_ended(struct child_result *result, void *cbdata)
{
    struct monitor *monitor = cbdata;
    monitor->child = NULL;
    timer_cancel(monitor->timer);
    if (monitor->next != NULL) {
        monitor_start_child(monitor);
        return;
    }
    if (result->code == PMIXFAB_ERR_UNSUPPORTED) { /* this inventory cannot be monitored */
        monitor->lines.status.monitoring = false;
        log_debug("%s", result->err.text);
        return;
    }
    monitor_ended(monitor, result->code == PMIXFAB_OK ? "light sweep: its process ended" : result->err.text);
}

/* Start a child with the latest inventory. */
static void monitor_start_child(struct monitor *monitor)
{
    if (monitor->next != NULL) {
        free(monitor->bytes);
        monitor->bytes = monitor->next;
        monitor->size = monitor->next_size;
        monitor->next = NULL;
    }
    const struct config *config = monitor->config;
    struct fab_err err = {""};
    char daemon[16], poll[16], smps[16], timeout[16], retries[16];
    snprintf(daemon, sizeof(daemon), "%d", (int)getpid());
    snprintf(poll, sizeof(poll), "%u", config->light_sweep);
    snprintf(smps, sizeof(smps), "%u", config->max_smps);
    snprintf(timeout, sizeof(timeout), "%u", config->timeout_ms);
    snprintf(retries, sizeof(retries), "%u", config->retries);
    char *argv[CONFIG_MAX_LIST + 8] = {"fabricd", MONITOR_CHILD_OPTION, daemon, poll, smps, timeout, retries};
    sweep_probes(config, argv + 7);
    const struct child_order order = {.what = "light sweep",
                                      .argv = argv,
                                      .env = &config->sweep_env,
                                      .input = monitor->bytes,
                                      .input_size = monitor->size,
                                      .limit = LINES_LIMIT,
                                      .said = on_said,
                                      .done = monitor_on_child_ended,
                                      .cbdata = monitor};
    monitor_forget(&monitor->lines.dirty);
    monitor->polls = 0;
    supervisor_began(&monitor->life, monitor_now());
    if (child_start(monitor->base, &order, &monitor->child, &err) != PMIXFAB_OK) {
        log_error("%s", err.text);
        timer_after(monitor->timer, MAX_PAUSE);
        return;
    }
    watch_over(monitor);
}

static void monitor_on_timeout(void *arg)
{
    struct monitor *monitor = arg;
    if (monitor->child == NULL) {
        monitor_start_child(monitor);
        return;
    }
    child_cancel(monitor->child);
    monitor->child = NULL;
    if (monitor->next != NULL)
        monitor_start_child(monitor);
    else
        monitor_ended(monitor, "light sweep: timed out: killed");
}

void monitor_watch(struct monitor *monitor, void *bytes, size_t size)
{
    if (monitor->child != NULL && monitor->next == NULL && size == monitor->size &&
        memcmp(bytes, monitor->bytes, size) == 0) {
        free(bytes);
        return;
    }
    free(monitor->next);
    monitor->next = bytes;
    monitor->next_size = size;
    monitor->lines.status.monitoring = false;
    if (monitor->child != NULL) {
        child_ask_to_end(monitor->child);
        timer_after(monitor->timer, TO_END);
    } else if (!timer_pending(monitor->timer)) {
        monitor_start_child(monitor);
    }
}

const void *monitor_inventory(const struct monitor *monitor, size_t *size)
{
    *size = monitor->next != NULL ? monitor->next_size : monitor->size;
    return monitor->next != NULL ? monitor->next : monitor->bytes;
}

void monitor_status(const struct monitor *monitor, struct monitor_status *out)
{
    *out = monitor->lines.status;
}

int monitor_new(struct event_base *base, const struct config *config, const struct monitor_fns *fns,
                struct monitor **out)
{
    struct monitor *monitor = *out = calloc(1, sizeof(*monitor));
    if (monitor == NULL)
        return PMIXFAB_ERR_NOMEM;
    *monitor = (struct monitor){.base = base,
                                .config = config,
                                .fns = *fns,
                                .life = {.again = {.first = FIRST_PAUSE, .most = MAX_PAUSE}}};
    monitor->timer = timer_new(base, monitor_on_timeout, monitor);
    if (monitor->timer != NULL)
        return PMIXFAB_OK;
    free(monitor);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void monitor_leave(struct monitor *monitor)
{
    if (monitor != NULL)
        child_leave(monitor->child, true);
}

void monitor_free(struct monitor *monitor)
{
    if (monitor == NULL)
        return;
    child_cancel(monitor->child);
    timer_free(monitor->timer);
    dirty_switches_free(&monitor->lines.dirty);
    free(monitor->bytes);
    free(monitor->next);
    free(monitor);
}
