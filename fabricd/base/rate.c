/* rate.c - token buckets, debounced changes, and repeated lines of the log. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <xxhash.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/rate.h"

/* ---- tokens ---- */

#define SWEEP_ABOVE 4096 /* number of buckets above which full ones are removed */

struct bucket {
    UT_hash_handle hh;
    int64_t full_at; /* when the bucket is full again, if no token is taken */
    char key[];
};

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): HASH_DEL removes all links to freed memory, but clang does not see
 * that. */

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

/* Return the bucket of this key; a new one is full. */
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
    /* A token is left while the bucket lacks fewer tokens than its size. */
    if (bucket->full_at + buckets->refill_ms > now + buckets->burst * buckets->refill_ms)
        return false;
    bucket->full_at += buckets->refill_ms;
    return true;
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */

/* ---- debounced changes ---- */

void debounce_init(struct debounce *debounce, int64_t quiet, int64_t debounce_max)
{
    *debounce = (struct debounce){.quiet = quiet, .debounce_max = debounce_max, .taken = -1};
}

void debounce_changed(struct debounce *debounce, int64_t now)
{
    const bool at_once = !debounce->more_follow && (!debounce->any || now - debounce->last > debounce->quiet);
    if (!debounce->due) {
        debounce->due = true;
        /* After a quiet time, count the first change as one that has waited long enough. */
        debounce->first = at_once ? now - debounce->debounce_max : now;
        debounce->since = now;
    }
    debounce->any = true;
    debounce->last = now;
}

int64_t debounce_when(const struct debounce *debounce)
{
    if (!debounce->due)
        return -1;
    const int64_t patient = debounce->first + debounce->debounce_max,
                  settled = debounce->last + debounce->quiet;
    const int64_t when = patient < settled ? patient : settled;
    return when > 0 ? when : 0;
}

void debounce_covered(struct debounce *debounce)
{
    debounce->taken = debounce_since(debounce);
    debounce->due = false;
}

int64_t debounce_since(const struct debounce *debounce)
{
    return debounce->due ? debounce->since : -1;
}

int64_t debounce_covered_since(const struct debounce *debounce)
{
    return debounce->taken;
}

/* ---- repeated lines ---- */

#define MAX_LINES 1024 /* number of different lines that are remembered */
#define AGAIN_MS  60000

struct limited_line {
    UT_hash_handle hh;
    uint64_t line; /* its hash */
    int64_t when;
    unsigned unsaid;
};

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): HASH_DEL removes all links to freed memory, but clang does not see
 * that. */

static void forget_lines(struct log_limit *limit, int64_t now)
{
    struct limited_line *line, *next;
    HASH_ITER(hh, limit->all, line, next)
    {
        if (line->when <= now - AGAIN_MS) {
            HASH_DEL(limit->all, line);
            free(line);
        }
    }
}

static bool limited_line_add(struct log_limit *limit, uint64_t hash, int64_t now)
{
    if (HASH_COUNT(limit->all) >= MAX_LINES)
        forget_lines(limit, now);
    struct limited_line *line = HASH_COUNT(limit->all) < MAX_LINES ? calloc(1, sizeof(*line)) : NULL;
    if (line == NULL)
        return false;
    line->line = hash;
    line->when = now;
    HASH_ADD(hh, limit->all, line, sizeof(line->line), line);
    return true;
}

bool log_limit_may_at(struct log_limit *limit, const char *text, int64_t now, unsigned *unsaid)
{
    uint64_t hash = XXH3_64bits(text, strlen(text));
    struct limited_line *line;
    *unsaid = 0;
    HASH_FIND(hh, limit->all, &hash, sizeof(hash), line);
    if (line == NULL)
        return limited_line_add(limit, hash, now);
    if (line->when + AGAIN_MS > now) {
        line->unsaid++;
        return false;
    }
    *unsaid = line->unsaid;
    line->unsaid = 0;
    line->when = now;
    return true;
}

bool log_limit_may(struct log_limit *limit, const char *what, char again[LOG_LIMIT_AGAIN])
{
    unsigned unsaid;
    const bool may = log_limit_may_at(limit, what, clock_now(CLOCK_MONOTONIC) / 1000, &unsaid);
    again[0] = '\0';
    if (unsaid > 0)
        snprintf(again, LOG_LIMIT_AGAIN, " (and %u time%s since it was last logged)", unsaid,
                 unsaid == 1 ? "" : "s");
    return may;
}

void log_limit_clear(struct log_limit *limit)
{
    forget_lines(limit, INT64_MAX);
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */
