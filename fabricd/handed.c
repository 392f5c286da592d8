#include "fabricd/handed.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct handed {
    pmix_proc_t who; /* compared as bytes: the rest of its name is zero */
    UT_hash_handle hh;
};

static struct handed *all; /* in order of insertion */

static pmix_proc_t key_of(const pmix_proc_t *requestor)
{
    pmix_proc_t key;
    memset(&key, 0, sizeof(key));
    memcpy(key.nspace, requestor->nspace, strnlen(requestor->nspace, sizeof(key.nspace) - 1));
    key.rank = requestor->rank;
    return key;
}

bool handed_was_zero(const pmix_proc_t *requestor)
{
    struct handed *found = NULL;
    if (requestor == NULL)
        return false;
    const pmix_proc_t key = key_of(requestor);
    HASH_FIND(hh, all, &key, sizeof(key), found);
    return found != NULL;
}

void handed_zero(const pmix_proc_t *requestor)
{
    if (requestor == NULL || handed_was_zero(requestor))
        return;
    struct handed *one = calloc(1, sizeof(*one));
    if (one == NULL)
        return;
    one->who = key_of(requestor);
    HASH_ADD(hh, all, who, sizeof(one->who), one);
    if (HASH_COUNT(all) > HANDED_MAX) {
        struct handed *oldest = all;
        HASH_DEL(all, oldest);
        free(oldest);
    }
}
