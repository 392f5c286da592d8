/* snapshot_walk.h - ask a handle everything that can be asked, in range and out of it. Under a sanitizer this
 * shows that what passed the check is safe to read. */
#ifndef FAB_TEST_SNAPSHOT_WALK_H
#define FAB_TEST_SNAPSHOT_WALK_H

#include <stdlib.h>
#include <string.h>

#include "pmixfab.h"

#define WALK_MATRIX_MAX 256u /* larger planes are asked for single rows and pairs only */

#define WALK_MUST(condition)                                                                                 \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

static inline void walk_facts(const struct pmixfab *fab, uint32_t device)
{
    struct pmixfab_fact fact;
    const char *last = "";
    uint32_t i = 0;

    for (; pmixfab_fact(fab, device, i, &fact) == 0; i++) {
        const char *first = pmixfab_fact_text(fab, device, fact.kind);
        WALK_MUST(strlen(fact.text) < SIZE_MAX && fact.sources != 0 && fact.chosen <= 1);
        if (strcmp(last, fact.kind) != 0)
            WALK_MUST(fact.chosen ? first == fact.text : first == NULL);
        last = fact.kind;
    }
    WALK_MUST(pmixfab_fact(fab, device, i, &fact) == PMIXFAB_ERR_NOTFOUND);
    WALK_MUST(pmixfab_fact(fab, device, UINT32_MAX, &fact) == PMIXFAB_ERR_NOTFOUND);
    WALK_MUST(pmixfab_fact_text(fab, device, "no such kind") == NULL);
}

static inline void walk_devices(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct pmixfab_device device;
    for (uint32_t i = 0; i < plane->n_devices; i++) {
        const uint32_t *coords;
        uint32_t dims, found;
        uint64_t sum = 0;
        WALK_MUST(pmixfab_device(fab, i, &device) == 0);
        WALK_MUST(strlen(device.id) < sizeof(device.id) && device.host_index < plane->n_hosts);
        WALK_MUST(strlen(device.host) + strlen(device.name) < SIZE_MAX);
        WALK_MUST(device.seen >= PMIXFAB_SEEN_SUBNET && device.seen <= 7);
        WALK_MUST((device.seen & PMIXFAB_SEEN_MISSING) == 0 || (device.seen & PMIXFAB_SEEN_SUBNET) != 0);
        walk_facts(fab, i);
        WALK_MUST(device.switch_index == UINT32_MAX || device.switch_index < plane->n_switches);
        for (int view = PMIXFAB_LOGICAL; view <= PMIXFAB_PHYSICAL; view++) {
            WALK_MUST(pmixfab_coords(fab, i, (enum pmixfab_view)view, &coords, &dims) == 0);
            for (uint32_t d = 0; d < dims; d++)
                sum += coords[d];
        }
        WALK_MUST(sum <= 2ull * PMIXFAB_MAX_DIMS * UINT32_MAX);
        if (pmixfab_find(fab, device.id, &found) == 0)
            WALK_MUST(found < plane->n_devices);
        if (pmixfab_find(fab, device.host, &found) == 0)
            WALK_MUST(found < plane->n_devices);
    }
    WALK_MUST(pmixfab_device(fab, plane->n_devices, &device) == PMIXFAB_ERR_INVAL);
}

static inline void walk_hosts_and_groups(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    const char *name;
    const uint32_t *hosts;
    uint32_t first, n;
    char *text = NULL;

    for (uint32_t i = 0; i < plane->n_hosts; i++) {
        WALK_MUST(pmixfab_host(fab, i, &name, &first, &n) == 0);
        WALK_MUST(strlen(name) < SIZE_MAX && n > 0 && first < plane->n_devices &&
                  n <= plane->n_devices - first);
    }
    for (uint32_t g = 0; g < plane->n_groups; g++) {
        WALK_MUST(pmixfab_group(fab, g, &hosts, &n) == 0);
        for (uint32_t m = 0; m < n; m++)
            WALK_MUST(hosts[m] < plane->n_hosts);
        WALK_MUST(strlen(pmixfab_group_name(fab, g)) < SIZE_MAX);
        WALK_MUST(pmixfab_group_switch(fab, g, &n) == 0 && (n == UINT32_MAX || n < plane->n_switches));
    }
    WALK_MUST(pmixfab_group_name(fab, plane->n_groups) == NULL);
    if (plane->n_groups < 4096 && pmixfab_groups_string(fab, &text) == 0)
        free(text);
}

