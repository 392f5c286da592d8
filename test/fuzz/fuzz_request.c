/*
 * Any bytes at all as a fabric request or a query: keys, types and values that a caller's library may have
 * put together. Each is answered exactly once, at once; with infos that can be walked, or with an error of
 * the standard.
 */
#include <stdlib.h>
#include <string.h>

#include "fabricd/server/server_answers.h"
#include "pmix/answers/info.h"
#include "pmix/answers/request.h"
#include "test/unit/served_small.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const keys[] = {
    PMIX_FABRIC_PLANE,
    PMIX_FABRIC_VENDOR,
    PMIX_FABRIC_IDENTIFIER,
    PMIX_FABRIC_INDEX,
    PMIX_FABRIC_SWITCH,
    PMIX_HOSTNAME,
    PMIX_NODEID,
    PMIX_DEVICE_ID,
    PMIX_FABRIC_DEVICE_NAME,
    PMIX_FABRIC_DEVICE_INDEX,
    PMIX_FABRIC_DEVICES,
    PMIX_FABRIC_DEVICE,
    FAB_KEY_VIEW,
    PMIX_FABRIC_COORDINATES,
    FAB_KEY_COORDINATES,
    PMIX_FABRIC_DIMS,
    PMIX_FABRIC_SHAPE,
    PMIX_FABRIC_SHAPE_STRING,
    PMIX_FABRIC_GROUPS,
    PMIX_FABRIC_NUM_DEVICES,
    PMIXFAB_KEY_SNAPSHOT,
    PMIX_FABRIC_DEVICE_SPEED,
    PMIX_FABRIC_DEVICE_STATE,
    PMIX_FABRIC_COST_MATRIX,
    PMIX_FABRIC_DEVICE_BUS_TYPE,
    PMIX_TIMEOUT,
    PMIX_QUERY_REFRESH_CACHE,
    PMIX_GET_REFRESH_CACHE,
    PMIX_NODE_INFO,
    "some.key",
};
/* Values that lead somewhere, which chance would not find. */
static const char *const texts[] = {
    "ib1",      "ib2",   "Mellanox",           "fe80000000000000", "node0001",
    "node0003", "HCA-1", "0x0000000000200000", "logical",
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* ---- bytes to infos ---------------------------------------------------------------------------------- */

struct input {
    const uint8_t *at, *end;
};

static uint8_t byte(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* A text of its own: a byte's count of further bytes; or one of those above. */
static char *text(struct input *in)
{
    uint8_t n = byte(in);
    if (n >= 128)
        return strdup(texts[n % COUNT(texts)]);
    char *out = calloc(1, n + 1u);
    for (uint8_t i = 0; out != NULL && i < n; i++)
        out[i] = (char)byte(in);
    return out;
}

static void name(struct input *in, char *key)
{
    uint8_t n = byte(in);
    if (n >= 16) {
        PMIX_LOAD_KEY(key, keys[n % COUNT(keys)]);
        return;
    }
    char *own = text(in);
    must(own != NULL);
    PMIX_LOAD_KEY(key, own);
    free(own);
}

static void value(struct input *in, pmix_value_t *out)
{
    static const pmix_data_type_t types[] = {
        PMIX_STRING, PMIX_STRING, PMIX_SIZE,  PMIX_UINT32,      PMIX_UINT8,      PMIX_INT,     PMIX_INT64,
        PMIX_UINT64, PMIX_BOOL,   PMIX_UNDEF, PMIX_BYTE_OBJECT, PMIX_DATA_ARRAY, PMIX_POINTER, PMIX_UINT};
    uint8_t choice = byte(in);
    pmix_data_type_t type = choice < 240 ? types[choice % COUNT(types)] : (pmix_data_type_t)(choice + 1000u);
    if (type == PMIX_STRING) {
        if (choice != 239)
            out->data.string = text(in);
    } else if (type == PMIX_DATA_ARRAY) {
        must(fab_value_array(out, PMIX_UINT32, byte(in)) == PMIX_SUCCESS);
    } else if (type == PMIX_BYTE_OBJECT) {
        out->data.bo.bytes = text(in);
    } else {
        for (size_t i = 0; i < sizeof(out->data.uint64); i++)
            ((uint8_t *)&out->data)[i] = i < 2 || choice % 2 == 1 ? byte(in) : 0;
    }
    out->type = type;
}

static pmix_info_t *infos(struct input *in, size_t *n)
{
    *n = byte(in) % 8;
    pmix_info_t *out = *n > 0 ? calloc(*n, sizeof(*out)) : NULL;
    for (size_t i = 0; out != NULL && i < *n; i++) {
        uint8_t flags = byte(in);
        name(in, out[i].key);
        value(in, &out[i].value);
        out[i].flags = flags >= 224 ? PMIX_INFO_REQD : 0;
    }
    return out;
}

/* ---- the answer -------------------------------------------------------------------------------------- */

static void walk(const pmix_info_t *info, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        must(info[i].key[0] != '\0' && info[i].value.type != PMIX_UNDEF);
        if (info[i].value.type == PMIX_STRING)
            must(info[i].value.data.string != NULL);
        if (info[i].value.type == PMIX_DATA_ARRAY && info[i].value.data.darray->type == PMIX_INFO)
            walk(info[i].value.data.darray->array, info[i].value.data.darray->size);
    }
}

static void on_answer(pmix_status_t status, pmix_info_t *info, size_t n, void *cbdata,
                      pmix_release_cbfunc_t release, void *release_data)
{
    ++*(unsigned *)cbdata;
    if (status == PMIX_SUCCESS) {
        must(info != NULL && n > 0);
        walk(info, n);
    } else {
        must(status == PMIX_ERR_BAD_PARAM || status == PMIX_ERR_NOT_FOUND ||
             status == PMIX_ERR_OUT_OF_RESOURCE || status == PMIX_ERR_NOT_SUPPORTED);
        must(info == NULL && n == 0);
    }
    if (release != NULL)
        release(release_data);
}

static void ask_fabric(struct input *in, pmix_fabric_operation_t op)
{
    unsigned answers = 0;
    size_t n;
    pmix_info_t *directives = infos(in, &n);
    must(answer_fabric(NULL, op, directives, n, on_answer, &answers) == PMIX_SUCCESS);
    must(answers == 1);
    fab_infos_free(directives, n);
}

static void ask_query(struct input *in)
{
    pmix_query_t queries[3] = {0};
    char names[3][4][PMIX_MAX_KEYLEN + 1];
    char *pointers[3][5] = {0};
    unsigned answers = 0;
    size_t n = byte(in) % 4;
    for (size_t i = 0; i < n; i++) {
        size_t n_keys = byte(in) % 6; /* 5: no array at all */
        queries[i].keys = n_keys < 5 ? pointers[i] : NULL;
        for (size_t k = 0; k < n_keys && n_keys < 5; k++) {
            name(in, names[i][k]);
            pointers[i][k] = names[i][k];
        }
        queries[i].qualifiers = infos(in, &queries[i].nqual);
    }
    must(answer_query(NULL, queries, n, on_answer, &answers) == PMIX_SUCCESS);
    must(answers == 1);
    for (size_t i = 0; i < n; i++)
        fab_infos_free(queries[i].qualifiers, queries[i].nqual);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct served *served;
    struct input in = {data, data + size};
    if (served == NULL) {
        served = served_new();
        must(served != NULL && small_serve(served));
        answers_init(served, true);
    }
    while (in.at < in.end) {
        uint8_t kind = byte(&in);
        if (kind < 128)
            ask_query(&in);
        else
            ask_fabric(&in, kind == 255 ? 9 : kind % 2);
    }
    return 0;
}
