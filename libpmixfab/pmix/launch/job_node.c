/* job_node.c - the keys of a node: its devices, their coordinates, its number and switches. */
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/device.h"
#include "pmix/answers/value.h"
#include "pmix/launch/places.h"
#include "topo/model/model.h"

#define SINGLE_DIMS 3 /* readers of a single coordinate expect: group, switch, port */

/* ---- coordinates ------------------------------------------------------------------------------------ */

/* Return the first device that is up; if none is, the first one. */
static bool node_first_device(const struct launch_places *places, uint32_t host, uint32_t *index)
{
    const struct pmixfab *fab = places->job->planes[places->plane];
    struct launch_device at = {.host = host};
    struct pmixfab_device device;
    bool any = false;
    while (launch_device_next(places, &at)) {
        if (at.fab != fab || pmixfab_device(fab, at.index, &device) != PMIXFAB_OK)
            continue;
        if (!any || device.state == PMIXFAB_STATE_UP)
            *index = at.index;
        if (device.state == PMIXFAB_STATE_UP)
            return true;
        any = true;
    }
    return any;
}

static pmix_status_t node_single(const struct launch_places *places, uint32_t host, pmix_value_t *value)
{
    const uint32_t *coords;
    uint32_t index, dims;
    if (!node_first_device(places, host, &index) ||
        pmixfab_coords(places->job->planes[places->plane], index, PMIXFAB_LOGICAL, &coords, &dims) !=
            PMIXFAB_OK ||
        dims != SINGLE_DIMS)
        return PMIX_ERR_NOT_FOUND;
    value->data.coord = calloc(1, sizeof(*value->data.coord));
    if (value->data.coord == NULL)
        return PMIX_ERR_NOMEM;
    value->type = PMIX_COORD;
    *value->data.coord = (pmix_coord_t){
        .view = PMIX_COORD_LOGICAL_VIEW, .dims = dims, .coord = malloc(dims * sizeof(*coords))};
    if (value->data.coord->coord == NULL)
        return PMIX_ERR_NOMEM;
    memcpy(value->data.coord->coord, coords, dims * sizeof(*coords));
    return PMIX_SUCCESS;
}

static pmix_status_t node_geometries(const struct launch_places *places, uint32_t host, pmix_value_t *value)
{
    struct launch_device at = {.host = host};
    pmix_status_t rc = fab_value_array(value, PMIX_GEOMETRY, launch_device_count(places, host));
    for (size_t i = 0; rc == PMIX_SUCCESS && launch_device_next(places, &at); i++)
        rc = fab_device_geometry(at.fab, at.index, 0, &((pmix_geometry_t *)value->data.darray->array)[i]);
    return rc;
}

static pmix_status_t node_coordinates(const struct launch_places *places, uint32_t host, pmix_value_t *value)
{
    return places->job->standard ? node_geometries(places, host, value) : node_single(places, host, value);
}

pmix_status_t launch_coordinates(const struct launch_places *places, pmix_value_t *value)
{
    const struct fab_launch_job *job = places->job;
    const struct pmixfab *fab = job->planes[places->plane];
    struct pmixfab_plane plane;
    const uint32_t *coords;
    uint32_t index, dims;
    if (pmixfab_plane(fab, &plane) != PMIXFAB_OK || plane.dims == 0)
        return PMIX_ERR_NOT_FOUND;
    pmix_status_t rc = fab_value_array(value, PMIX_UINT32, (size_t)plane.dims * job->n_ranks);
    if (rc != PMIX_SUCCESS)
        return rc;
    uint32_t *all = value->data.darray->array;
    memset(all, 0xff, sizeof(*all) * plane.dims * job->n_ranks);
    for (uint32_t h = 0; h < job->n_hosts; h++) {
        if (!node_first_device(places, h, &index) ||
            pmixfab_coords(fab, index, PMIXFAB_LOGICAL, &coords, &dims) != PMIXFAB_OK || dims != plane.dims)
            continue;
        for (uint32_t r = places->first[h]; r < places->first[h + 1]; r++)
            memcpy(all + (size_t)places->ranks[r] * dims, coords, dims * sizeof(*coords));
    }
    return PMIX_SUCCESS;
}

