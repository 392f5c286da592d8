#include "pmix/answers/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmix/answers/device.h"
#include "topo/model/host_name.h"

/* A request, and the planes that it concerns: the default one first, then by index. */
struct question {
    const char *key;
    struct fab_request request;
    const struct fab_answer_plane **planes;
    const struct fab_answer_set *set;
    uint32_t n;
};

const struct fab_answer_plane *answer_default(const struct fab_answer_set *set)
{
    const struct fab_answer_plane *found = NULL; /* of several the newest */
    for (uint32_t i = 0; i < set->n; i++)
        if (set->planes[i].info.is_default &&
            (found == NULL || set->planes[i].info.generation > found->info.generation))
            found = &set->planes[i];
    return found != NULL || set->n == 0 ? found : &set->planes[0];
}

const struct fab_answer_plane *answer_find(const struct fab_answer_set *set, uint32_t index)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (set->planes[i].info.index == index)
            return &set->planes[i];
    return NULL;
}

const struct fab_answer_plane *answer_plane(const struct fab_answer_set *set,
                                            const struct fab_request *request)
{
    const struct fab_answer_plane *plane = answer_default(set);
    if (plane != NULL && fab_request_selects(request, plane->fab))
        return plane;
    for (uint32_t i = 0; i < set->n; i++)
        if (fab_request_selects(request, set->planes[i].fab))
            return &set->planes[i];
    return NULL;
}

static struct fab_info_source source_of(const struct question *q, uint32_t i)
{
    return (struct fab_info_source){
        .fab = q->planes[i]->fab, .path = q->planes[i]->path, .view = q->request.view};
}

/* ---- planes and switches ----------------------------------------------------------------------------- */

/* PMIX_FABRIC_PLANE: without a selected plane the names of all planes, else the plane's name. */
static pmix_status_t get_planes(const struct question *q, pmix_value_t *value)
{
    if (!fab_request_empty(&q->request))
        return fab_value_string(value, q->planes[0]->info.name);
    pmix_status_t rc = fab_value_array(value, PMIX_STRING, q->n);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < q->n; i++)
        if ((((char **)value->data.darray->array)[i] = strdup(q->planes[i]->info.name)) == NULL)
            rc = PMIX_ERR_NOMEM;
    return rc;
}

static pmix_status_t get_switches(const struct question *q, pmix_value_t *value)
{
    struct pmixfab_switch one;
    uint32_t n = 0, k = 0;
    for (uint32_t i = 0; i < q->n; i++)
        n += q->planes[i]->info.n_switches;
    pmix_status_t rc = fab_value_array(value, PMIX_STRING, n);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < q->n; i++)
        for (uint32_t s = 0; rc == PMIX_SUCCESS && k < n; s++, k++) {
            if (pmixfab_switch(q->planes[i]->fab, s, &one) != PMIXFAB_OK)
                break;
            if ((((char **)value->data.darray->array)[k] = strdup(one.id)) == NULL)
                rc = PMIX_ERR_NOMEM;
        }
    return rc;
}

/* For the daemon as a whole: whether it serves old data. */
static pmix_status_t get_stale(const struct question *q, pmix_value_t *value)
{
    if (q->set->stale < 0)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_BOOL;
    value->data.flag = q->set->stale > 0;
    return PMIX_SUCCESS;
}

static pmix_status_t of_one_plane(const struct question *q, uint32_t i, pmix_value_t *value)
{
    const struct fab_info_source source = source_of(q, i);
    return fab_info_value(&source, q->key, value);
}

/* PMIX_FABRIC_DIMS of one plane is a number, of all planes an array of numbers. */
static pmix_status_t get_dims(const struct question *q, pmix_value_t *value)
{
    if (!fab_request_empty(&q->request))
        return of_one_plane(q, 0, value);
    pmix_status_t rc = fab_value_array(value, PMIX_UINT32, q->n);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < q->n; i++) {
        pmix_value_t one;
        rc = of_one_plane(q, i, &one);
        ((uint32_t *)value->data.darray->array)[i] = one.data.uint32;
    }
    return rc;
}

