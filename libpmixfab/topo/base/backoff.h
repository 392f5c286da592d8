/* backoff.h - pauses between failed attempts: each twice as long as the last, up to a maximum. */
#ifndef FAB_TOPO_BASE_BACKOFF_H
#define FAB_TOPO_BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t first, most; /* shortest and longest pause, in the caller's unit */
    unsigned at_once;    /* number of retries without a pause */
    unsigned failed;     /* failed attempts in a row */
};

/* Return the pause after the last attempt; 0 if no more than `at_once` have failed in a row. */
static inline int64_t backoff_pause(const struct backoff *backoff)
{
    int64_t pause = backoff->first;
    if (backoff->failed <= backoff->at_once)
        return 0;
    for (unsigned i = backoff->at_once + 1; i < backoff->failed && pause < backoff->most; i++)
        pause *= 2;
    return pause < backoff->most ? pause : backoff->most;
}

/* Count a failed attempt and return the pause before the next one. */
static inline int64_t backoff_next(struct backoff *backoff)
{
    backoff->failed++;
    return backoff_pause(backoff);
}

/* Count a successful attempt. */
static inline void backoff_reset(struct backoff *backoff)
{
    backoff->failed = 0;
}

#endif
