/*
 * noticing.c - process noticed changes. Dirty switches from light sweeps are debounced and lead to a round
 * that sweeps only these switches. Changes of subnet managers are logged.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/publisher.h"
#include "fabricd/engine/scheduler_state.h"

/* ---- checks after a change ------------------------------------------------------------------------- */

#define LOOK_MS 500 /* one check after a storm of publications */

void scheduler_look_soon(struct scheduler *d)
{
    if (d->look == NULL || d->look_soon)
        return;
    d->look_soon = true;
    timer_after(d->look, LOOK_MS);
}

/* ---- subnet managers ------------------------------------------------------------------------------- */

void scheduler_manager_text(const struct scheduler *d, const struct probe_manager *manager,
                            char text[SCHEDULER_MANAGER_TEXT])
{
    char port[FAB_PORT_TEXT];
    if (manager->guid == 0)
        snprintf(text, SCHEDULER_MANAGER_TEXT, "LID %u", (unsigned)manager->lid);
    else if (publisher_port_text(d->publisher, manager->guid, port))
        snprintf(text, SCHEDULER_MANAGER_TEXT, "%s (LID %u)", port, (unsigned)manager->lid);
    else
        snprintf(text, SCHEDULER_MANAGER_TEXT, "0x%016" PRIx64 " (LID %u)", manager->guid,
                 (unsigned)manager->lid);
}

static void on_manager(unsigned probe, const struct probe_manager *saw, void *cbdata)
{
    struct scheduler *d = cbdata;
    struct manager *manager = &d->managers[probe];
    const struct probe_manager before = manager->now;
    const enum manager_news news = manager_seen(manager, saw, clock_now(CLOCK_REALTIME));
    char now[SCHEDULER_MANAGER_TEXT], former[SCHEDULER_MANAGER_TEXT];
    if (news == MANAGER_AS_BEFORE)
        return;
    scheduler_manager_text(d, &manager->now, now);
    scheduler_manager_text(d, &before, former);
    if (news == MANAGER_FIRST)
        log_debug("subnet manager: %s, priority %u", now, (unsigned)saw->priority);
    else if (news == MANAGER_GONE)
        log_error("subnet manager: %s does not answer: new links stay inactive until one answers; check that "
                  "it runs (systemctl status opensm)",
                  now);
    else if (news == MANAGER_BACK)
        log_info("subnet manager: %s answers again", now);
    else
        log_warning("subnet manager: %s took over from %s", now, former);
    if (news == MANAGER_ANOTHER)
        count(d->counts, COUNT_MANAGERS);
    metrics_write(d->metrics);
    scheduler_look_soon(d);
}

bool managers_any_gone(const struct scheduler *d)
{
    bool gone = false;
    for (unsigned i = 0; i < CONFIG_MAX_LIST; i++)
        gone |= manager_is_gone(&d->managers[i]);
    return gone;
}

const struct manager *scheduler_subnet_manager(const struct scheduler *d, unsigned probe, const char **spec)
{
    char *specs[CONFIG_MAX_LIST];
    if (probe >= sweep_probes(d->config, specs))
        return NULL;
    *spec = specs[probe];
    return &d->managers[probe];
}

/* ---- dirty switches -------------------------------------------------------------------------------- */

static int64_t round_clock_ms(void)
{
    return clock_now(CLOCK_MONOTONIC) / 1000;
}

/* Convert to this host's wall clock of now, which may have jumped since. */
static int64_t on_the_clock(int64_t monotonic)
{
    return monotonic < 0 ? 0 : clock_now(CLOCK_REALTIME) - (round_clock_ms() - monotonic) * 1000;
}

static void round_schedule(struct scheduler *d)
{
    const int64_t when = d->scope_asked ? 0 : debounce_when(&d->debounce), now = round_clock_ms();
    if (when < 0)
        return;
    timer_after(d->monitor_timer, when > now ? when - now : 0);
}

/* A light sweep has found changes. */
static void on_dirty(const struct dirty_switches *dirty, void *cbdata)
{
    struct scheduler *d = cbdata;
    d->dirty.all |= dirty->all;
    d->dirty.probes |= dirty->probes;
    for (uint32_t i = 0; i < dirty->n; i++)
        if (dirty_switches_add(&d->dirty, dirty->guids[i], NULL) != PMIXFAB_OK)
            d->dirty.all = true;
    log_debug("light sweep: %u switch%s%s", dirty->n, dirty->n == 1 ? " has changed" : "es have changed",
              dirty->all || dirty->probes != 0 ? ", or all of them" : "");
    debounce_changed(&d->debounce, round_clock_ms());
    round_schedule(d);
}

