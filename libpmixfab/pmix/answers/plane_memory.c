#include "pmix/answers/plane_memory.h"

#include <stdlib.h>
#include <string.h>
/* Without memory a requestor is forgotten; the macros would end the process. */
#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(one) free(one)
#include <uthash.h>

struct plane_memory {
    pmix_proc_t who; /* compared as bytes: the rest of its name is zero */
    uint32_t meant;  /* by index 0; PLANE_MEMORY_SEVERAL */
    UT_hash_handle hh;
};

static struct plane_memory *all; /* in order of insertion */
static void (*on_note)(const pmix_proc_t *requestor, uint32_t meant);

static struct plane_memory *plane_memory_find(const pmix_proc_t *requestor, pmix_proc_t *key)
{
    struct plane_memory *found = NULL;
    memset(key, 0, sizeof(*key));
    memcpy(key->nspace, requestor->nspace, strnlen(requestor->nspace, sizeof(key->nspace) - 1));
    key->rank = requestor->rank;
    HASH_FIND(hh, all, key, sizeof(*key), found);
    return found;
}

uint32_t plane_memory_meant_by_zero(const pmix_proc_t *requestor)
{
    pmix_proc_t key;
    const struct plane_memory *found = requestor == NULL ? NULL : plane_memory_find(requestor, &key);
    return found == NULL ? PLANE_MEMORY_NOTHING : found->meant;
}

void plane_memory_on_note(void (*fn)(const pmix_proc_t *requestor, uint32_t meant))
{
    on_note = fn;
}

void plane_memory_note(const pmix_proc_t *requestor, uint32_t index)
{
    const uint32_t before = plane_memory_meant_by_zero(requestor);
    if (requestor == NULL || before == index || before == PLANE_MEMORY_SEVERAL)
        return;
    const uint32_t meant = before == PLANE_MEMORY_NOTHING ? index : PLANE_MEMORY_SEVERAL;
    plane_memory_set(requestor, meant);
    if (on_note != NULL)
        on_note(requestor, meant);
}

void plane_memory_set(const pmix_proc_t *requestor, uint32_t meant)
{
    pmix_proc_t key;
    struct plane_memory *one = plane_memory_find(requestor, &key);
    if (one != NULL) {
        one->meant = meant;
        return;
    }
    one = calloc(1, sizeof(*one));
    if (one == NULL)
        return;
    one->who = key;
    one->meant = meant;
    HASH_ADD(hh, all, who, sizeof(one->who), one);
    if (HASH_COUNT(all) > PLANE_MEMORY_MAX) {
        struct plane_memory *oldest = all;
        HASH_DEL(all, oldest);
        free(oldest);
    }
}
