/* place_nearest.c - choose the device of its host that each process uses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmixfab.h"
#include "topo/base/cpus.h"
#include "topo/base/give.h"

/* Equal to the costs between two devices of a host. */
enum { UNBOUND = 0, ATTACHED = 4, NOT_KNOWN = 5, SAME_PACKAGE = 6, ACROSS = 9 };

struct near_device {
    struct fab_cpus cpus, package; /* empty: unknown */
    uint32_t index, users;
    bool placed, up;
};

struct near_host {
    struct near_device *devices;
    uint32_t n;
};

/*
 * Parse the binding of a process, also in the form of PMIX_CPUSET; NULL: the process is not bound, or the
 * text is invalid.
 */
static const struct fab_cpus *near_bound(const char *text, struct fab_cpus *room)
{
    static const char prefix[] = "hwloc:";
    if (text != NULL && strncmp(text, prefix, strlen(prefix)) == 0)
        text += strlen(prefix);
    return fab_cpus_parse(text, room) ? room : NULL;
}

static uint32_t near_distance(const struct near_device *device, const struct fab_cpus *bound)
{
    if (bound == NULL)
        return UNBOUND;
    if (!device->placed)
        return NOT_KNOWN;
    if (fab_cpus_meet(&device->cpus, bound))
        return ATTACHED;
    return fab_cpus_meet(&device->package, bound) ? SAME_PACKAGE : ACROSS;
}

static bool near_equal(const struct near_device *device, const struct fab_cpus *bound, uint32_t distance)
{
    return device->up && near_distance(device, bound) == distance;
}

static void near_measure(const struct near_host *host, const struct fab_cpus *bound,
                         struct pmixfab_nearest *out)
{
    uint32_t nearer = UINT32_MAX;
    *out = (struct pmixfab_nearest){.device = UINT32_MAX, .distance = UINT32_MAX, .nearer = UINT32_MAX};
    for (uint32_t i = 0; i < host->n; i++) {
        const uint32_t distance = near_distance(&host->devices[i], bound);
        if (host->devices[i].up && distance < out->distance)
            out->distance = distance;
    }
    for (uint32_t i = 0; i < host->n && out->distance != UINT32_MAX; i++) {
        const uint32_t distance = near_distance(&host->devices[i], bound);
        out->equal += near_equal(&host->devices[i], bound, out->distance);
        if (!host->devices[i].up && distance < out->distance && distance < nearer) {
            nearer = distance;
            out->nearer = host->devices[i].index;
        }
    }
}

/*
 * Return the number of different sets of processors that the devices are attached to. With `distance`, only
 * devices at that distance count.
 */
static uint32_t near_sets(const struct near_host *host, const struct fab_cpus *bound, uint32_t distance)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < host->n; i++) {
        const struct near_device *device = &host->devices[i];
        bool counts = device->placed && (bound == NULL || near_equal(device, bound, distance));
        for (uint32_t k = 0; k < i && counts; k++)
            if (bound == NULL || near_equal(&host->devices[k], bound, distance))
                counts = memcmp(&host->devices[k].cpus, &device->cpus, sizeof(device->cpus)) != 0;
        n += counts;
    }
    return n;
}

/*
 * Return the turn among equally near devices, for devices with equally many users. Processes with the same
 * kind of binding are adjacent on the processors near those devices. So the turn is the number of the
 * process's place there. This needs no information about the other processes and their ranks. If there are
 * more processes than places, each round through all places of the host begins with another device. A process
 * bound to a whole socket has one place.
 */
static uint32_t near_turn(const struct near_host *host, const struct fab_cpus *bound, uint32_t distance,
                          uint32_t rank)
{
    struct fab_cpus field;
    uint32_t before = 0, own = 0, size = 0;
    if (bound == NULL)
        return rank;
    memset(&field, distance == ATTACHED || distance == SAME_PACKAGE ? 0 : 0xff, sizeof(field));
    for (uint32_t i = 0; i < host->n; i++) {
        const struct near_device *device = &host->devices[i];
        const struct fab_cpus *near = distance == ATTACHED ? &device->cpus : &device->package;
        for (size_t w = 0; near_equal(device, bound, distance) && w < FAB_CPUS_MAX / 64; w++)
            field.words[w] |= near->words[w];
    }
    for (unsigned cpu = fab_cpus_next(&field, 0); cpu < FAB_CPUS_MAX; cpu = fab_cpus_next(&field, cpu + 1)) {
        const bool mine = fab_cpus_has(bound, cpu);
        before += !mine && own == 0;
        own += mine && size == before + own; /* only the first adjacent ones */
        size++;
    }
    if (own == 0) /* bound to none of them */
        return rank;
    const uint32_t near = near_sets(host, bound, distance), all = near_sets(host, NULL, 0);
    const uint32_t fields = near > 0 && all > near ? all / near : 1;
    return before / own + rank / (fields * (size / own));
}