/* ---- devices and switches --------------------------------------------------------------------------- */

static pmix_status_t node_devices(const struct launch_places *places, uint32_t host, pmix_value_t *value)
{
    struct launch_device at = {.host = host};
    bool whole = host == places->job->here || places->devices <= FAB_LAUNCH_WHOLE_DEVICES;
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, launch_device_count(places, host));
    for (size_t i = 0; rc == PMIX_SUCCESS && launch_device_next(places, &at); i++) {
        pmix_info_t *info = (pmix_info_t *)value->data.darray->array + i;
        PMIX_LOAD_KEY(info->key, PMIX_FABRIC_DEVICE);
        rc = whole ? fab_device_value(at.fab, at.index, &info->value)
                   : fab_device_brief(at.fab, at.index, &info->value);
    }
    return rc;
}

static pmix_status_t node_number(const struct launch_places *places, uint32_t host, pmix_value_t *value)
{
    return fab_value_number(value, PMIX_SIZE, launch_device_count(places, host));
}

/* List each switch once, in the order of the devices. */
static pmix_status_t node_switches(const struct launch_places *places, uint32_t host, pmix_value_t *value)
{
    struct launch_device at = {.host = host};
    struct pmixfab_device device;
    struct pmixfab_switch one;
    uint32_t n = launch_device_count(places, host), k = 0;
    pmix_status_t rc = fab_value_array(value, PMIX_STRING, n);
    while (rc == PMIX_SUCCESS && launch_device_next(places, &at)) {
        char **ids = value->data.darray->array;
        uint32_t i = 0;
        if (pmixfab_device(at.fab, at.index, &device) != PMIXFAB_OK ||
            pmixfab_switch(at.fab, device.switch_index, &one) != PMIXFAB_OK)
            continue; /* cabled to another device, or without cable */
        while (i < k && strcmp(ids[i], one.id) != 0)
            i++;
        if (i == k && (ids[k++] = strdup(one.id)) == NULL)
            rc = PMIX_ERR_NOMEM;
    }
    if (rc != PMIX_SUCCESS)
        return rc;
    value->data.darray->size = k;
    return k > 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

/* ---- all keys ------------------------------------------------------------------------------------ */

static const struct {
    const char *key;
    pmix_status_t (*make)(const struct launch_places *places, uint32_t host, pmix_value_t *value);
} node_keys[] = {
    {PMIX_FABRIC_COORDINATES, node_coordinates},
    {PMIX_FABRIC_NUM_DEVICES, node_number},
    {PMIX_FABRIC_SWITCH, node_switches},
    {PMIX_FABRIC_DEVICES, node_devices}, /* the last: node_put_devices() */
};
#define N_NODE_KEYS (sizeof(node_keys) / sizeof(node_keys[0]))

static bool node_clashes(const struct fab_launch_job *job, uint32_t host)
{
    return job->clash != NULL && host != job->here && strcmp(job->hosts[host], job->clash) == 0;
}

/* Make an array of the name, the number of a host that clashes, and the known keys. */
static pmix_status_t node_array(const struct launch_places *places, uint32_t host, pmix_value_t *value)
{
    size_t n = 1;
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, N_NODE_KEYS + 2);
    if (rc != PMIX_SUCCESS)
        return rc;
    pmix_info_t *infos = value->data.darray->array;
    PMIX_LOAD_KEY(infos[0].key, PMIX_HOSTNAME);
    rc = fab_value_string(&infos[0].value, places->job->hosts[host]);
    if (rc == PMIX_SUCCESS && node_clashes(places->job, host)) {
        PMIX_LOAD_KEY(infos[n].key, PMIX_NODEID);
        rc = fab_value_number(&infos[n++].value, PMIX_UINT32, FAB_LAUNCH_NODE);
    }
    for (size_t i = 0; rc == PMIX_SUCCESS && i < N_NODE_KEYS; i++) {
        rc = node_keys[i].make(places, host, &infos[n].value);
        if (rc == PMIX_SUCCESS) {
            PMIX_LOAD_KEY(infos[n].key, node_keys[i].key);
            n++;
        } else {
            fab_value_free(&infos[n].value);
        }
        if (rc == PMIX_ERR_NOT_FOUND)
            rc = PMIX_SUCCESS;
    }
    infos[N_NODE_KEYS + 1].flags = 0;
    infos[n - 1].flags = PMIX_INFO_ARRAY_END;
    value->data.darray->size = n;
    return rc;
}

