#include "fabricd/engine/retained.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/file_io.h"

#define SECOND 1000000ll

void moment_now(struct moment *out)
{
    out->wall = clock_now(CLOCK_REALTIME);
    out->running = clock_now(CLOCK_BOOTTIME);
    snprintf(out->boot, sizeof(out->boot), "%s", boot_id());
}

static int retention_compare_place(const void *a, const void *b)
{
    const struct retained_place *x = a, *y = b;
    if (x->guid != y->guid)
        return x->guid < y->guid ? -1 : 1;
    return (x->port > y->port) - (x->port < y->port);
}

struct retained_place *retained_find(const struct retained *missing, uint64_t guid, uint32_t port)
{
    const struct retained_place key = {.guid = guid, .port = port};
    return missing->n == 0 ? NULL
                           : bsearch(&key, missing->places, missing->n, sizeof(key), retention_compare_place);
}

/* Is this a port that is missing? */
static bool is_place(const struct fab_inventory *inv, const struct fab_node *node, uint32_t p)
{
    return node->kind == FAB_HCA && inv->ports[p].peer != FAB_NONE &&
           (node->missing || inv->ports[p].missing);
}

static void add_place(const struct retained *before, uint64_t guid, uint32_t port, const struct moment *now,
                      int64_t seen, struct retained *out)
{
    const struct retained_place *known = retained_find(before, guid, port);
    if (known == NULL)
        known = retained_find(before, guid, 0);
    struct retained_place *place = &out->places[out->n++];
    *place = (struct retained_place){.since = now->wall, .seen = seen, .counted = now->running};
    if (known != NULL)
        *place = *known;
    if (strcmp(before->boot, now->boot) != 0 || place->counted > now->running)
        place->counted = now->running;
    place->guid = guid;
    place->port = port;
}

int retained_follow(const struct retained *before, const struct fab_inventory *inv, const struct moment *now,
                    int64_t seen, struct retained *out)
{
    uint32_t n = 0;
    *out = (struct retained){0};
    snprintf(out->boot, sizeof(out->boot), "%s", now->boot);
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        n += inv->nodes[i].kind != FAB_HCA && inv->nodes[i].missing;
    for (uint32_t p = 0; p < inv->n_ports; p++)
        n += is_place(inv, &inv->nodes[inv->ports[p].node], p);
    out->places = calloc((size_t)n + 1, sizeof(*out->places));
    if (out->places == NULL)
        return PMIXFAB_ERR_NOMEM;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node *node = &inv->nodes[i];
        if (node->kind != FAB_HCA && node->missing)
            add_place(before, node->guid, 0, now, seen, out);
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++)
            if (is_place(inv, node, p))
                add_place(before, node->guid, inv->ports[p].num, now, seen, out);
    }
    return PMIXFAB_OK;
}

static int64_t retention_time_left(const struct retained_place *place, unsigned retire,
                                   const struct moment *now)
{
    return place->counted + retire * SECOND - now->running;
}

bool retained_is_due(const struct retained_place *place, unsigned retire, const struct moment *now)
{
    return retention_time_left(place, retire, now) <= SECOND;
}

int64_t retained_next(const struct retained *missing, unsigned retire, const struct moment *now)
{
    int64_t first = -1;
    for (uint32_t i = 0; i < missing->n; i++) {
        int64_t one = retention_time_left(&missing->places[i], retire, now);
        one = one < 0 || missing->places[i].forgotten ? 0 : one;
        if (missing->places[i].port != 0 && (first < 0 || one < first))
            first = one;
    }
    return first;
}