bool monitoring_is_due(const struct scheduler *d)
{
    return d->scope_asked || debounce_when(&d->debounce) >= 0;
}

void monitoring_ask(struct scheduler *d, const char *name)
{
    uint32_t at = 0;
    uint64_t guid;
    while (publisher_next_switch(d->publisher, name, &at, &guid))
        if (dirty_switches_add(&d->dirty, guid, NULL) != PMIXFAB_OK)
            d->dirty.all = true;
    d->scope_asked = true;
    if (!d->round)
        round_schedule(d);
}

static int monitoring_new(struct scheduler *d)
{
    const struct monitor_fns fns = {.dirty = on_dirty, .manager = on_manager, .cbdata = d};
    return monitor_wanted(d->config) ? monitor_new(d->base, d->config, &fns, &d->monitor) : PMIXFAB_OK;
}

int monitoring_start(struct scheduler *d, timer_fn due, struct fab_err *err)
{
    debounce_init(&d->debounce, (int64_t)d->config->debounce * 1000, (int64_t)d->config->debounce_max * 1000);
    d->monitor_timer = timer_new(d->base, due, d);
    if (d->monitor_timer == NULL || monitoring_new(d) != PMIXFAB_OK)
        return no_memory(err);
    return PMIXFAB_OK;
}

const void *monitoring_inventory(const struct scheduler *d, size_t *size)
{
    *size = d->last_size;
    return d->monitor == NULL ? d->last : monitor_inventory(d->monitor, size);
}

void monitoring_again(struct scheduler *d)
{
    size_t size;
    const void *bytes = monitoring_inventory(d, &size);
    void *copy = bytes == NULL ? NULL : malloc(size);
    if (copy != NULL)
        memcpy(copy, bytes, size);
    monitor_free(d->monitor);
    d->monitor = NULL;
    if (monitoring_new(d) != PMIXFAB_OK)
        log_error("light sweep: out of memory");
    free(d->last);
    d->last = NULL;
    if (d->monitor == NULL) {
        d->last = copy;
        d->last_size = size;
    } else if (copy != NULL) {
        monitor_watch(d->monitor, copy, size);
    }
}

void monitoring_stop(struct scheduler *d)
{
    monitor_free(d->monitor);
    timer_free(d->monitor_timer);
    dirty_switches_free(&d->dirty);
    free(d->last);
}

int64_t monitoring_since(const struct scheduler *d)
{
    return d->monitor == NULL ? 0 : on_the_clock(debounce_since(&d->debounce));
}

int64_t monitoring_covered_since(const struct scheduler *d)
{
    return d->monitor == NULL ? 0 : on_the_clock(debounce_covered_since(&d->debounce));
}

bool monitoring_scope(struct scheduler *d, struct switch_sweep *parts, struct fab_err *err)
{
    *parts = (struct switch_sweep){.dirty = &d->dirty};
    parts->parts = monitoring_inventory(d, &parts->size);
    if (parts->parts == NULL)
        fab_fail(err, PMIXFAB_ERR_NOTFOUND, "no sweep has succeeded yet");
    else if (d->status.stale) /* a sweep of a part must not hide that */
        fab_fail(err, PMIXFAB_ERR_PARTIAL, "the last sweep failed");
    return parts->parts != NULL && !d->status.stale;
}

void monitoring_covered(struct scheduler *d)
{
    debounce_covered(&d->debounce);
    monitor_forget(&d->dirty);
}

void monitoring_swept(struct scheduler *d, struct sweep_result *result)
{
    if (result->code != PMIXFAB_OK || d->monitor_timer == NULL)
        return;
    if (d->monitor != NULL) {
        monitor_watch(d->monitor, result->bytes, result->size);
    } else {
        free(d->last);
        d->last = result->bytes;
        d->last_size = result->size;
    }
    result->bytes = NULL;
}

void monitoring_round_ended(struct scheduler *d)
{
    if (d->monitor_timer != NULL)
        round_schedule(d);
}