static pmix_status_t plane_and_shape(const struct question *q, uint32_t i, pmix_value_t *value)
{
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, 2);
    if (rc != PMIX_SUCCESS)
        return rc;
    pmix_info_t *info = value->data.darray->array;
    PMIX_LOAD_KEY(info[0].key, PMIX_FABRIC_PLANE);
    PMIX_LOAD_KEY(info[1].key, q->key);
    rc = fab_value_string(&info[0].value, q->planes[i]->info.name);
    return rc == PMIX_SUCCESS ? of_one_plane(q, i, &info[1].value) : rc;
}

/*
 * PMIX_FABRIC_SHAPE and _SHAPE_STRING of all planes: an array of arrays of two, plane and shape. Each of them
 * is in a pmix_info_t of the requested key: PMIx 4.2.2 crashes when it receives an array whose elements are
 * bare arrays.
 */
static pmix_status_t get_shape(const struct question *q, pmix_value_t *value)
{
    if (!fab_request_empty(&q->request))
        return of_one_plane(q, 0, value);
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, q->n);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < q->n; i++) {
        pmix_info_t *info = (pmix_info_t *)value->data.darray->array + i;
        PMIX_LOAD_KEY(info->key, q->key);
        rc = plane_and_shape(q, i, &info->value);
    }
    return rc;
}

/* Append a plane's groups, numbered from 0, after those of other planes. *n: the number of groups so far. */
static pmix_status_t append_groups(const struct pmixfab *fab, FILE *to, unsigned *n)
{
    char *text, *rest, *group;
    if (pmixfab_groups_string(fab, &text) != PMIXFAB_OK)
        return PMIX_ERR_NOMEM;
    for (group = strtok_r(text, ";", &rest); group != NULL; group = strtok_r(NULL, ";", &rest), ++*n)
        fprintf(to, "%s%u%s", *n == 0 ? "" : ";", *n, group + strcspn(group, ":"));
    free(text);
    return PMIX_SUCCESS;
}

/* PMIX_FABRIC_GROUPS: of one plane; else of the whole system, numbered consecutively. */
static pmix_status_t get_groups(const struct question *q, pmix_value_t *value)
{
    pmix_status_t rc = PMIX_SUCCESS;
    unsigned n = 0;
    size_t size;
    if (!fab_request_empty(&q->request))
        return of_one_plane(q, 0, value);
    value->type = PMIX_STRING;
    FILE *to = open_memstream(&value->data.string, &size);
    if (to == NULL)
        return PMIX_ERR_NOMEM;
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < q->n; i++)
        rc = append_groups(q->planes[i]->fab, to, &n);
    return fclose(to) == 0 ? rc : PMIX_ERR_NOMEM;
}

/* ---- devices ----------------------------------------------------------------------------------------- */

static uint32_t question_count(const struct question *q)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->n; i++)
        n += fab_device_count(q->planes[i]->fab, &q->request);
    return n;
}

static bool has_condition(const struct fab_request *r)
{
    return r->hostname != NULL || r->has_nodeid || r->device_id != NULL || r->device_name != NULL ||
           r->has_device_index || r->switch_id != NULL;
}

/* PMIX_FABRIC_NUM_DEVICES: of one plane; on a switch or a node; else of the whole system. */
static pmix_status_t get_number(const struct question *q, pmix_value_t *value)
{
    if (!has_condition(&q->request) && !fab_request_empty(&q->request))
        return of_one_plane(q, 0, value);
    value->type = PMIX_SIZE;
    value->data.size = question_count(q);
    return value->data.size == 0 ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS;
}

static pmix_status_t get_devices(const struct question *q, pmix_value_t *value)
{
    size_t at = 0;
    uint32_t n = question_count(q);
    if (n == 0)
        return PMIX_ERR_NOT_FOUND;
    pmix_status_t rc = fab_value_array(value, PMIX_INFO, n);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < q->n; i++)
        rc = fab_devices_fill(q->planes[i]->fab, &q->request, value->data.darray, &at);
    return rc;
}

