/* api_cost.c - public functions for costs, and for a cheapest path between two devices. */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "topo/snapshot/cost_matrix.h"
#include "topo/snapshot/reader.h"

#define HUGE_PAGE ((size_t)2 << 20)

int pmixfab_cost(const struct pmixfab *fab, uint32_t a, uint32_t b, uint16_t *cost)
{
    if (fab == NULL || cost == NULL || a >= fab->costs.n_devices || b >= fab->costs.n_devices)
        return PMIXFAB_ERR_INVAL;
    *cost = fab_cost_of(&fab->costs, a, b);
    return PMIXFAB_OK;
}

int pmixfab_row(const struct pmixfab *fab, uint32_t a, uint16_t *row, size_t n)
{
    if (fab == NULL || row == NULL || a >= fab->costs.n_devices || n != fab->costs.n_devices)
        return PMIXFAB_ERR_INVAL;
    fab_cost_row(&fab->costs, a, row);
    return PMIXFAB_OK;
}

/* Return the lowest cost between their devices; symmetric, as the costs of devices are. */
static uint16_t host_cost(const struct pmixfab *fab, uint32_t a, uint32_t b)
{
    const uint32_t a_end = fab_reader_host_end(fab, a), b_end = fab_reader_host_end(fab, b);
    uint16_t least = a == b ? 0 : FAB_COST_NO_PATH;

    for (uint32_t i = fab->hosts[a].first; i < a_end && a != b; i++)
        for (uint32_t k = fab->hosts[b].first; k < b_end; k++) {
            const uint16_t cost = fab_cost_of(&fab->costs, i, k);
            least = cost < least ? cost : least;
        }
    return least;
}

int pmixfab_host_cost(const struct pmixfab *fab, uint32_t a, uint32_t b, uint16_t *cost)
{
    if (fab == NULL || cost == NULL || a >= fab->meta->n_hosts || b >= fab->meta->n_hosts)
        return PMIXFAB_ERR_INVAL;
    *cost = host_cost(fab, a, b);
    return PMIXFAB_OK;
}

/* Return whether these n numbers are below `limit` and there is memory for their matrix. */
static bool costs_asked_well(const uint32_t *which, size_t n, uint32_t limit, const uint16_t *cells)
{
    if (n > 0 && (which == NULL || cells == NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        if (which[i] >= limit)
            return false;
    return true;
}

int pmixfab_device_costs(const struct pmixfab *fab, const uint32_t *devices, size_t n, uint16_t *cells)
{
    if (fab == NULL || !costs_asked_well(devices, n, fab->meta->n_devices, cells))
        return PMIXFAB_ERR_INVAL;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++)
            cells[i * n + k] = cells[k * n + i] = fab_cost_of(&fab->costs, devices[i], devices[k]);
    return PMIXFAB_OK;
}

int pmixfab_host_costs(const struct pmixfab *fab, const uint32_t *hosts, size_t n, uint16_t *cells)
{
    if (fab == NULL || !costs_asked_well(hosts, n, fab->meta->n_hosts, cells))
        return PMIXFAB_ERR_INVAL;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++)
            cells[i * n + k] = cells[k * n + i] = host_cost(fab, hosts[i], hosts[k]);
    return PMIXFAB_OK;
}

/* Compute elements and bytes of a whole matrix; return false if this machine cannot address them. */
static bool matrix_size(uint32_t n_devices, size_t *values, size_t *bytes)
{
    return !__builtin_mul_overflow((size_t)n_devices, (size_t)n_devices, values) &&
           !__builtin_mul_overflow(*values, sizeof(uint16_t), bytes) && *bytes <= PTRDIFF_MAX - HUGE_PAGE;
}

int pmixfab_matrix(const struct pmixfab *fab, uint16_t *cells, size_t n, unsigned threads)
{
    size_t values, bytes;

    if (fab == NULL || !matrix_size(fab->costs.n_devices, &values, &bytes) || n != values)
        return PMIXFAB_ERR_INVAL;
    if (n == 0)
        return PMIXFAB_OK;
    if (cells == NULL)
        return PMIXFAB_ERR_INVAL;
    return fab_cost_matrix(&fab->costs, cells, threads);
}

/*
 * Map new memory, to be unmapped with its own start and size. Large memory starts at the boundary of a huge
 * page. Page faults take most of the time to fill a new matrix, and huge pages cause 512 times fewer page
 * faults.
 */
static void *map_memory(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t used = (bytes + page - 1) / page * page;
    size_t extra = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *map = mmap(NULL, used + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED)
        return NULL;
    if (extra == 0)
        return map;
    size_t before = (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0)
        munmap(map, before);
    if (before < extra)
        munmap(map + before + used, extra - before);
    /* best effort: without huge pages the matrix is only slower to fill */
    madvise(map + before, used, MADV_HUGEPAGE);
    return map + before;
}

