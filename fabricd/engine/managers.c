/* managers.c - what light sweeps say of the subnet managers is kept, and news of them goes to the log. */
#include <inttypes.h>
#include <stdio.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/engine/scheduler_state.h"

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

void managers_on_seen(unsigned probe, const struct probe_manager *saw, void *cbdata)
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
        log_error("subnet manager: %s does not answer: until one does, ports that come up stay inactive; "
                  "see whether it runs (systemctl status opensm)",
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

const struct manager *scheduler_manager(const struct scheduler *d, unsigned probe, const char **spec)
{
    char *specs[CONFIG_MAX_LIST];
    if (probe >= sweep_probes(d->config, specs))
        return NULL;
    *spec = specs[probe];
    return &d->managers[probe];
}
