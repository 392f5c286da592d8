#include "pmix/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/value.h"

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

struct facts {
    const struct pmixfab *fab;
    struct pmixfab_plane plane;
    struct pmixfab_device device;
};

static pmix_status_t get_id(const struct facts *facts, pmix_value_t *value)
{
    return fab_value_string(value, facts->device.id);
}

static pmix_status_t get_host(const struct facts *facts, pmix_value_t *value)
{
    return fab_value_string(value, facts->device.host);
}

static pmix_status_t get_name(const struct facts *facts, pmix_value_t *value)
{
    return fab_value_string(value, facts->device.name);
}

static pmix_status_t get_vendor(const struct facts *facts, pmix_value_t *value)
{
    return fab_value_string(value, facts->plane.vendor);
}

static pmix_status_t get_bus(const struct facts *facts, pmix_value_t *value)
{
    (void)facts;
    return fab_value_string(value, "unknown");
}

static pmix_status_t get_index(const struct facts *facts, pmix_value_t *value)
{
    value->type = PMIX_UINT32;
    value->data.uint32 = facts->device.index;
    return PMIX_SUCCESS;
}

static pmix_status_t get_address(const struct facts *facts, pmix_value_t *value)
{
    char text[32];
    snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)facts->device.port_guid);
    return fab_value_string(value, text);
}

static pmix_status_t get_speed(const struct facts *facts, pmix_value_t *value)
{
    if (facts->device.mbps == 0)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_SIZE;
    value->data.size = facts->device.mbps * 1000000u;
    return PMIX_SUCCESS;
}

static pmix_status_t get_state(const struct facts *facts, pmix_value_t *value)
{
    value->type = PMIX_LINK_STATE;
    value->data.linkstate = (pmix_link_state_t)facts->device.state;
    return PMIX_SUCCESS;
}

static pmix_status_t get_type(const struct facts *facts, pmix_value_t *value)
{
    (void)facts;
    return fab_value_string(value, "InfiniBand");
}

static pmix_status_t get_coordinates(const struct facts *facts, pmix_value_t *value)
{
    value->data.geometry = calloc(1, sizeof(*value->data.geometry));
    if (value->data.geometry == NULL)
        return PMIX_ERR_NOMEM;
    value->type = PMIX_GEOMETRY;
    pmix_status_t rc = fab_device_geometry(facts->fab, facts->device.index, 0, value->data.geometry);
    if (rc != PMIX_SUCCESS)
        fab_value_free(value);
    return rc;
}

static pmix_status_t get_plane(const struct facts *facts, pmix_value_t *value)
{
    return fab_value_string(value, facts->plane.name);
}

static pmix_status_t get_switch(const struct facts *facts, pmix_value_t *value)
{
    struct pmixfab_switch one;
    if (pmixfab_switch(facts->fab, facts->device.switch_index, &one) != PMIXFAB_OK)
        return PMIX_ERR_NOT_FOUND; /* cabled to another device, or to nothing */
    return fab_value_string(value, one.id);
}

static const struct {
    const char *key;
    pmix_status_t (*get)(const struct facts *facts, pmix_value_t *value);
} attributes[] = {
    {PMIX_DEVICE_ID, get_id}, /* the standard: the first element */
    {PMIX_HOSTNAME, get_host},
    {PMIX_FABRIC_DEVICE_NAME, get_name},
    {PMIX_FABRIC_DEVICE_VENDOR, get_vendor},
    {PMIX_FABRIC_DEVICE_BUS_TYPE, get_bus},
    {PMIX_FABRIC_DEVICE_INDEX, get_index},
    {PMIX_FABRIC_DEVICE_ADDRESS, get_address},
    {PMIX_FABRIC_DEVICE_COORDINATES, get_coordinates},
    {PMIX_FABRIC_DEVICE_SPEED, get_speed},
    {PMIX_FABRIC_DEVICE_STATE, get_state},
    {PMIX_FABRIC_DEVICE_TYPE, get_type},
    {PMIX_FABRIC_PLANE, get_plane}, /* the plane that the index is of */
    {PMIX_FABRIC_SWITCH, get_switch},
};
#define N_ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

static pmix_status_t facts_of(const struct pmixfab *fab, uint32_t index, struct facts *facts)
{
    facts->fab = fab;
    return pmixfab_plane(fab, &facts->plane) == PMIXFAB_OK &&
                   pmixfab_device(fab, index, &facts->device) == PMIXFAB_OK
               ? PMIX_SUCCESS
               : PMIX_ERR_NOT_FOUND;
}

bool fab_device_knows(const char *key)
{
    for (size_t i = 0; i < N_ATTRIBUTES; i++)
        if (strcmp(key, attributes[i].key) == 0)
            return true;
    return false;
}

pmix_status_t fab_device_attribute(const struct pmixfab *fab, uint32_t index, const char *key,
                                   pmix_value_t *value)
{
    struct facts facts;
    pmix_status_t rc = facts_of(fab, index, &facts);
    for (size_t i = 0; rc == PMIX_SUCCESS && i < N_ATTRIBUTES; i++)
        if (strcmp(key, attributes[i].key) == 0)
            return attributes[i].get(&facts, value);
    return rc == PMIX_SUCCESS ? PMIX_ERR_NOT_FOUND : rc;
}

pmix_status_t fab_device_value(const struct pmixfab *fab, uint32_t index, pmix_value_t *value)
{
    struct facts facts;
    size_t n = 0;
    pmix_status_t rc = facts_of(fab, index, &facts);
    if (rc == PMIX_SUCCESS)
        rc = fab_value_array(value, PMIX_INFO, N_ATTRIBUTES);
    if (rc != PMIX_SUCCESS)
        return rc;
    pmix_info_t *info = value->data.darray->array;
    for (size_t i = 0; i < N_ATTRIBUTES; i++) {
        rc = attributes[i].get(&facts, &info[n].value);
        if (rc == PMIX_SUCCESS) {
            PMIX_LOAD_KEY(info[n].key, attributes[i].key);
            n++;
        } else if (rc != PMIX_ERR_NOT_FOUND) {
            fab_value_free(value);
            return rc;
        }
    }
    value->data.darray->size = n; /* the id is always there: n > 0 */
    info[n - 1].flags |= PMIX_INFO_ARRAY_END;
    return PMIX_SUCCESS;
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
