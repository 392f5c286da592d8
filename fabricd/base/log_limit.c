#include "fabricd/base/log_limit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <xxhash.h>

#include "fabricd/base/clock.h"

#define MAX_LINES 1024 /* different lines that are remembered */
#define AGAIN_MS  60000

struct limited_line {
    UT_hash_handle hh;
    uint64_t line; /* its hash */
    int64_t when;
    unsigned unsaid;
};

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): HASH_DEL leaves no link to what is freed then, which clang does
 * not see. */

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
        snprintf(again, LOG_LIMIT_AGAIN, " (and %u time%s since this was limit)", unsaid,
                 unsaid == 1 ? "" : "s");
    return may;
}

void log_limit_clear(struct log_limit *limit)
{
    forget_lines(limit, INT64_MAX);
}

/* NOLINTEND(clang-analyzer-unix.Malloc) */
