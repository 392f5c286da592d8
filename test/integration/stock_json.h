/*
 * stock_json.h - values of the PMIx library on standard output, as JSON: {"type": NAME, "value": ...}. An
 * array is
 * {"of": NAME, "elements": [...]}, of infos [[key, value], ...], since a key may come more than once.
 */
#ifndef TEST_STOCK_JSON_H
#define TEST_STOCK_JSON_H

#include <pmix_tool.h>
#include <stdio.h>

static inline void print_infos(const pmix_info_t *info, size_t n);

static inline void print_string(const char *text)
{
    if (text == NULL) {
        printf("null");
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++)
        printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('"');
}

static inline void print_coord(const pmix_coord_t *c)
{
    printf("{\"view\": %u, \"coord\": [", c->view);
    for (size_t d = 0; d < c->dims; d++)
        printf("%s%u", d > 0 ? ", " : "", c->coord[d]);
    printf("]}");
}

static inline void print_geometry(const pmix_geometry_t *g)
{
    printf("{\"fabric\": %zu, \"uuid\": ", g->fabric);
    print_string(g->uuid);
    printf(", \"osname\": ");
    print_string(g->osname);
    printf(", \"coordinates\": [");
    for (size_t i = 0; i < g->ncoords; i++) {
        printf("%s", i > 0 ? ", " : "");
        print_coord(&g->coordinates[i]);
    }
    printf("]}");
}

/* What an endpoint is, is text here. */
static inline void print_endpoint(const pmix_endpoint_t *endpoint)
{
    printf("{\"uuid\": ");
    print_string(endpoint->uuid);
    printf(", \"osname\": ");
    print_string(endpoint->osname);
    printf(", \"endpt\": ");
    print_string(endpoint->endpt.bytes);
    printf("}");
}

static inline void print_array(const pmix_data_array_t *array)
{
    printf("{\"of\": \"%s\", \"elements\": ", PMIx_Data_type_string(array->type));
    if (array->type == PMIX_INFO) {
        print_infos(array->array, array->size);
        printf("}");
        return;
    }
    printf("[");
    for (size_t i = 0; i < array->size; i++) {
        printf("%s", i > 0 ? ", " : "");
        if (array->type == PMIX_UINT32)
            printf("%u", ((uint32_t *)array->array)[i]);
        else if (array->type == PMIX_STRING)
            print_string(((char **)array->array)[i]);
        else if (array->type == PMIX_GEOMETRY)
            print_geometry(&((pmix_geometry_t *)array->array)[i]);
        else if (array->type == PMIX_ENDPOINT)
            print_endpoint(&((pmix_endpoint_t *)array->array)[i]);
        else if (array->type == PMIX_DATA_ARRAY)
            print_array(&((pmix_data_array_t *)array->array)[i]);
        else
            printf("null");
    }
    printf("]}");
}

static inline void print_value(const pmix_value_t *value)
{
    printf("{\"type\": \"%s\", \"value\": ", PMIx_Data_type_string(value->type));
    if (value->type == PMIX_STRING)
        print_string(value->data.string);
    else if (value->type == PMIX_SIZE)
        printf("%zu", value->data.size);
    else if (value->type == PMIX_UINT32)
        printf("%u", value->data.uint32);
    else if (value->type == PMIX_PROC_RANK)
        printf("%u", value->data.rank);
    else if (value->type == PMIX_UINT64)
        printf("%lu", (unsigned long)value->data.uint64);
    else if (value->type == PMIX_INT64)
        printf("%ld", (long)value->data.int64);
    else if (value->type == PMIX_LINK_STATE)
        printf("%u", value->data.linkstate);
    else if (value->type == PMIX_BYTE_OBJECT)
        printf("%zu", value->data.bo.size);
    else if (value->type == PMIX_COORD)
        print_coord(value->data.coord);
    else if (value->type == PMIX_GEOMETRY)
        print_geometry(value->data.geometry);
    else if (value->type == PMIX_DATA_ARRAY)
        print_array(value->data.darray);
    else
        printf("null");
    printf("}");
}

static inline void print_infos(const pmix_info_t *info, size_t n)
{
    printf("[");
    for (size_t i = 0; i < n; i++) {
        printf("%s[\"%s\", ", i > 0 ? ", " : "", info[i].key);
        print_value(&info[i].value);
        printf("]");
    }
    printf("]");
}

#endif
