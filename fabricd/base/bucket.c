#include "fabricd/base/bucket.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define SWEEP_ABOVE 4096 /* so many, from which on those that are quiet are forgotten */

struct bucket {
    UT_hash_handle hh;
    int64_t full_at; /* when it is full again, if nothing is taken from it */
    char key[];
};

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): HASH_DEL leaves no link to what is freed then, which clang does
 * not see. */

void buckets_forget_full(struct buckets *buckets, int64_t now)
{
    struct bucket *bucket, *next;
    HASH_ITER(hh, buckets->all, bucket, next)
    {
        if (bucket->full_at <= now) {
            HASH_DEL(buckets->all, bucket);
            free(bucket);
        }
    }
    const unsigned left = HASH_COUNT(buckets->all);
    buckets->sweep_above = left * 2 > SWEEP_ABOVE ? left * 2 : SWEEP_ABOVE;
}

/* Full where it is new. */
static struct bucket *bucket_of(struct buckets *buckets, const void *key, size_t length, int64_t now)
{
    struct bucket *bucket;
    HASH_FIND(hh, buckets->all, key, length, bucket);
    if (bucket != NULL)
        return bucket;
    if (HASH_COUNT(buckets->all) >= buckets->sweep_above)
        buckets_forget_full(buckets, now);
    bucket = calloc(1, sizeof(*bucket) + length);
    if (bucket == NULL)
        return NULL;
    memcpy(bucket->key, key, length);
    bucket->full_at = now;
    HASH_ADD_KEYPTR(hh, buckets->all, bucket->key, length, bucket);
    return bucket;
}

bool buckets_take(struct buckets *buckets, const void *key, size_t length, int64_t now)
{
    struct bucket *bucket = bucket_of(buckets, key, length, now);
    if (bucket == NULL)
        return false;
    if (bucket->full_at < now)
        bucket->full_at = now;
    /* A token is there as long as the bucket is not further from full than it is large. */
    if (bucket->full_at + buckets->refill_ms > now + buckets->burst * buckets->refill_ms)
        return false;
    bucket->full_at += buckets->refill_ms;
    return true;
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */
