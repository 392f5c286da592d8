/* ingest_rate.c - how often a host may deliver, and how often the log says the same. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <xxhash.h>

#include "fabricd/ingest/entry.h"
#include "fabricd/util/bucket.h"

#define MAX_LINES 1024 /* different lines that are remembered */
#define SAY_MS    60000

struct said {
    UT_hash_handle hh;
    uint64_t line; /* its hash */
    int64_t when;
    unsigned unsaid;
};

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): HASH_DEL leaves no link to what is freed then, which clang does
 * not see. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buckets hosts = {.burst = INGEST_BURST, .refill_ms = INGEST_REFILL_MS};
static struct said *lines;

bool ingest_allow(const char *host, int64_t now)
{
    pthread_mutex_lock(&lock);
    const bool allowed = buckets_take(&hosts, host, strlen(host), now);
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
    buckets_forget_full(&hosts, INT64_MAX);
    forget_old(INT64_MAX);
    pthread_mutex_unlock(&lock);
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */
