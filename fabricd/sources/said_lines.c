/* said_lines.c - how often the log says the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <xxhash.h>

#include "fabricd/base/clock.h"
#include "fabricd/sources/ingest.h"

#define MAX_LINES 1024 /* different lines that are remembered */
#define SAY_MS    60000

struct said_line {
    UT_hash_handle hh;
    uint64_t line; /* its hash */
    int64_t when;
    unsigned unsaid;
};

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): HASH_DEL leaves no link to what is freed then, which clang does
 * not see. */

static void forget_old(struct said_lines *said, int64_t now)
{
    struct said_line *line, *next;
    HASH_ITER(hh, said->all, line, next)
    {
        if (line->when <= now - SAY_MS) {
            HASH_DEL(said->all, line);
            free(line);
        }
    }
}

static bool said_lines_add(struct said_lines *said, uint64_t hash, int64_t now)
{
    if (HASH_COUNT(said->all) >= MAX_LINES)
        forget_old(said, now);
    struct said_line *line = HASH_COUNT(said->all) < MAX_LINES ? calloc(1, sizeof(*line)) : NULL;
    if (line == NULL)
        return false;
    line->line = hash;
    line->when = now;
    HASH_ADD(hh, said->all, line, sizeof(line->line), line);
    return true;
}

bool said_lines_may(struct said_lines *said, const char *text, int64_t now, unsigned *unsaid)
{
    uint64_t hash = XXH3_64bits(text, strlen(text));
    struct said_line *line;
    *unsaid = 0;
    HASH_FIND(hh, said->all, &hash, sizeof(hash), line);
    if (line == NULL)
        return said_lines_add(said, hash, now);
    if (line->when + SAY_MS > now) {
        line->unsaid++;
        return false;
    }
    *unsaid = line->unsaid;
    line->unsaid = 0;
    line->when = now;
    return true;
}

bool said_lines_may_log(struct said_lines *said, const char *what, char again[INGEST_AGAIN_TEXT])
{
    unsigned unsaid;
    const bool may = said_lines_may(said, what, clock_now(CLOCK_MONOTONIC) / 1000, &unsaid);
    again[0] = '\0';
    if (unsaid > 0)
        snprintf(again, INGEST_AGAIN_TEXT, " (and %u time%s since this was said)", unsaid,
                 unsaid == 1 ? "" : "s");
    return may;
}

void said_lines_clear(struct said_lines *said)
{
    forget_old(said, INT64_MAX);
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */
