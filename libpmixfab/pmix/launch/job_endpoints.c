/*
 * job_endpoints.c - assign a job's endpoints. On each node the job has the same numbers of a plane, for each
 * of its devices there. The first numbers belong to the node, the next numbers to its lowest rank, and so on.
 */
#include "pmix/launch/job_endpoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/value.h"
#include "pmix/launch/places.h"
#include "topo/model/model.h"

uint64_t fab_endpoints_needed(const struct fab_job_map *map, uint32_t per_process, uint32_t per_node)
{
    uint32_t *ranks = calloc((size_t)map->n_hosts + 1, sizeof(*ranks)), most = 0;
    for (uint32_t r = 0; ranks != NULL && r < map->n_ranks; r++)
        if (map->host_of[r] < map->n_hosts && ++ranks[map->host_of[r]] > most)
            most = ranks[map->host_of[r]];
    const bool failed = ranks == NULL;
    free(ranks);
    return failed ? UINT64_MAX : (uint64_t)most * per_process + per_node;
}

const char **fab_endpoints_planes(const struct fab_launch_job *job, uint32_t *n)
{
    const char **names = calloc((size_t)job->n_planes + 1, sizeof(*names));
    struct launch_places places;
    struct pmixfab_plane plane;
    *n = 0;
    const bool found = launch_places_find(job, &places) == PMIX_SUCCESS;
    for (uint32_t p = 0; names != NULL && found && p < job->n_planes; p++)
        for (uint32_t h = 0; h < job->n_hosts; h++)
            if (places.host[(size_t)h * job->n_planes + p] != FAB_NONE &&
                pmixfab_plane(job->planes[p], &plane) == PMIXFAB_OK) {
                names[(*n)++] = plane.name;
                break;
            }
    launch_places_free(&places);
    if (found)
        return names;
    free(names);
    return NULL;
}

char *fab_endpoints_text(const struct fab_blob *blob, const char *plane)
{
    char *text = NULL;
    size_t size;
    bool any = false;
    FILE *out = open_memstream(&text, &size);
    for (uint32_t i = 0; out != NULL && i < blob->n_endpoints; i++) {
        const struct fab_blob_endpoints *one = &blob->endpoints[i];
        if (strcmp(one->plane, plane) != 0)
            continue;
        fprintf(out, one->first == one->last ? "%s%u" : "%s%u-%u", any ? "," : "", one->first, one->last);
        any = true;
    }
    if (out != NULL && fclose(out) == 0 && any)
        return text;
    free(text);
    return NULL;
}

/*
 * ---- assignment -----------------------------------------------------------------------------------------
 */

/* The job's numbers of a plane: rows [first, end) of the blob. */
struct endpoints_rows {
    uint32_t first, end;
    uint64_t total;
};

/* The output in progress. */
struct endpoints_telling {
    const struct fab_launch_job *job;
    const struct fab_blob *blob;
    struct launch_places places;
    struct endpoints_rows *rows; /* of each plane of the job */
    bool elsewhere;
};

static void endpoints_find_rows(const struct fab_blob *blob, const struct pmixfab *fab,
                                struct endpoints_rows *out)
{
    struct pmixfab_plane plane;
    *out = (struct endpoints_rows){0};
    if (pmixfab_plane(fab, &plane) != PMIXFAB_OK)
        return;
    for (uint32_t i = 0; i < blob->n_endpoints; i++)
        if (strcmp(blob->endpoints[i].plane, plane.name) == 0) {
            if (out->total == 0)
                out->first = i;
            out->end = i + 1;
            out->total += (uint64_t)blob->endpoints[i].last - blob->endpoints[i].first + 1;
        }
}

static const struct endpoints_rows *endpoints_of(const struct endpoints_telling *t, const struct pmixfab *fab)
{
    uint32_t p = 0;
    while (t->job->planes[p] != fab)
        p++;
    return &t->rows[p];
}

/* Return the number at this position. */
static uint32_t endpoints_number(const struct fab_blob *blob, const struct endpoints_rows *rows, uint64_t at)
{
    uint32_t i = rows->first;
    for (uint64_t n; at >= (n = (uint64_t)blob->endpoints[i].last - blob->endpoints[i].first + 1); i++)
        at -= n;
    return blob->endpoints[i].first + (uint32_t)at;
}

static uint32_t endpoints_devices(const struct endpoints_telling *t, uint32_t host)
{
    struct launch_device at = {.host = host};
    uint32_t n = 0;
    while (launch_device_next(&t->places, &at))
        n += endpoints_of(t, at.fab)->total > 0;
    return n;
}

static pmix_status_t endpoint_make(const struct pmixfab_device *device, uint32_t number, pmix_endpoint_t *out)
{
    char text[16];
    const int length = snprintf(text, sizeof(text), "%u", number);
    out->uuid = strdup(device->id);
    out->osname = strdup(device->name);
    out->endpt.bytes = strdup(text);
    out->endpt.size = (size_t)length + 1;
    return out->uuid != NULL && out->osname != NULL && out->endpt.bytes != NULL ? PMIX_SUCCESS
                                                                                : PMIX_ERR_NOMEM;
}