/* Put the keys at the ranks of this host, too: the library does not search their node. */
static pmix_status_t node_put_ranks(const struct launch_places *places, uint32_t host,
                                    const pmix_data_array_t *node, fab_launch_put_fn put, void *to)
{
    uint32_t first = places->first[host], end = places->first[host + 1];
    bool small = (uint64_t)(end - first) * launch_device_count(places, host) <= FAB_LAUNCH_RANK_DEVICES;
    pmix_info_t *infos = node->array;
    pmix_status_t rc = PMIX_SUCCESS;
    for (uint32_t r = first; r < end; r++)
        for (size_t i = 1; rc == PMIX_SUCCESS && i < node->size; i++)
            if (small || strcmp(infos[i].key, PMIX_FABRIC_DEVICES) != 0)
                rc = put(to, places->ranks[r], infos[i].key, &infos[i].value);
    return rc;
}

/* Put each device under its id, for requests of PMIX_FABRIC_DEVICE with the id as qualifier. */
static pmix_status_t node_put_devices(const pmix_data_array_t *node, fab_launch_put_fn put, void *to)
{
    const pmix_info_t *last = (const pmix_info_t *)node->array + node->size - 1;
    pmix_info_t pair[2];
    pmix_data_array_t both = {.type = PMIX_INFO, .size = 2, .array = pair};
    pmix_value_t value = {.type = PMIX_DATA_ARRAY, .data.darray = &both};
    pmix_status_t rc = PMIX_SUCCESS;
    memset(pair, 0, sizeof(pair));
    PMIX_LOAD_KEY(pair[0].key, PMIX_FABRIC_DEVICE);
    PMIX_LOAD_KEY(pair[1].key, PMIX_DEVICE_ID);
    pair[1].flags = PMIX_INFO_QUALIFIER | PMIX_INFO_ARRAY_END;
    const pmix_data_array_t *devices =
        PMIX_CHECK_KEY(last, PMIX_FABRIC_DEVICES) ? last->value.data.darray : &(pmix_data_array_t){.size = 0};
    for (size_t i = 0; rc == PMIX_SUCCESS && i < devices->size; i++) {
        pair[0].value = ((pmix_info_t *)devices->array)[i].value;
        pair[1].value = ((pmix_info_t *)pair[0].value.data.darray->array)[0].value;
        rc = put(to, PMIX_RANK_WILDCARD, PMIX_QUALIFIED_VALUE, &value);
    }
    return rc;
}

static pmix_status_t node_put(const struct launch_places *places, uint32_t host, bool devices,
                              fab_launch_put_fn put, void *to)
{
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    pmix_status_t rc = node_array(places, host, &value);
    if (rc == PMIX_SUCCESS)
        rc = put(to, PMIX_RANK_WILDCARD, PMIX_NODE_INFO_ARRAY, &value);
    if (rc == PMIX_SUCCESS && host == places->job->here)
        rc = node_put_ranks(places, host, value.data.darray, put, to);
    if (rc == PMIX_SUCCESS && devices)
        rc = node_put_devices(value.data.darray, put, to);
    fab_value_free(&value);
    return rc;
}

pmix_status_t launch_put_nodes(const struct launch_places *places, fab_launch_put_fn put, void *to)
{
    const struct fab_launch_job *job = places->job;
    pmix_status_t rc = PMIX_SUCCESS;
    for (uint32_t h = 0; rc == PMIX_SUCCESS && h < job->n_hosts; h++) {
        uint32_t n = launch_device_count(places, h);
        bool devices = places->devices <= FAB_LAUNCH_DEVICES || (h == job->here && n <= FAB_LAUNCH_DEVICES);
        if (n > 0)
            rc = node_put(places, h, devices, put, to);
    }
    return rc;
}
