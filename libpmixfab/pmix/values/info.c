#include "pmix/values/info.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* In the order of an answer. The snapshot is the last: it is the one that may be left out. */
static const char *const keys[] = {
    PMIX_FABRIC_VENDOR,        PMIX_FABRIC_IDENTIFIER,   PMIX_FABRIC_NUM_DEVICES, PMIX_FABRIC_INDEX,
    PMIX_FABRIC_COST_MATRIX,   PMIX_FABRIC_GROUPS,       PMIX_FABRIC_PLANE,       PMIX_FABRIC_DIMS,
    PMIX_FABRIC_SHAPE,         PMIX_FABRIC_SHAPE_STRING, PMIXFAB_KEY_GENERATION,  FAB_KEY_PUBLISHED,
    PMIXFAB_KEY_SNAPSHOT_PATH, PMIXFAB_KEY_SNAPSHOT,
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static pmix_status_t info_number(pmix_value_t *value, pmix_data_type_t type, uint64_t number)
{
    value->type = type;
    if (type == PMIX_UINT32)
        value->data.uint32 = (uint32_t)number;
    else if (type == PMIX_SIZE)
        value->data.size = number;
    else if (type == PMIX_INT64)
        value->data.int64 = (int64_t)number;
    else
        value->data.uint64 = number;
    return PMIX_SUCCESS;
}

static pmix_status_t info_matrix(pmix_value_t *value, const uint16_t *matrix)
{
    value->type = PMIX_POINTER;
    value->data.ptr = (void *)matrix;
    return PMIX_SUCCESS;
}

static pmix_status_t info_groups(pmix_value_t *value, const struct pmixfab *fab)
{
    value->type = PMIX_STRING;
    return pmixfab_groups_string(fab, &value->data.string) == PMIXFAB_OK ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
}

static pmix_status_t info_shape(pmix_value_t *value, const uint32_t *shape, uint32_t dims)
{
    pmix_status_t rc = fab_value_array(value, PMIX_UINT32, dims);
    if (rc == PMIX_SUCCESS)
        memcpy(value->data.darray->array, shape, dims * sizeof(*shape));
    return rc;
}

static pmix_status_t info_shape_string(pmix_value_t *value, const struct pmixfab *fab, enum pmixfab_view view)
{
    char text[64];
    if (pmixfab_shape_string(fab, view, text, sizeof(text)) != PMIXFAB_OK)
        return PMIX_ERROR;
    return fab_value_string(value, text);
}

static pmix_status_t info_bytes(pmix_value_t *value, const struct pmixfab *fab)
{
    const void *bytes;
    size_t size;
    if (pmixfab_bytes(fab, &bytes, &size) != PMIXFAB_OK)
        return PMIX_ERROR;
    value->data.bo.bytes = malloc(size);
    if (value->data.bo.bytes == NULL)
        return PMIX_ERR_NOMEM;
    memcpy(value->data.bo.bytes, bytes, size);
    value->data.bo.size = size;
    value->type = PMIX_BYTE_OBJECT;
    return PMIX_SUCCESS;
}

/* Fills in value->type and its data; what it points at is malloc'ed. */
static pmix_status_t info_of_plane(const struct fab_info_source *source, const struct pmixfab_plane *plane,
                                   const char *key, pmix_value_t *value)
{
    const bool physical = source->view == PMIXFAB_PHYSICAL;
    const uint32_t dims = physical ? plane->physical_dims : plane->dims;
    if (strcmp(key, PMIX_FABRIC_VENDOR) == 0)
        return fab_value_string(value, plane->vendor);
    if (strcmp(key, PMIX_FABRIC_IDENTIFIER) == 0)
        return fab_value_string(value, plane->identifier);
    if (strcmp(key, PMIX_FABRIC_NUM_DEVICES) == 0)
        return info_number(value, PMIX_SIZE, plane->n_devices);
    if (strcmp(key, PMIX_FABRIC_INDEX) == 0)
        return info_number(value, PMIX_SIZE, plane->index);
    if (strcmp(key, PMIX_FABRIC_COST_MATRIX) == 0 && source->matrix != NULL)
        return info_matrix(value, source->matrix);
    if (strcmp(key, PMIX_FABRIC_GROUPS) == 0)
        return info_groups(value, source->fab);
    if (strcmp(key, PMIX_FABRIC_PLANE) == 0)
        return fab_value_string(value, plane->name);
    if (strcmp(key, PMIX_FABRIC_DIMS) == 0)
        return info_number(value, PMIX_UINT32, dims);
    if (strcmp(key, PMIX_FABRIC_SHAPE) == 0)
        return info_shape(value, physical ? plane->physical_shape : plane->shape, dims);
    if (strcmp(key, PMIX_FABRIC_SHAPE_STRING) == 0)
        return info_shape_string(value, source->fab, physical ? PMIXFAB_PHYSICAL : PMIXFAB_LOGICAL);
    if (strcmp(key, PMIXFAB_KEY_GENERATION) == 0)
        return info_number(value, PMIX_UINT64, plane->generation);
    if (strcmp(key, FAB_KEY_PUBLISHED) == 0)
        return info_number(value, PMIX_INT64, (uint64_t)plane->published);
    if (strcmp(key, PMIXFAB_KEY_SNAPSHOT_PATH) == 0 && source->path != NULL)
        return fab_value_string(value, source->path);
    if (strcmp(key, PMIXFAB_KEY_SNAPSHOT) == 0)
        return info_bytes(value, source->fab);
    return PMIX_ERR_NOT_FOUND;
}

pmix_status_t fab_info_value(const struct fab_info_source *source, const char *key, pmix_value_t *value)
{
    struct pmixfab_plane plane;
    PMIX_VALUE_CONSTRUCT(value);
    if (pmixfab_plane(source->fab, &plane) != PMIXFAB_OK)
        return PMIX_ERR_BAD_PARAM;
    pmix_status_t rc = info_of_plane(source, &plane, key, value);
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
        pmix_status_t rc = fab_info_value(source, keys[i], &array[count].value);
        if (rc == PMIX_SUCCESS) {
            PMIX_LOAD_KEY(array[count].key, keys[i]);
            count++;
        } else if (rc != PMIX_ERR_NOT_FOUND) {
            PMIX_INFO_FREE(array, last);
            return rc;
        }
    }
    array[count - 1].flags |= PMIX_INFO_ARRAY_END; /* vendor and the like are always there: count > 0 */
    *info = array;
    *n = count;
    return PMIX_SUCCESS;
}
