/*
 * fuzz_relay.c - a scheduler's answers, as the library hands them over: whatever keys, types and arrays.
 *
 * Input: records of a key's number, a type and a length, and so many bytes for the value. What is accepted is
 * read as a client would.
 */
#include <pmix.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/info.h"
#include "pmix/relay/relay.h"

#define MAX_DATA 12

struct input {
    const uint8_t *p;
    size_t left;
};

static uint8_t next(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->p++;
}

static uint64_t number(struct input *in, unsigned bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | next(in);
    return value;
}

static char *string(struct input *in)
{
    size_t n = next(in) % 80;
    char *text = n == 79 ? NULL : calloc(1, n + 1);
    for (size_t i = 0; text != NULL && i < n; i++)
        text[i] = (char)(next(in) | 1);
    return text;
}

static pmix_data_array_t *array(struct input *in)
{
    static const pmix_data_type_t types[] = {PMIX_SIZE, PMIX_UINT64, PMIX_STRING};
    uint8_t kind = next(in);
    if (kind == 255)
        return NULL;
    pmix_data_array_t *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return NULL;
    made->type = types[kind % 3];
    made->size = next(in) % 9;
    made->array = (kind & 64) != 0 ? NULL : calloc(made->size + 1, sizeof(uint64_t));
    for (size_t i = 0; made->array != NULL && i < made->size; i++) {
        if (made->type == PMIX_STRING)
            ((char **)made->array)[i] = string(in);
        else
            ((uint64_t *)made->array)[i] = number(in, 2);
    }
    return made;
}

static void fill(struct input *in, pmix_pdata_t *data)
{
    static const char *const keys[] = {PMIX_FABRIC_INDEX,
                                       PMIX_FABRIC_VENDOR,
                                       PMIX_FABRIC_IDENTIFIER,
                                       PMIX_FABRIC_NUM_DEVICES,
                                       PMIXFAB_KEY_GENERATION,
                                       FAB_KEY_PUBLISHED,
                                       RELAY_INDICES,
                                       RELAY_GENERATIONS,
                                       RELAY_NAMES,
                                       PMIXFAB_KEY_SNAPSHOT,
                                       "",
                                       "another"};
    uint8_t key = next(in);
    PMIX_PDATA_CONSTRUCT(data);
    if (key == 255)
        memset(data->key, 'x', sizeof(data->key));
    else
        PMIX_LOAD_KEY(data->key, keys[key % (sizeof(keys) / sizeof(keys[0]))]);
    pmix_value_t *value = &data->value;
    switch (next(in) % 8) {
    case 0:
        value->type = PMIX_SIZE;
        value->data.size = number(in, 2);
        break;
    case 1:
        value->type = PMIX_STRING;
        value->data.string = string(in);
        break;
    case 2:
        value->type = PMIX_UINT64;
        value->data.uint64 = number(in, 8);
        break;
    case 3:
        value->type = PMIX_INT64;
        value->data.int64 = (int64_t)number(in, 8);
        break;
    case 4:
        value->type = PMIX_DATA_ARRAY;
        value->data.darray = array(in);
        break;
    case 5:
        value->type = PMIX_BYTE_OBJECT;
        value->data.bo.bytes = string(in);
        value->data.bo.size = value->data.bo.bytes == NULL ? next(in) : strlen(value->data.bo.bytes);
        break;
    case 6:
        value->type = PMIX_POINTER;
        break;
    default:
        break;
    }
}

/* As a consumer does it: by type, without another look. */
static size_t read_all(const pmix_info_t *info, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const pmix_value_t *value = &info[i].value;
        sum += strlen(info[i].key);
        if (value->type == PMIX_STRING)
            sum += strlen(value->data.string);
        else if (value->type == PMIX_BYTE_OBJECT)
            for (size_t k = 0; k < value->data.bo.size; k++)
                sum += (unsigned char)value->data.bo.bytes[k];
        else if (value->type == PMIX_DATA_ARRAY && value->data.darray->type == PMIX_STRING)
            for (size_t k = 0; k < value->data.darray->size; k++)
                sum += strlen(((char **)value->data.darray->array)[k]);
    }
    return sum;
}

static void check_news(const pmix_pdata_t *data, size_t n)
{
    struct relay_news news, nothing = {0};
    struct relay_plane *changed;
    uint32_t n_changed;
    if (relay_decode_news(data, n, &news) != PMIX_SUCCESS)
        return;
    if (relay_changed(&nothing, &news, &changed, &n_changed) == PMIXFAB_OK) {
        if (n_changed != news.n)
            abort();
        for (uint32_t i = 0; i < n_changed; i++)
            if (strlen(changed[i].name) >= sizeof(changed[i].name))
                abort();
        free(changed);
    }
    free(news.planes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static volatile size_t sink;
    struct input in = {bytes, size};
    pmix_pdata_t data[MAX_DATA];
    pmix_info_t *info;
    size_t n = 0, ninfo;
    const bool whole = next(&in) % 2 == 0;
    while (in.left > 0 && n < MAX_DATA)
        fill(&in, &data[n++]);
    check_news(data, n);
    if (relay_decode(data, n, whole, &info, &ninfo) == PMIX_SUCCESS) {
        sink = sink + read_all(info, ninfo);
        PMIX_INFO_FREE(info, ninfo);
    }
    for (size_t i = 0; i < n; i++) {
        pmix_data_array_t *left = data[i].value.type == PMIX_DATA_ARRAY ? data[i].value.data.darray : NULL;
        if (left != NULL && left->array == NULL)
            left->size = 0; /* the library's own destructor looks at the size first */
        PMIX_PDATA_DESTRUCT(&data[i]);
    }
    return 0;
}