static inline void walk_switches_and_links(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    struct pmixfab_switch sw;
    struct pmixfab_link cable;

    for (uint32_t i = 0, found; i < plane->n_switches; i++) {
        WALK_MUST(pmixfab_switch(fab, i, &sw) == 0 && strlen(sw.name) < SIZE_MAX && strlen(sw.id) == 18);
        WALK_MUST(pmixfab_find_switch(fab, sw.name, &found) != 0 || found < plane->n_switches);
    }
    for (uint32_t i = 0, device, at, unit; pmixfab_misplaced(fab, i, &device, &at, &unit) == 0; i++)
        WALK_MUST(device < plane->n_devices && (at == UINT32_MAX || at < plane->n_switches));
    for (uint32_t i = 0; i < plane->n_links; i++) {
        WALK_MUST(pmixfab_link(fab, i, &cable) == 0);
        const struct pmixfab_end *ends[2] = {&cable.a, &cable.b};
        for (int e = 0; e < 2; e++)
            WALK_MUST(ends[e]->index < (ends[e]->is_switch ? plane->n_switches : plane->n_devices) ||
                      (!ends[e]->is_switch && ends[e]->index == UINT32_MAX));
    }
}

/* What costs and cables say may contradict each other. */
static inline void walk_path(const struct pmixfab *fab, const struct pmixfab_plane *plane, uint32_t a,
                             uint32_t b)
{
    uint32_t *path = malloc((plane->n_switches + (size_t)1) * sizeof(*path)), n;

    WALK_MUST(path != NULL);
    const int rc = pmixfab_path(fab, a, b, path, plane->n_switches, &n);
    WALK_MUST(rc == 0 || rc == PMIXFAB_ERR_NOTFOUND || rc == PMIXFAB_ERR_CORRUPT);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        WALK_MUST(path[i] < plane->n_switches);
    free(path);
}

static inline void walk_costs(const struct pmixfab *fab, const struct pmixfab_plane *plane)
{
    uint32_t n = plane->n_devices;
    uint16_t cost, *row = malloc((n + (size_t)1) * sizeof(*row)), *cells = NULL;

    WALK_MUST(row != NULL);
    for (uint32_t i = 0; i < n; i += 1 + n / WALK_MATRIX_MAX) {
        WALK_MUST(pmixfab_row(fab, i, row, n) == 0);
        walk_path(fab, plane, i, n - 1 - i);
        for (uint32_t k = 0; k < n; k += 1 + n / WALK_MATRIX_MAX) {
            WALK_MUST(pmixfab_cost(fab, i, k, &cost) == 0);
            WALK_MUST(cost == row[k]);
        }
    }
    if (n <= WALK_MATRIX_MAX && pmixfab_matrix_alloc(fab, 2, &cells) == 0)
        pmixfab_matrix_free(cells, n);
    free(row);
}

static inline void walk_everything(const struct pmixfab *fab)
{
    struct pmixfab_plane plane;
    char shape[64];

    WALK_MUST(pmixfab_plane(fab, &plane) == 0);
    WALK_MUST(strlen(plane.name) + strlen(plane.vendor) + strlen(plane.identifier) + strlen(plane.kind) <
              SIZE_MAX);
    WALK_MUST(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, shape, sizeof(shape)) == 0);
    WALK_MUST(pmixfab_shape_string(fab, PMIXFAB_PHYSICAL, shape, sizeof(shape)) == 0);
    walk_devices(fab, &plane);
    walk_hosts_and_groups(fab, &plane);
    walk_switches_and_links(fab, &plane);
    walk_costs(fab, &plane);
}

#endif
