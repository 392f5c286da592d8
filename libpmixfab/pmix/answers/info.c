#include "pmix/answers/info.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct shown_plane {
    const struct fab_info_source *source;
    struct pmixfab_plane plane;
};

/* Sets value->type and the data, which are from malloc(). */
typedef pmix_status_t (*value_fn)(const struct shown_plane *shown, pmix_value_t *value);

static bool info_is_physical(const struct shown_plane *shown)
{
    return shown->source->view == PMIXFAB_PHYSICAL;
}

static pmix_status_t value_dims(const struct shown_plane *shown, pmix_value_t *value)
{
    return fab_value_number(value, PMIX_UINT32,
                            info_is_physical(shown) ? shown->plane.physical_dims : shown->plane.dims);
}

static pmix_status_t value_shape(const struct shown_plane *shown, pmix_value_t *value)
{
    const uint32_t *shape = info_is_physical(shown) ? shown->plane.physical_shape : shown->plane.shape;
    uint32_t dims = info_is_physical(shown) ? shown->plane.physical_dims : shown->plane.dims;
    pmix_status_t rc = fab_value_array(value, PMIX_UINT32, dims);
    if (rc == PMIX_SUCCESS)
        memcpy(value->data.darray->array, shape, dims * sizeof(*shape));
    return rc;
}

static pmix_status_t value_shape_string(const struct shown_plane *shown, pmix_value_t *value)
{
    enum pmixfab_view view = info_is_physical(shown) ? PMIXFAB_PHYSICAL : PMIXFAB_LOGICAL;
    char text[64];
    if (pmixfab_shape_string(shown->source->fab, view, text, sizeof(text)) != PMIXFAB_OK)
        return PMIX_ERROR;
    return fab_value_string(value, text);
}

static pmix_status_t value_groups(const struct shown_plane *shown, pmix_value_t *value)
{
    value->type = PMIX_STRING;
    return pmixfab_groups_string(shown->source->fab, &value->data.string) == PMIXFAB_OK ? PMIX_SUCCESS
                                                                                        : PMIX_ERR_NOMEM;
}

static pmix_status_t value_path(const struct shown_plane *shown, pmix_value_t *value)
{
    return shown->source->path == NULL ? PMIX_ERR_NOT_FOUND : fab_value_string(value, shown->source->path);
}

static pmix_status_t value_matrix(const struct shown_plane *shown, pmix_value_t *value)
{
    if (shown->source->matrix == NULL)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_POINTER;
    value->data.ptr = (void *)shown->source->matrix;
    return PMIX_SUCCESS;
}

static pmix_status_t value_snapshot(const struct shown_plane *shown, pmix_value_t *value)
{
    const void *bytes;
    size_t size;
    if (pmixfab_bytes(shown->source->fab, &bytes, &size) != PMIXFAB_OK)
        return PMIX_ERROR;
    value->data.bo.bytes = malloc(size);
    if (value->data.bo.bytes == NULL)
        return PMIX_ERR_NOMEM;
    memcpy(value->data.bo.bytes, bytes, size);
    value->data.bo.size = size;
    value->type = PMIX_BYTE_OBJECT;
    return PMIX_SUCCESS;
}

/* A field of struct shown_plane, or a value that fn() makes. */
#define FIELD(type, field)                                                                                   \
    FAB_FIELD_TYPE(type, ((struct shown_plane *)NULL)->field), offsetof(struct shown_plane, field), NULL
#define MADE(fn) PMIX_UNDEF, 0, (fn)
static const struct plane_key {
    const char *key;
    pmix_data_type_t type;
    size_t offset;
    value_fn fn;
} keys[] = {
    {PMIX_FABRIC_VENDOR, FIELD(PMIX_STRING, plane.vendor)},
    {PMIX_FABRIC_IDENTIFIER, FIELD(PMIX_STRING, plane.identifier)},
    {PMIX_FABRIC_NUM_DEVICES, FIELD(PMIX_SIZE, plane.n_devices)},
    {PMIX_FABRIC_INDEX, FIELD(PMIX_SIZE, plane.index)},
    {PMIX_FABRIC_COST_MATRIX, MADE(value_matrix)},
    {PMIX_FABRIC_GROUPS, MADE(value_groups)},
    {PMIX_FABRIC_PLANE, FIELD(PMIX_STRING, plane.name)},
    {PMIX_FABRIC_DIMS, MADE(value_dims)},
    {PMIX_FABRIC_SHAPE, MADE(value_shape)},
    {PMIX_FABRIC_SHAPE_STRING, MADE(value_shape_string)},
    {PMIXFAB_KEY_GENERATION, FIELD(PMIX_UINT64, plane.generation)},
    {FAB_KEY_PUBLISHED, FIELD(PMIX_INT64, plane.published)},
    {PMIXFAB_KEY_SNAPSHOT_PATH, MADE(value_path)},
    {PMIXFAB_KEY_SNAPSHOT, MADE(value_snapshot)}, /* the last, because it may be left out */
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static const struct plane_key *info_find_key(const char *key)
{
    for (size_t i = 0; i < N_KEYS; i++)
        if (strcmp(key, keys[i].key) == 0)
            return &keys[i];
    return NULL;
}

pmix_status_t fab_info_value(const struct fab_info_source *source, const char *key, pmix_value_t *value)
{
    struct shown_plane shown = {.source = source};
    const struct plane_key *found = info_find_key(key);
    PMIX_VALUE_CONSTRUCT(value);
    if (found == NULL)
        return PMIX_ERR_NOT_FOUND;
    if (pmixfab_plane(source->fab, &shown.plane) != PMIXFAB_OK)
        return PMIX_ERR_BAD_PARAM;
    pmix_status_t rc = found->fn != NULL
                           ? found->fn(&shown, value)
                           : fab_value_field(value, found->type, (const char *)&shown + found->offset);
    if (rc != PMIX_SUCCESS)
        PMIX_VALUE_CONSTRUCT(value);
    return rc;
}

pmix_status_t fab_info_all(const struct fab_info_source *source, int with_bytes, pmix_info_t **info,
                           size_t *n)
{
    size_t last = with_bytes ? N_KEYS : N_KEYS - 1, count = 0;
    pmix_info_t *array;
    *info = NULL;
    *n = 0;
    PMIX_INFO_CREATE(array, last);
    if (array == NULL)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < last; i++) {
        pmix_status_t rc = fab_info_value(source, keys[i].key, &array[count].value);
        if (rc == PMIX_SUCCESS) {
            PMIX_LOAD_KEY(array[count].key, keys[i].key);
            count++;
        } else if (rc != PMIX_ERR_NOT_FOUND) {
            PMIX_INFO_FREE(array, last);
            return rc;
        }
    }
    array[count - 1].flags |= PMIX_INFO_ARRAY_END; /* vendor and other keys are always present: count > 0 */
    *info = array;
    *n = count;
    return PMIX_SUCCESS;
}
