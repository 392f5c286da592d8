#include "pmix/values/device.h"

#include <stdlib.h>
#include <string.h>

#include "pmix/values/value.h"

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

pmix_status_t fab_devices_fill(const struct pmixfab *fab, const struct fab_request *request,
                               pmix_data_array_t *array, size_t *at)
{
    struct fab_device_walk walk;
    pmix_info_t *info = array->array;
    pmix_status_t rc = PMIX_SUCCESS;
    uint32_t index;
    fab_device_walk(fab, request, &walk);
    while (rc == PMIX_SUCCESS && *at < array->size && fab_device_next(&walk, &index)) {
        rc = fab_device_value(fab, index, &info[*at].value);
        PMIX_LOAD_KEY(info[*at].key, PMIX_FABRIC_DEVICE);
        ++*at;
    }
    return rc;
}

pmix_status_t fab_devices_value(const struct pmixfab *fab, const struct fab_request *request,
                                pmix_value_t *value)
{
    size_t at = 0;
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, fab_device_count(fab, request));
    if (rc != PMIX_SUCCESS)
        return rc;
    rc = fab_devices_fill(fab, request, value->data.darray, &at);
    if (rc != PMIX_SUCCESS)
        fab_value_free(value);
    return rc;
}
