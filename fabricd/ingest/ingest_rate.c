/* ingest_rate.c - how often a host may deliver, and how often the log says the same. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <xxhash.h>

#include "fabricd/ingest/entry.h"

#define MAX_LINES   1024 /* different lines that are remembered */
#define SAY_MS      60000
#define SWEEP_ABOVE 4096 /* hosts from which on those that are quiet are forgotten */

/* A bucket of tokens: full when the host is new. */
struct bucket {
    UT_hash_handle hh;
    int64_t full_at; /* when it is full again, if nothing is taken from it */
    char host[];
};

struct said {
    UT_hash_handle hh;
    uint64_t line; /* its hash */
    int64_t when;
    unsigned unsaid;
};

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): HASH_DEL leaves no link to what is freed then, which clang does
 * not see. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct bucket *buckets;
static struct said *lines;
static unsigned sweep_above = SWEEP_ABOVE;

/* One that is full is as good as none. */
static void forget_full(int64_t now)
{
    struct bucket *bucket, *next;
    HASH_ITER(hh, buckets, bucket, next)
    {
        if (bucket->full_at <= now) {
            HASH_DEL(buckets, bucket);
            free(bucket);
        }
    }
    unsigned left = HASH_COUNT(buckets);
    sweep_above = left * 2 > SWEEP_ABOVE ? left * 2 : SWEEP_ABOVE;
}

bool ingest_allow(const char *host, int64_t now)
{
    struct bucket *bucket;
    bool allowed = false;
    size_t len = strlen(host);
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, buckets, host, len, bucket);
    if (bucket == NULL) {
        if (HASH_COUNT(buckets) >= sweep_above)
            forget_full(now);
        bucket = calloc(1, sizeof(*bucket) + len + 1);
        if (bucket != NULL) {
            memcpy(bucket->host, host, len + 1);
            bucket->full_at = now;
            HASH_ADD_KEYPTR(hh, buckets, bucket->host, len, bucket);
        }
    }
    if (bucket != NULL) {
        if (bucket->full_at < now)
            bucket->full_at = now;
        /* A token is there as long as the bucket is not further from full than it is large. */
        allowed = bucket->full_at + INGEST_REFILL_MS <= now + INGEST_BURST * INGEST_REFILL_MS;
        if (allowed)
            bucket->full_at += INGEST_REFILL_MS;
    }
    pthread_mutex_unlock(&lock);
    return allowed;
}

static void forget_old(int64_t now)
{
    struct said *said, *next;
    HASH_ITER(hh, lines, said, next)
    {
        if (said->when <= now - SAY_MS) {
            HASH_DEL(lines, said);
            free(said);
        }
    }
}

bool ingest_say(const char *line, int64_t now, unsigned *unsaid)
{
    uint64_t hash = XXH3_64bits(line, strlen(line));
    struct said *said;
    bool say = false;
    *unsaid = 0;
    pthread_mutex_lock(&lock);
    HASH_FIND(hh, lines, &hash, sizeof(hash), said);
    if (said == NULL) {
        if (HASH_COUNT(lines) >= MAX_LINES)
            forget_old(now);
        if (HASH_COUNT(lines) < MAX_LINES && (said = calloc(1, sizeof(*said))) != NULL) {
            said->line = hash;
            said->when = now;
            HASH_ADD(hh, lines, line, sizeof(said->line), said);
            say = true;
        }
    } else if (said->when + SAY_MS <= now) {
        *unsaid = said->unsaid;
        said->unsaid = 0;
        said->when = now;
        say = true;
    } else {
        said->unsaid++;
    }
    pthread_mutex_unlock(&lock);
    return say;
}

void ingest_limits_clear(void)
{
    pthread_mutex_lock(&lock);
    forget_full(INT64_MAX);
    forget_old(INT64_MAX);
    pthread_mutex_unlock(&lock);
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */
