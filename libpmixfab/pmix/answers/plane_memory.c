#include "pmix/answers/plane_memory.h"

#include <stdlib.h>
#include <string.h>
/* Without memory a requestor is forgotten; by default the macros would end the process. */
#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(one) free(one)
#include <uthash.h>
#include <xxhash.h>

struct plane_memory {
    struct plane_memory_key who;
    uint32_t meant; /* the plane for index 0; PLANE_MEMORY_SEVERAL */
    UT_hash_handle hh;
};

static struct plane_memory *all; /* in order of insertion */
static void (*on_note)(const struct plane_memory_key *who, uint32_t meant);

static struct plane_memory_key plane_memory_key(const pmix_proc_t *requestor)
{
    pmix_proc_t name;
    memset(&name, 0, sizeof(name));
    memcpy(name.nspace, requestor->nspace, strnlen(requestor->nspace, sizeof(name.nspace) - 1));
    name.rank = requestor->rank;
    const XXH128_hash_t hash = XXH3_128bits(&name, sizeof(name));
    return (struct plane_memory_key){hash.high64, hash.low64};
}

static struct plane_memory *plane_memory_find(const struct plane_memory_key *who)
{
    struct plane_memory *found = NULL;
    HASH_FIND(hh, all, who, sizeof(*who), found);
    return found;
}

uint32_t plane_memory_meant_by_zero(const pmix_proc_t *requestor)
{
    if (requestor == NULL)
        return PLANE_MEMORY_NOTHING;
    const struct plane_memory_key who = plane_memory_key(requestor);
    const struct plane_memory *found = plane_memory_find(&who);
    return found == NULL ? PLANE_MEMORY_NOTHING : found->meant;
}

void plane_memory_on_note(void (*fn)(const struct plane_memory_key *who, uint32_t meant))
{
    on_note = fn;
}

void plane_memory_note(const pmix_proc_t *requestor, uint32_t index)
{
    const uint32_t before = plane_memory_meant_by_zero(requestor);
    if (requestor == NULL || before == index || before == PLANE_MEMORY_SEVERAL)
        return;
    const uint32_t meant = before == PLANE_MEMORY_NOTHING ? index : PLANE_MEMORY_SEVERAL;
    const struct plane_memory_key who = plane_memory_key(requestor);
    plane_memory_set(&who, meant);
    if (on_note != NULL)
        on_note(&who, meant);
}

void plane_memory_set(const struct plane_memory_key *who, uint32_t meant)
{
    struct plane_memory *one = plane_memory_find(who);
    if (one != NULL) {
        one->meant = meant;
        return;
    }
    one = calloc(1, sizeof(*one));
    if (one == NULL)
        return;
    one->who = *who;
    one->meant = meant;
    HASH_ADD(hh, all, who, sizeof(one->who), one);
    if (HASH_COUNT(all) > PLANE_MEMORY_MAX) {
        struct plane_memory *oldest = all;
        HASH_DEL(all, oldest);
        free(oldest);
    }
}