int pmixfab_matrix_alloc(const struct pmixfab *fab, unsigned threads, uint16_t **cells)
{
    size_t values, bytes;

    if (fab == NULL || cells == NULL)
        return PMIXFAB_ERR_INVAL;
    if (!matrix_size(fab->costs.n_devices, &values, &bytes))
        return PMIXFAB_ERR_NOMEM;
    if (values == 0) {
        *cells = NULL;
        return PMIXFAB_OK;
    }
    uint16_t *memory = map_memory(bytes);
    if (memory == NULL)
        return PMIXFAB_ERR_NOMEM;
    int rc = fab_cost_matrix(&fab->costs, memory, threads);
    if (rc != 0) {
        munmap(memory, bytes);
        return rc;
    }
    *cells = memory;
    return PMIXFAB_OK;
}

void pmixfab_matrix_free(uint16_t *cells, uint32_t n_devices)
{
    size_t values, bytes;

    if (cells != NULL && matrix_size(n_devices, &values, &bytes) && bytes > 0)
        munmap(cells, bytes);
}

int pmixfab_matrix_update(const struct pmixfab *before, const struct pmixfab *fab, unsigned threads,
                          uint16_t **cells)
{
    uint16_t *fresh = NULL;

    if (before == NULL || fab == NULL || cells == NULL || (*cells == NULL) != (before->costs.n_devices == 0))
        return PMIXFAB_ERR_INVAL;
    if (before->costs.n_devices == fab->costs.n_devices)
        return fab_cost_matrix_update(&before->costs, &fab->costs, *cells, threads, NULL);
    int rc = pmixfab_matrix_alloc(fab, threads, &fresh);
    if (rc != PMIXFAB_OK)
        return rc;
    pmixfab_matrix_free(*cells, before->costs.n_devices);
    *cells = fresh;
    return PMIXFAB_OK;
}

/* ---- a path, switch by switch -----------------------------------------------------------------------------
 */

/* On the cheapest path from the start: its cost, and the previous switch. */
struct path_step {
    uint32_t cost, before;
};

static bool path_improve(const struct pmixfab *fab, uint32_t start, struct path_step *steps, uint32_t from,
                         uint32_t to, uint16_t cost)
{
    const uint32_t way = steps[from].cost;
    /* a path may begin or end at a missing switch, none leads through it */
    if (way == UINT32_MAX || (fab->switches[from].missing != 0 && from != start) ||
        steps[to].cost <= way + cost)
        return false;
    steps[to] = (struct path_step){way + cost, from};
    return true;
}

/*
 * Relax all cables until no path becomes cheaper. This takes as many rounds as the longest path has switches,
 * so there are few rounds. It needs no lists of neighbours, which would take as long to build.
 */
static void path_search(const struct pmixfab *fab, uint32_t start, struct path_step *steps)
{
    bool better = true;

    for (uint32_t s = 0; s < fab->meta->n_switches; s++)
        steps[s] = (struct path_step){UINT32_MAX, FAB_NONE};
    steps[start].cost = 0;
    while (better) {
        better = false;
        for (uint32_t i = 0; i < fab->meta->n_links; i++) {
            const struct snap_link *cable = &fab->links[i];
            const uint32_t a = cable->a & ~SNAP_END_KIND, b = cable->b & ~SNAP_END_KIND;
            if ((cable->a & SNAP_END_KIND) != SNAP_END_SWITCH ||
                (cable->b & SNAP_END_KIND) != SNAP_END_SWITCH)
                continue;
            better |= path_improve(fab, start, steps, a, b, cable->cost);
            better |= path_improve(fab, start, steps, b, a, cable->cost);
        }
    }
}

int pmixfab_path(const struct pmixfab *fab, uint32_t a, uint32_t b, uint32_t *switches, size_t room,
                 uint32_t *n)
{
    if (fab == NULL || n == NULL || (switches == NULL && room > 0) || a >= fab->meta->n_devices ||
        b >= fab->meta->n_devices)
        return PMIXFAB_ERR_INVAL;
    if (fab_cost_of(&fab->costs, a, b) == FAB_COST_NO_PATH)
        return PMIXFAB_ERR_NOTFOUND;
    const uint32_t start = fab->devices[a].sw, end = fab->devices[b].sw;
    uint32_t count = 0;
    if (fab->costs.host[a] == fab->costs.host[b] || start == FAB_NONE || end == FAB_NONE) {
        *n = 0; /* within the host, or a cable between two devices */
        return PMIXFAB_OK;
    }
    struct path_step *steps = malloc(fab->meta->n_switches * sizeof(*steps));
    if (steps == NULL)
        return PMIXFAB_ERR_NOMEM;
    /* search from the end, so that the steps lead from the start */
    path_search(fab, end, steps);
    int rc = steps[start].cost == UINT32_MAX ? PMIXFAB_ERR_CORRUPT : PMIXFAB_OK;
    for (uint32_t s = start; rc == PMIXFAB_OK && s != FAB_NONE; s = steps[s].before, count++)
        if (count < room)
            switches[count] = s;
    if (rc == PMIXFAB_OK) {
        *n = count;
        rc = count <= room ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
    }
    free(steps);
    return rc;
}
