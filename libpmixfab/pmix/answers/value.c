#include "pmix/answers/value.h"

#include <stdlib.h>
#include <string.h>

pmix_status_t fab_value_string(pmix_value_t *value, const char *text)
{
    value->data.string = strdup(text);
    value->type = value->data.string == NULL ? PMIX_UNDEF : PMIX_STRING;
    return value->data.string == NULL ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
}

pmix_status_t fab_value_number(pmix_value_t *value, pmix_data_type_t type, uint64_t number)
{
    value->type = type;
    switch (type) {
    case PMIX_UINT32:
        value->data.uint32 = (uint32_t)number;
        return PMIX_SUCCESS;
    case PMIX_SIZE:
        value->data.size = number;
        return PMIX_SUCCESS;
    case PMIX_UINT64:
        value->data.uint64 = number;
        return PMIX_SUCCESS;
    case PMIX_INT64:
        value->data.int64 = (int64_t)number;
        return PMIX_SUCCESS;
    default:
        value->type = PMIX_UNDEF;
        return PMIX_ERR_BAD_PARAM;
    }
}

pmix_status_t fab_value_field(pmix_value_t *value, pmix_data_type_t type, const void *field)
{
    if (type == PMIX_STRING)
        return fab_value_string(value, *(const char *const *)field);
    if (type == PMIX_UINT64 || type == PMIX_INT64)
        return fab_value_number(value, type, *(const uint64_t *)field);
    return fab_value_number(value, type, *(const uint32_t *)field);
}

/* Return the size of an element; 0: not a type of the arrays made here. */
static size_t size_of(pmix_data_type_t type)
{
    static const size_t sizes[] = {
        [PMIX_UINT32] = sizeof(uint32_t),          [PMIX_STRING] = sizeof(char *),
        [PMIX_INFO] = sizeof(pmix_info_t),         [PMIX_GEOMETRY] = sizeof(pmix_geometry_t),
        [PMIX_ENDPOINT] = sizeof(pmix_endpoint_t), [PMIX_DATA_ARRAY] = sizeof(pmix_data_array_t)};
    return type < sizeof(sizes) / sizeof(sizes[0]) ? sizes[type] : 0;
}

pmix_status_t fab_value_array(pmix_value_t *value, pmix_data_type_t type, size_t n)
{
    size_t size = size_of(type);
    if (size == 0)
        return PMIX_ERR_BAD_PARAM;
    pmix_data_array_t *array = malloc(sizeof(*array));
    void *elements = calloc(n > 0 ? n : 1, size);
    if (array == NULL || elements == NULL) {
        free(array);
        free(elements);
        return PMIX_ERR_NOMEM;
    }
    *array = (pmix_data_array_t){.type = type, .size = n, .array = elements};
    if (type == PMIX_INFO && n > 0)
        ((pmix_info_t *)elements)[n - 1].flags |= PMIX_INFO_ARRAY_END;
    value->type = PMIX_DATA_ARRAY;
    value->data.darray = array;
    return PMIX_SUCCESS;
}

static void geometry_free(pmix_geometry_t *geometry)
{
    for (size_t i = 0; geometry->coordinates != NULL && i < geometry->ncoords; i++)
        free(geometry->coordinates[i].coord);
    free(geometry->coordinates);
    free(geometry->uuid);
    free(geometry->osname);
}

static void endpoint_free(pmix_endpoint_t *endpoint)
{
    free(endpoint->uuid);
    free(endpoint->osname);
    free(endpoint->endpt.bytes);
}

/* The depth is that of the values made here: arrays of planes of infos of arrays. */
// NOLINTNEXTLINE(misc-no-recursion)
static void elements_free(pmix_data_array_t *array)
{
    for (size_t i = 0; array->array != NULL && i < array->size; i++) {
        if (array->type == PMIX_STRING)
            free(((char **)array->array)[i]);
        else if (array->type == PMIX_INFO)
            fab_value_free(&((pmix_info_t *)array->array)[i].value);
        else if (array->type == PMIX_GEOMETRY)
            geometry_free(&((pmix_geometry_t *)array->array)[i]);
        else if (array->type == PMIX_ENDPOINT)
            endpoint_free(&((pmix_endpoint_t *)array->array)[i]);
        else if (array->type == PMIX_PROC_INFO)
            PMIX_PROC_INFO_DESTRUCT(&((pmix_proc_info_t *)array->array)[i]);
        else if (array->type == PMIX_DATA_ARRAY)
            elements_free(&((pmix_data_array_t *)array->array)[i]);
    }
    free(array->array);
}

// NOLINTNEXTLINE(misc-no-recursion)
void fab_value_free(pmix_value_t *value)
{
    if (value->type == PMIX_STRING) {
        free(value->data.string);
    } else if (value->type == PMIX_BYTE_OBJECT) {
        free(value->data.bo.bytes);
    } else if (value->type == PMIX_COORD && value->data.coord != NULL) {
        free(value->data.coord->coord);
        free(value->data.coord);
    } else if (value->type == PMIX_GEOMETRY && value->data.geometry != NULL) {
        geometry_free(value->data.geometry);
        free(value->data.geometry);
    } else if (value->type == PMIX_DATA_ARRAY && value->data.darray != NULL) {
        elements_free(value->data.darray);
        free(value->data.darray);
    }
    memset(value, 0, sizeof(*value));
}

void fab_infos_free(pmix_info_t *info, size_t n)
{
    for (size_t i = 0; info != NULL && i < n; i++)
        fab_value_free(&info[i].value);
    free(info);
}