/* Take the equally near device with fewest users, in turn. */
static void near_take(struct near_host *host, const struct fab_cpus *bound, uint32_t rank,
                      struct pmixfab_nearest *out)
{
    const uint32_t turn = near_turn(host, bound, out->distance, rank) % out->equal;
    struct near_device *best = NULL;
    uint32_t k = 0, best_wait = 0;
    for (uint32_t i = 0; i < host->n; i++) {
        struct near_device *device = &host->devices[i];
        if (!near_equal(device, bound, out->distance))
            continue;
        const uint32_t wait = (k++ + out->equal - turn) % out->equal;
        if (best == NULL || device->users < best->users ||
            (device->users == best->users && wait < best_wait)) {
            best = device;
            best_wait = wait;
        }
    }
    if (best == NULL) /* out->equal counts them, so there is one */
        return;
    best->users++;
    out->device = best->index;
}

static int near_read(const struct pmixfab *fab, uint32_t index, struct near_host *host)
{
    struct pmixfab_device about;
    const char *name;
    uint32_t first, n;
    int rc = pmixfab_host(fab, index, &name, &first, &n);
    if (rc != PMIXFAB_OK)
        return rc;
    host->devices = calloc(n > 0 ? n : 1, sizeof(*host->devices));
    if (host->devices == NULL)
        return PMIXFAB_ERR_NOMEM;
    host->n = n;
    for (uint32_t i = 0; i < n && rc == PMIXFAB_OK; i++) {
        struct near_device *device = &host->devices[i];
        device->index = first + i;
        device->placed = fab_cpus_parse(pmixfab_fact_text(fab, first + i, "cpus"), &device->cpus);
        fab_cpus_parse(pmixfab_fact_text(fab, first + i, "package-cpus"), &device->package);
        rc = pmixfab_device(fab, first + i, &about);
        device->up = about.state == PMIXFAB_STATE_UP;
    }
    return rc;
}

/* Serve the processes with the smallest choice first, so that the others can balance the use. */
static void near_choose(struct near_host *near, uint32_t first_rank, const char *const *cpus, size_t n,
                        struct pmixfab_nearest *chosen)
{
    struct fab_cpus room;
    for (size_t r = 0; r < n; r++)
        near_measure(near, near_bound(cpus == NULL ? NULL : cpus[r], &room), &chosen[r]);
    for (uint32_t equal = 1; equal <= near->n; equal++)
        for (size_t r = 0; r < n; r++)
            if (chosen[r].equal == equal)
                near_take(near, near_bound(cpus == NULL ? NULL : cpus[r], &room), first_rank + (uint32_t)r,
                          &chosen[r]);
}

int pmixfab_nearest_sized(const struct pmixfab *fab, uint32_t host, uint32_t first_rank,
                          const char *const *cpus, size_t n, struct pmixfab_nearest *out, size_t size)
{
    struct near_host near = {NULL, 0};
    if (fab == NULL || (n > 0 && out == NULL) || size == 0)
        return PMIXFAB_ERR_INVAL;
    struct pmixfab_nearest *chosen = calloc(n > 0 ? n : 1, sizeof(*chosen));
    int rc = chosen != NULL ? near_read(fab, host, &near) : PMIXFAB_ERR_NOMEM;
    if (rc == PMIXFAB_OK) {
        near_choose(&near, first_rank, cpus, n, chosen);
        for (size_t r = 0; r < n; r++)
            fab_give((char *)out + r * size, size, &chosen[r], sizeof(*chosen));
    }
    free(near.devices);
    free(chosen);
    return rc;
}

static const char *near_reason(uint32_t distance)
{
    switch (distance) {
    case UNBOUND:
        return "not bound";
    case ATTACHED:
        return "attached to its processors";
    case NOT_KNOWN:
        return "the place of the device in its host is unknown";
    case SAME_PACKAGE:
        return "in the package of its processors";
    case ACROSS:
        return "in another package than its processors";
    default:
        return "no device of the host is up";
    }
}

int pmixfab_nearest_text(const struct pmixfab *fab, const struct pmixfab_nearest *choice, char *buf,
                         size_t size)
{
    struct pmixfab_device nearer;
    int n;
    if (fab == NULL || choice == NULL || buf == NULL || size == 0)
        return PMIXFAB_ERR_INVAL;
    n = snprintf(buf, size, "%s", near_reason(choice->distance));
    if (choice->equal > 1 && n >= 0 && (size_t)n < size)
        n += snprintf(buf + n, size - (size_t)n, ", in turn with %u more", choice->equal - 1);
    if (pmixfab_device(fab, choice->nearer, &nearer) == PMIXFAB_OK && n >= 0 && (size_t)n < size)
        n += snprintf(buf + n, size - (size_t)n, "; %s:%u is nearer, but not up", nearer.name, nearer.port);
    return n >= 0 && (size_t)n < size ? PMIXFAB_OK : PMIXFAB_ERR_RANGE;
}
