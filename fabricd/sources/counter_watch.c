/* counter_watch.c - the ports whose counters are watched, and their growth. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/sources/port_counters.h"
#include "topo/base/array.h"
#include "topo/base/search.h"

static int compare_watched(const struct watched_port *port, uint64_t guid, uint32_t num)
{
    if (port->last.guid != guid)
        return port->last.guid < guid ? -1 : 1;
    return port->last.num < num ? -1 : port->last.num > num;
}

static uint32_t watched_at(const struct counter_watch *watch, uint64_t guid, uint32_t num)
{
    return FAB_LOWER_BOUND(0, watch->n, i, compare_watched(&watch->ports[i], guid, num) < 0);
}

struct watched_port *counter_watch_find(const struct counter_watch *watch, uint64_t guid, uint32_t num)
{
    const uint32_t at = watched_at(watch, guid, num);
    return at < watch->n && compare_watched(&watch->ports[at], guid, num) == 0 ? &watch->ports[at] : NULL;
}

static void forget_growth(struct watched_port *port)
{
    memset(port->grown, 0, sizeof(port->grown));
    port->grows_since = 0;
}

int counter_watch_add(struct counter_watch *watch, uint64_t guid, uint32_t num, bool changed, int64_t now)
{
    struct watched_port *port = counter_watch_find(watch, guid, num);
    if (port == NULL) {
        const uint32_t at = watched_at(watch, guid, num);
        if (watch->n == (watch->most != 0 ? watch->most : COUNTERS_MAX))
            return PMIXFAB_ERR_RANGE;
        if (!FAB_ARRAY_ROOM(&watch->ports, &watch->cap, watch->n + 1))
            return PMIXFAB_ERR_NOMEM;
        port = &watch->ports[at];
        memmove(port + 1, port, (watch->n++ - at) * sizeof(*port));
        *port = (struct watched_port){.last = {.guid = guid, .num = num}};
    }
    if (changed) {
        port->read_at = 0;
        forget_growth(port);
    }
    port->until = now + COUNTER_WATCH_TIME;
    return PMIXFAB_OK;
}

void counter_watch_read(struct counter_watch *watch, const struct probe_reading *reading, int64_t now)
{
    struct watched_port *port = counter_watch_find(watch, reading->guid, reading->num);
    if (port == NULL)
        return;
    if (reading->state != READING_GOOD) { /* keep the last values, for when it answers again */
        port->last.state = reading->state;
        return;
    }
    for (unsigned c = 0; port->read_at != 0 && c < PROBE_COUNTERS; c++) {
        if (!probe_counter_kinds[c].error || reading->value[c] <= port->last.value[c])
            continue;
        port->grown[c] += reading->value[c] - port->last.value[c];
        watch->grown[c] += reading->value[c] - port->last.value[c];
        if (port->grows_since == 0)
            port->grows_since = port->read_at;
        port->grown_at = now;
        port->until = now + COUNTER_WATCH_TIME;
    }
    port->last = *reading;
    port->read_at = now;
}

void counter_watch_changed(struct counter_watch *watch, uint64_t guid, uint32_t num)
{
    struct watched_port *port = counter_watch_find(watch, guid, num);
    if (port == NULL)
        return;
    port->read_at = 0;
    forget_growth(port);
}

void counter_watch_keep(struct counter_watch *watch, const struct probe_reading *reading, int64_t now)
{
    if (counter_watch_add(watch, reading->guid, reading->num, false, now) != PMIXFAB_OK)
        return;
    struct watched_port *port = counter_watch_find(watch, reading->guid, reading->num);
    if (port->grows_since != 0 &&
        (now - port->grown_at >= COUNTERS_DAY ||
         (now - port->grows_since >= COUNTERS_DAY && counter_level(port->grown) <= 1)))
        forget_growth(port);
    counter_watch_read(watch, reading, now);
    port->until = now + COUNTERS_DAY;
}

double counter_level(const uint64_t value[PROBE_COUNTERS])
{
    double level = 0;
    for (unsigned c = 0; c < PROBE_COUNTERS; c++)
        if (probe_counter_kinds[c].usual > 0 && (double)value[c] / probe_counter_kinds[c].usual > level)
            level = (double)value[c] / probe_counter_kinds[c].usual;
    return level;
}

void counter_watch_expire(struct counter_watch *watch, int64_t now)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < watch->n; i++)
        if (watch->ports[i].until > now)
            watch->ports[n++] = watch->ports[i];
    watch->n = n;
}

void counter_watch_free(struct counter_watch *watch)
{
    free(watch->ports);
    *watch = (struct counter_watch){0};
}

void counter_growth_text(const struct watched_port *port, char text[COUNTERS_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned c = 0; c < PROBE_COUNTERS && used < COUNTERS_TEXT; c++)
        if (port->grown[c] > 0)
            used +=
                (size_t)snprintf(text + used, COUNTERS_TEXT - used, "%s%s +%llu%s", used > 0 ? ", " : "",
                                 probe_counter_kinds[c].words, (unsigned long long)port->grown[c],
                                 port->last.value[c] >= probe_counter_kinds[c].max ? " and at its end" : "");
}
