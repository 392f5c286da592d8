/* client.c - get a snapshot over PMIx: map its file on the daemon's host, else receive its bytes. */
#include <pmix_common.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/info.h"
#include "pmix/relay/query.h"
#include "topo/base/library_log.h"

/* Map the file that the server names. *out stays NULL if it is not here, or not the same. */
static int open_named_file(const pmix_info_t *directives, size_t ndirs, struct pmixfab **out)
{
    static const char *const keys[] = {PMIXFAB_KEY_SNAPSHOT_PATH, PMIXFAB_KEY_GENERATION, FAB_KEY_PUBLISHED,
                                       PMIX_FABRIC_INDEX, NULL};
    struct fab_answer *answer;
    struct pmixfab_plane plane;
    int rc = fab_query(keys, directives, ndirs, &answer);
    if (rc != PMIXFAB_OK)
        return rc;
    const pmix_value_t *generation = fab_answer_value(answer, PMIXFAB_KEY_GENERATION, PMIX_UINT64);
    const pmix_value_t *published = fab_answer_value(answer, FAB_KEY_PUBLISHED, PMIX_INT64);
    const pmix_value_t *index = fab_answer_value(answer, PMIX_FABRIC_INDEX, PMIX_SIZE);
    const pmix_value_t *file = fab_answer_value(answer, PMIXFAB_KEY_SNAPSHOT_PATH, PMIX_STRING);
    if (generation == NULL || published == NULL || index == NULL || file == NULL ||
        file->data.string == NULL) {
        rc = PMIXFAB_ERR_UNSUPPORTED; /* the server is not a fabricd */
    } else if (pmixfab_open_file(file->data.string, out) == PMIXFAB_OK &&
               (pmixfab_plane(*out, &plane) != PMIXFAB_OK || plane.generation != generation->data.uint64 ||
                plane.published != published->data.int64 || plane.index != index->data.size)) {
        pmixfab_close(*out); /* another file with the same name on this host */
        *out = NULL;
    }
    fab_answer_free(answer);
    return rc;
}

static int fetch_bytes(const pmix_info_t *directives, size_t ndirs, struct pmixfab **out)
{
    static const char *const keys[] = {PMIXFAB_KEY_SNAPSHOT, NULL};
    struct fab_answer *answer;
    int rc = fab_query(keys, directives, ndirs, &answer);
    if (rc != PMIXFAB_OK)
        return rc;
    const pmix_value_t *bytes = fab_answer_value(answer, PMIXFAB_KEY_SNAPSHOT, PMIX_BYTE_OBJECT);
    rc = bytes == NULL ? PMIXFAB_ERR_UNSUPPORTED
                       : pmixfab_open_memory(bytes->data.bo.bytes, bytes->data.bo.size, out);
    fab_answer_free(answer);
    return rc;
}

int pmixfab_open_pmix(const struct pmix_info *directives, size_t ndirs, struct pmixfab **out)
{
    if (out == NULL)
        return PMIXFAB_ERR_INVAL;
    *out = NULL;
    if (directives == NULL && ndirs > 0)
        return PMIXFAB_ERR_INVAL;
    int rc = PMIXFAB_OK;
    /* twice: the file may have been replaced after the answer */
    for (int i = 0; rc == PMIXFAB_OK && *out == NULL && i < 2; i++)
        rc = open_named_file(directives, ndirs, out);
    if (rc == PMIXFAB_OK && *out == NULL)
        rc = fetch_bytes(directives, ndirs, out);
    return rc;
}

int pmixfab_stale_pmix(int *stale)
{
    static const char *const keys[] = {PMIXFAB_KEY_STALE, NULL};
    struct fab_answer *answer;
    if (stale == NULL)
        return PMIXFAB_ERR_INVAL;
    int rc = fab_query(keys, NULL, 0, &answer);
    if (rc != PMIXFAB_OK)
        return rc;
    const pmix_value_t *value = fab_answer_value(answer, PMIXFAB_KEY_STALE, PMIX_BOOL);
    if (value == NULL)
        rc = PMIXFAB_ERR_UNSUPPORTED;
    else
        *stale = value->data.flag;
    fab_answer_free(answer);
    return rc;
}

int pmixfab_list_pmix(char ***names, size_t *n)
{
    static const char *const keys[] = {PMIX_FABRIC_PLANE, NULL};
    struct fab_answer *answer;
    if (names == NULL || n == NULL)
        return PMIXFAB_ERR_INVAL;
    *names = NULL;
    *n = 0;
    int rc = fab_query(keys, NULL, 0, &answer);
    if (rc != PMIXFAB_OK)
        return rc;
    const pmix_value_t *value = fab_answer_value(answer, PMIX_FABRIC_PLANE, PMIX_DATA_ARRAY);
    const pmix_data_array_t *array = value == NULL ? NULL : value->data.darray;
    if (array == NULL || array->type != PMIX_STRING || array->size == 0) {
        fab_answer_free(answer);
        return PMIXFAB_ERR_UNSUPPORTED;
    }
    char **list = calloc(array->size, sizeof(*list));
    rc = list == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    for (size_t i = 0; rc == PMIXFAB_OK && i < array->size; i++) {
        const char *name = ((char **)array->array)[i];
        list[i] = strdup(name == NULL ? "" : name);
        rc = list[i] == NULL ? PMIXFAB_ERR_NOMEM : PMIXFAB_OK;
    }
    size_t count = array->size;
    fab_answer_free(answer);
    if (rc != PMIXFAB_OK) {
        pmixfab_list_free(list, count);
        return rc;
    }
    *names = list;
    *n = count;
    return PMIXFAB_OK;
}
