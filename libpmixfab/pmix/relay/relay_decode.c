/* relay_decode.c - check and decode a scheduler's answers. */
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/info.h"
#include "pmix/relay/relay.h"

/* ---- values ------------------------------------------------------------------------------------- */

static bool good_strings(const pmix_data_array_t *array)
{
    char **strings = array->array;
    for (size_t i = 0; i < array->size; i++)
        if (strings[i] == NULL)
            return false;
    return true;
}

/* Return whether every consumer can read it as its type says, without a null pointer. */
static bool good_value(const pmix_value_t *value)
{
    const pmix_data_array_t *array = NULL;
    switch (value->type) {
    case PMIX_UNDEF:
    case PMIX_POINTER: /* an address of another process */
        return false;
    case PMIX_STRING:
        return value->data.string != NULL;
    case PMIX_BYTE_OBJECT:
        return value->data.bo.bytes != NULL || value->data.bo.size == 0;
    case PMIX_COORD:
        return value->data.coord != NULL;
    case PMIX_GEOMETRY:
        return value->data.geometry != NULL;
    case PMIX_DATA_ARRAY:
        array = value->data.darray;
        if (array == NULL || (array->array == NULL && array->size > 0))
            return false;
        return array->type != PMIX_STRING || good_strings(array);
    default:
        return true;
    }
}

static bool good_key(const char *key)
{
    return key[0] != '\0' && memchr(key, '\0', PMIX_MAX_KEYLEN + 1) != NULL;
}

/* The keys that consumers rely on, with their types. */
static const struct {
    const char *key;
    pmix_data_type_t type;
} needed[] = {
    {PMIX_FABRIC_INDEX, PMIX_SIZE},        {PMIX_FABRIC_VENDOR, PMIX_STRING},
    {PMIX_FABRIC_IDENTIFIER, PMIX_STRING}, {PMIX_FABRIC_NUM_DEVICES, PMIX_SIZE},
    {PMIXFAB_KEY_GENERATION, PMIX_UINT64},
};
#define N_NEEDED (sizeof(needed) / sizeof(needed[0]))

/* Check that each needed key is there at most once and in its type; with `all`, that none is missing. */
static bool good_answer(const pmix_pdata_t *data, size_t n, bool all)
{
    size_t seen[N_NEEDED] = {0};
    for (size_t i = 0; i < n; i++) {
        if (!good_key(data[i].key) || !good_value(&data[i].value))
            return false;
        for (size_t k = 0; all && k < N_NEEDED; k++)
            if (strcmp(data[i].key, needed[k].key) == 0 &&
                (data[i].value.type != needed[k].type || ++seen[k] > 1))
                return false;
    }
    for (size_t k = 0; all && k < N_NEEDED; k++)
        if (seen[k] == 0)
            return false;
    return true;
}

pmix_status_t relay_decode(pmix_pdata_t *data, size_t n, bool whole, pmix_info_t **info, size_t *ninfo)
{
    pmix_info_t *array;
    *info = NULL;
    *ninfo = 0;
    if (data == NULL || n == 0 || !good_answer(data, n, whole))
        return PMIX_ERR_UNPACK_FAILURE;
    PMIX_INFO_CREATE(array, n);
    if (array == NULL)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        PMIX_LOAD_KEY(array[i].key, data[i].key);
        array[i].value = data[i].value;
        PMIX_VALUE_CONSTRUCT(&data[i].value);
    }
    *info = array;
    *ninfo = n;
    return PMIX_SUCCESS;
}

/* ---- subscriptions ---------------------------------------------------------------------------- */

static const pmix_value_t *pdata_find(const pmix_pdata_t *data, size_t n, const char *key,
                                      pmix_data_type_t type)
{
    for (size_t i = 0; i < n; i++)
        if (good_key(data[i].key) && strcmp(data[i].key, key) == 0)
            return data[i].value.type == type && good_value(&data[i].value) ? &data[i].value : NULL;
    return NULL;
}

static const pmix_data_array_t *find_array(const pmix_pdata_t *data, size_t n, const char *key,
                                           pmix_data_type_t type)
{
    const pmix_value_t *value = pdata_find(data, n, key, PMIX_DATA_ARRAY);
    return value != NULL && value->data.darray->type == type ? value->data.darray : NULL;
}

pmix_status_t relay_decode_news(const pmix_pdata_t *data, size_t n, struct relay_news *out)
{
    memset(out, 0, sizeof(*out));
    if (data == NULL)
        return PMIX_ERR_UNPACK_FAILURE;
    const pmix_value_t *generation = pdata_find(data, n, PMIXFAB_KEY_GENERATION, PMIX_UINT64);
    const pmix_value_t *published = pdata_find(data, n, FAB_KEY_PUBLISHED, PMIX_INT64);
    if (generation == NULL || published == NULL)
        return PMIX_ERR_UNPACK_FAILURE;
    out->generation = generation->data.uint64;
    out->published = published->data.int64;
    const pmix_value_t *stale = pdata_find(data, n, PMIXFAB_KEY_STALE, PMIX_BOOL);
    out->stale = stale != NULL && stale->data.flag;
    if (n == 2 + (size_t)(stale != NULL))
        return PMIX_SUCCESS; /* no plane is published */
    const pmix_data_array_t *indices = find_array(data, n, RELAY_INDICES, PMIX_SIZE);
    const pmix_data_array_t *generations = find_array(data, n, RELAY_GENERATIONS, PMIX_UINT64);
    const pmix_data_array_t *names = find_array(data, n, RELAY_NAMES, PMIX_STRING);
    if (indices == NULL || generations == NULL || names == NULL || indices->size != generations->size ||
        indices->size != names->size || indices->size > RELAY_MAX_PLANES)
        return PMIX_ERR_UNPACK_FAILURE;
    out->planes = calloc(indices->size + 1, sizeof(*out->planes));
    if (out->planes == NULL)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < indices->size; i++) {
        struct relay_plane *plane = &out->planes[out->n++];
        const char *name = ((char **)names->array)[i];
        plane->index = ((const size_t *)indices->array)[i];
        plane->generation = ((const uint64_t *)generations->array)[i];
        memcpy(plane->name, name, strnlen(name, sizeof(plane->name) - 1));
    }
    return PMIX_SUCCESS;
}

static const struct relay_plane *news_find_plane(const struct relay_news *news, size_t index)
{
    for (uint32_t i = 0; i < news->n; i++)
        if (news->planes[i].index == index)
            return &news->planes[i];
    return NULL;
}

int relay_changed(const struct relay_news *before, const struct relay_news *after, struct relay_plane **out,
                  uint32_t *n)
{
    *n = 0;
    *out = calloc((size_t)before->n + after->n + 1, sizeof(**out));
    if (*out == NULL)
        return PMIXFAB_ERR_NOMEM;
    /* another history with the same numbers: the scheduler lost its store */
    bool all = before->generation == after->generation && before->published != after->published;
    for (uint32_t i = 0; i < after->n; i++) {
        const struct relay_plane *old = news_find_plane(before, after->planes[i].index);
        if (all || old == NULL || old->generation != after->planes[i].generation)
            (*out)[(*n)++] = after->planes[i];
    }
    for (uint32_t i = 0; i < before->n; i++) {
        if (news_find_plane(after, before->planes[i].index) != NULL)
            continue;
        (*out)[*n] = before->planes[i];
        (*out)[(*n)++].generation = after->generation;
    }
    return PMIXFAB_OK;
}