static pmix_status_t question_coordinates(const struct question *q, pmix_value_t *value)
{
    uint32_t n = question_count(q), k = 0;
    if (n == 0)
        return PMIX_ERR_NOT_FOUND;
    pmix_status_t rc = fab_value_array(value, PMIX_GEOMETRY, n);
    for (uint32_t i = 0; rc == PMIX_SUCCESS && i < q->n; i++) {
        struct fab_device_walk walk;
        uint32_t index;
        fab_device_walk(q->planes[i]->fab, &q->request, &walk);
        while (rc == PMIX_SUCCESS && k < n && fab_device_next(&walk, &index)) {
            pmix_geometry_t *geometry = value->data.darray->array;
            rc = fab_device_geometry(walk.fab, index, q->request.view, &geometry[k++]);
        }
    }
    return rc;
}

/* Find the device that the request names, in the first plane that has it. */
static const struct pmixfab *find_device(const struct question *q, uint32_t *index)
{
    for (uint32_t i = 0; i < q->n; i++) {
        struct fab_device_walk walk;
        fab_device_walk(q->planes[i]->fab, &q->request, &walk);
        if (fab_device_next(&walk, index))
            return walk.fab;
    }
    return NULL;
}

/* PMIX_FABRIC_DEVICE, or an attribute of one device as a key of its own. */
static pmix_status_t get_device(const struct question *q, pmix_value_t *value)
{
    uint32_t index = 0;
    if (!fab_request_names_device(&q->request))
        return PMIX_ERR_BAD_PARAM;
    const struct pmixfab *fab = find_device(q, &index);
    if (fab == NULL)
        return PMIX_ERR_NOT_FOUND;
    if (strcmp(q->key, PMIX_FABRIC_DEVICE) == 0)
        return fab_device_value(fab, index, value);
    return fab_device_attribute(fab, index, q->key, value);
}

/*
 * ---- key to function ------------------------------------------------------------------------------------
 */

typedef pmix_status_t (*key_fn)(const struct question *q, pmix_value_t *value);
#define OF_DEVICES (FAB_HEEDS_CONDITIONS | FAB_HEEDS_NODE)

/*
 * Keys that are not a value of one plane. `local`: without a node, a switch or a device the key is about this
 * node. `heeds`: the supported ones of the conditions that may be required (pmix/answers/request.h). Other
 * keys are those of a plane or a device in pmix/answers/info.c and pmix/answers/device_attributes.c.
 */