/* Make a value of `count` numbers from this position on, for each device of the host. */
static pmix_status_t endpoints_value(const struct endpoints_telling *t, uint32_t host, uint64_t from,
                                     uint32_t count, pmix_value_t *value)
{
    struct launch_device at = {.host = host};
    struct pmixfab_device device;
    size_t n = 0;
    pmix_status_t rc = fab_value_array(value, PMIX_ENDPOINT, (size_t)endpoints_devices(t, host) * count);
    while (rc == PMIX_SUCCESS && launch_device_next(&t->places, &at)) {
        const struct endpoints_rows *rows = endpoints_of(t, at.fab);
        if (rows->total == 0)
            continue;
        if (pmixfab_device(at.fab, at.index, &device) != PMIXFAB_OK)
            rc = PMIX_ERR_BAD_PARAM;
        for (uint32_t k = 0; rc == PMIX_SUCCESS && k < count; k++)
            rc = endpoint_make(&device, endpoints_number(t->blob, rows, from + k),
                               (pmix_endpoint_t *)value->data.darray->array + n++);
    }
    return rc;
}

/* ---- output ------------------------------------------------------------------------------------------- */

static pmix_status_t endpoints_put_node(const struct endpoints_telling *t, uint32_t host,
                                        fab_launch_put_fn put, void *to)
{
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    pmix_status_t rc = fab_value_array(&value, PMIX_INFO, 2);
    if (rc == PMIX_SUCCESS) {
        pmix_info_t *infos = value.data.darray->array;
        PMIX_LOAD_KEY(infos[0].key, PMIX_HOSTNAME);
        PMIX_LOAD_KEY(infos[1].key, PMIX_FABRIC_ENDPT);
        rc = fab_value_string(&infos[0].value, t->job->hosts[host]);
        if (rc == PMIX_SUCCESS)
            rc = endpoints_value(t, host, 0, t->blob->per_node, &infos[1].value);
    }
    if (rc == PMIX_SUCCESS)
        rc = put(to, PMIX_RANK_WILDCARD, PMIX_NODE_INFO_ARRAY, &value);
    fab_value_free(&value);
    return rc;
}

static pmix_status_t endpoints_put_host(const struct endpoints_telling *t, uint32_t host,
                                        fab_launch_put_fn put, void *to)
{
    const struct fab_blob *blob = t->blob;
    pmix_status_t rc = PMIX_SUCCESS;
    pmix_value_t value;
    if (endpoints_devices(t, host) == 0 || (!t->elsewhere && host != t->job->here))
        return PMIX_SUCCESS;
    if (blob->per_node > 0)
        rc = endpoints_put_node(t, host, put, to);
    if (blob->per_process == 0)
        return rc;
    uint64_t from = blob->per_node;
    for (uint32_t r = t->places.first[host]; rc == PMIX_SUCCESS && r < t->places.first[host + 1]; r++) {
        PMIX_VALUE_CONSTRUCT(&value);
        rc = endpoints_value(t, host, from, blob->per_process, &value);
        if (rc == PMIX_SUCCESS)
            rc = put(to, t->places.ranks[r], PMIX_FABRIC_ENDPT, &value);
        fab_value_free(&value);
        from += blob->per_process;
    }
    return rc;
}

/*
 * Check that the job has as many endpoints as its ranks need. Also check whether there are so many that the
 * endpoints of other hosts are left out, or those of this host are rejected.
 */
static pmix_status_t endpoints_check(struct endpoints_telling *t)
{
    uint64_t all = 0, here = 0;
    for (uint32_t h = 0; h < t->job->n_hosts; h++) {
        const uint64_t ranks = t->places.first[h + 1] - t->places.first[h];
        const uint64_t needed = ranks * t->blob->per_process + t->blob->per_node;
        struct launch_device at = {.host = h};
        while (launch_device_next(&t->places, &at)) {
            const struct endpoints_rows *rows = endpoints_of(t, at.fab);
            if (rows->total > 0 && rows->total < needed)
                return PMIX_ERR_BAD_PARAM;
            all += rows->total > 0 ? needed : 0;
            here += rows->total > 0 && h == t->job->here ? needed : 0;
        }
    }
    t->elsewhere = all <= FAB_ENDPOINTS_ELSEWHERE;
    return here <= FAB_ENDPOINTS_HERE ? PMIX_SUCCESS : PMIX_ERR_OUT_OF_RESOURCE;
}

pmix_status_t fab_endpoints_tell(const struct fab_launch_job *job, const struct fab_blob *blob,
                                 fab_launch_put_fn put, void *to)
{
    struct endpoints_telling t = {.job = job, .blob = blob};
    pmix_status_t rc = launch_places_find(job, &t.places);
    t.rows = calloc((size_t)job->n_planes + 1, sizeof(*t.rows));
    if (rc == PMIX_SUCCESS && t.rows == NULL)
        rc = PMIX_ERR_NOMEM;
    for (uint32_t p = 0; rc == PMIX_SUCCESS && p < job->n_planes; p++)
        endpoints_find_rows(blob, job->planes[p], &t.rows[p]);
    if (rc == PMIX_SUCCESS)
        rc = endpoints_check(&t);
    for (uint32_t h = 0; rc == PMIX_SUCCESS && h < job->n_hosts; h++)
        rc = endpoints_put_host(&t, h, put, to);
    free(t.rows);
    launch_places_free(&t.places);
    return rc;
}
