/* bucket.h - how often each of many may do something: buckets of tokens. One thread at a time. */
#ifndef FABRICD_BASE_BUCKET_H
#define FABRICD_BASE_BUCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bucket;

/* So often at once, and once more each refill_ms. The rest begins as zeros. */
struct buckets {
    int64_t burst, refill_ms;
    struct bucket *all;
    unsigned sweep_above;
};

/* May the one of this key do it now? now: monotonic milliseconds. False where memory is out, too. */
bool buckets_take(struct buckets *buckets, const void *key, size_t length, int64_t now);

/* Forget those that are full by then, which are as good as none. INT64_MAX: all. */
void buckets_forget_full(struct buckets *buckets, int64_t now);

#endif