static const struct {
    const char *key;
    key_fn fn;
    bool local, large;
    unsigned heeds;
} keys[] = {
    {PMIXFAB_KEY_STALE, get_stale, false, false, 0},
    {PMIX_FABRIC_PLANE, get_planes, false, false, 0},
    {PMIX_FABRIC_SWITCH, get_switches, false, true, 0},
    {PMIX_FABRIC_DIMS, get_dims, false, false, FAB_HEEDS_VIEW},
    {PMIX_FABRIC_SHAPE, get_shape, false, false, FAB_HEEDS_VIEW},
    {PMIX_FABRIC_SHAPE_STRING, get_shape, false, false, FAB_HEEDS_VIEW},
    {PMIX_FABRIC_GROUPS, get_groups, false, true, 0},
    {PMIX_FABRIC_NUM_DEVICES, get_number, false, false, OF_DEVICES},
    {PMIX_FABRIC_DEVICES, get_devices, true, true, OF_DEVICES},
    {PMIX_FABRIC_COORDINATES, question_coordinates, true, true, OF_DEVICES | FAB_HEEDS_VIEW},
    {FAB_KEY_COORDINATES, question_coordinates, true, true, OF_DEVICES | FAB_HEEDS_VIEW},
    {PMIX_FABRIC_DEVICE, get_device, false, false, FAB_HEEDS_CONDITIONS},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static size_t question_find_key(const char *key)
{
    size_t i = 0;
    while (i < N_KEYS && strcmp(key, keys[i].key) != 0)
        i++;
    return i;
}

bool answer_is_large(const char *key)
{
    size_t i = question_find_key(key);
    return (i < N_KEYS && keys[i].large) || strcmp(key, PMIXFAB_KEY_SNAPSHOT) == 0;
}

/* Return whether this key, with these conditions, is about this host. */
static bool answer_is_local(const char *key, const struct fab_request *request)
{
    size_t i = question_find_key(key);
    return i < N_KEYS && (keys[i].local || request->node) && !has_condition(request);
}

/* Find a host in the snapshots, which may have its name with or without a domain. */
static struct fab_host_choice choose_host(const struct question *q, const char *host)
{
    struct fab_host_choice choice = {0};
    const char *name;
    uint32_t first, n;
    for (uint32_t i = 0; i < q->n && !choice.exact; i++)
        for (uint32_t h = 0;
             !choice.exact && pmixfab_host(q->planes[i]->fab, h, &name, &first, &n) == PMIXFAB_OK; h++)
            fab_choose_host(&choice, host, name);
    return choice;
}

static pmix_status_t name_this_host(struct question *q)
{
    static char system_name[256];
    const char *host = q->set->host;
    if (host == NULL && gethostname(system_name, sizeof(system_name) - 1) == 0)
        host = system_name;
    if (host == NULL)
        return PMIX_ERR_NOT_FOUND;
    q->request.hostname = host;
    const struct fab_host_choice choice = choose_host(q, host);
    if (choice.host != NULL)
        q->request.hostname = choice.host;
    return PMIX_SUCCESS;
}

static bool of_one_device(const char *key, const struct fab_request *request)
{
    return fab_request_names_device(request) && fab_device_knows(key);
}

bool answer_heeds(const char *key, const struct fab_request *request)
{
    size_t i = question_find_key(key);
    return !fab_request_refused(request, of_one_device(key, request) ? FAB_HEEDS_CONDITIONS
                                         : i < N_KEYS                ? keys[i].heeds
                                                                     : 0);
}

static pmix_status_t question_dispatch(struct question *q, pmix_value_t *value)
{
    size_t i = question_find_key(q->key);
    if (of_one_device(q->key, &q->request))
        return get_device(q, value);
    if (i < N_KEYS) {
        pmix_status_t rc = answer_is_local(q->key, &q->request) ? name_this_host(q) : PMIX_SUCCESS;
        return rc == PMIX_SUCCESS ? keys[i].fn(q, value) : rc;
    }
    return fab_device_knows(q->key) ? PMIX_ERR_BAD_PARAM : of_one_plane(q, 0, value);
}

pmix_status_t answer_key(const struct fab_answer_set *set, const struct fab_request *request, const char *key,
                         pmix_value_t *value)
{
    memset(value, 0, sizeof(*value));
    if (!answer_heeds(key, request))
        return PMIX_ERR_NOT_SUPPORTED;
    const struct fab_answer_plane *first = answer_plane(set, request);
    if (first == NULL)
        return PMIX_ERR_NOT_FOUND;
    struct question q = {
        .key = key, .request = *request, .set = set, .planes = calloc(set->n, sizeof(*q.planes))};
    if (q.planes == NULL)
        return PMIX_ERR_NOMEM;
    q.planes[q.n++] = first;
    for (uint32_t i = 0; i < set->n; i++)
        if (&set->planes[i] != first && fab_request_selects(request, set->planes[i].fab))
            q.planes[q.n++] = &set->planes[i];
    if (request->hostname != NULL) {
        const struct fab_host_choice choice = choose_host(&q, request->hostname);
        if (choice.host != NULL && !choice.several) /* an ambiguous host gets no answer */
            q.request.hostname = choice.host;
    }
    pmix_status_t rc = question_dispatch(&q, value);
    free(q.planes);
    if (rc != PMIX_SUCCESS)
        fab_value_free(value);
    return rc;
}
