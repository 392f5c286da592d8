/* backoff.h - pauses between attempts that fail: each twice as long as the one before, up to a bound. */
#ifndef FAB_TOPO_BASE_BACKOFF_H
#define FAB_TOPO_BASE_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t first, most; /* pauses, in the caller's unit */
    unsigned at_once;    /* so many attempts have no pause */
    unsigned failed;     /* attempts in a row */
};

/* The pause after the last attempt. 0: none has failed, or not more than `at_once`. */
static inline int64_t backoff_pause(const struct backoff *backoff)
{
    int64_t pause = backoff->first;
    if (backoff->failed <= backoff->at_once)
        return 0;
    for (unsigned i = backoff->at_once + 1; i < backoff->failed && pause < backoff->most; i++)
        pause *= 2;
    return pause < backoff->most ? pause : backoff->most;
}

/* An attempt has failed. Returns the pause before the next one. */
static inline int64_t backoff_next(struct backoff *backoff)
{
    backoff->failed++;
    return backoff_pause(backoff);
}

/* An attempt has succeeded. */
static inline void backoff_reset(struct backoff *backoff)
{
    backoff->failed = 0;
}

#endif
