#include "pmix/answers/device.h"

#include <stdlib.h>
#include <string.h>

#include "topo/snapshot/reader.h"

/* The devices of a host are neighbours. */
static bool host_range(const struct pmixfab *fab, uint32_t host, struct fab_device_walk *walk)
{
    const char *name;
    uint32_t n;
    if (pmixfab_host(fab, host, &name, &walk->next, &n) != PMIXFAB_OK)
        return false;
    walk->end = walk->next + n;
    return true;
}

static bool named_range(const struct pmixfab *fab, const char *host, struct fab_device_walk *walk)
{
    const char *name;
    uint32_t first, n;
    for (uint32_t i = 0; pmixfab_host(fab, i, &name, &first, &n) == PMIXFAB_OK; i++)
        if (strcmp(name, host) == 0)
            return host_range(fab, i, walk);
    return false;
}

/* Find the range of devices that a request can match; return false if it is empty. */
static bool device_index_range(const struct pmixfab *fab, const struct fab_request *request,
                               struct fab_device_walk *walk)
{
    struct pmixfab_plane plane;
    struct pmixfab_device device;
    uint32_t index;
    if (pmixfab_plane(fab, &plane) != PMIXFAB_OK ||
        (request->switch_id != NULL && !fab_request_switch(fab, request->switch_id, &walk->on_switch)))
        return false;
    if (request->has_device_index) {
        walk->next = (uint32_t)request->device_index;
        walk->end = walk->next < plane.n_devices ? walk->next + 1 : 0;
        return true;
    }
    if (request->hostname != NULL)
        return named_range(fab, request->hostname, walk);
    if (request->has_nodeid)
        return host_range(fab, (uint32_t)request->nodeid, walk);
    if (request->device_id != NULL)
        return pmixfab_find(fab, request->device_id, &index) == PMIXFAB_OK &&
               pmixfab_device(fab, index, &device) == PMIXFAB_OK && host_range(fab, device.host_index, walk);
    walk->end = plane.n_devices;
    return true;
}

void fab_device_walk(const struct pmixfab *fab, const struct fab_request *request,
                     struct fab_device_walk *out)
{
    *out = (struct fab_device_walk){.fab = fab, .request = request, .on_switch = UINT32_MAX};
    if (!device_index_range(fab, request, out))
        out->end = 0;
}

static bool device_index_fits(const struct fab_device_walk *walk, const struct pmixfab_device *device)
{
    const struct fab_request *request = walk->request;
    return (request->hostname == NULL || strcmp(request->hostname, device->host) == 0) &&
           (!request->has_nodeid || request->nodeid == device->host_index) &&
           (request->device_id == NULL || fab_reader_has_id(walk->fab, device->index, request->device_id)) &&
           (request->device_name == NULL || strcmp(request->device_name, device->name) == 0) &&
           (request->switch_id == NULL || walk->on_switch == device->switch_index);
}

bool fab_device_next(struct fab_device_walk *walk, uint32_t *index)
{
    struct pmixfab_device device;
    while (walk->next < walk->end) {
        *index = walk->next++;
        if (pmixfab_device(walk->fab, *index, &device) == PMIXFAB_OK && device_index_fits(walk, &device))
            return true;
    }
    return false;
}

uint32_t fab_device_count(const struct pmixfab *fab, const struct fab_request *request)
{
    struct fab_device_walk walk;
    uint32_t index, n = 0;
    for (fab_device_walk(fab, request, &walk); fab_device_next(&walk, &index);)
        n++;
    return n;
}

static pmix_status_t one_view(const struct pmixfab *fab, uint32_t index, enum pmixfab_view view,
                              pmix_coord_t *out)
{
    const uint32_t *coords;
    uint32_t dims;
    if (pmixfab_coords(fab, index, view, &coords, &dims) != PMIXFAB_OK)
        return PMIX_ERR_NOT_FOUND;
    out->view = (pmix_coord_view_t)view;
    out->coord = malloc((dims > 0 ? dims : 1) * sizeof(*out->coord));
    if (out->coord == NULL)
        return PMIX_ERR_NOMEM;
    memcpy(out->coord, coords, dims * sizeof(*out->coord));
    out->dims = dims;
    return PMIX_SUCCESS;
}

pmix_status_t fab_device_geometry(const struct pmixfab *fab, uint32_t index, enum pmixfab_view view,
                                  pmix_geometry_t *out)
{
    static const enum pmixfab_view both[] = {PMIXFAB_LOGICAL, PMIXFAB_PHYSICAL};
    struct pmixfab_plane plane;
    struct pmixfab_device device;
    pmix_status_t rc = PMIX_SUCCESS;
    if (pmixfab_plane(fab, &plane) != PMIXFAB_OK || pmixfab_device(fab, index, &device) != PMIXFAB_OK)
        return PMIX_ERR_NOT_FOUND;
    out->fabric = plane.index;
    out->uuid = strdup(device.id);
    out->osname = strdup(device.name);
    out->coordinates = calloc(2, sizeof(*out->coordinates));
    if (out->uuid == NULL || out->osname == NULL || out->coordinates == NULL)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; rc == PMIX_SUCCESS && i < 2; i++)
        if (view == 0 || view == both[i])
            rc = one_view(fab, index, both[i], &out->coordinates[out->ncoords++]);
    return rc;
}
