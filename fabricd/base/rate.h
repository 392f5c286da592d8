/*
 * rate.h - rate limits: token buckets for many callers, debounced changes, and repeated lines of the log.
 * Times are monotonic milliseconds, given by the caller. One thread at a time.
 */
#ifndef FABRICD_BASE_RATE_H
#define FABRICD_BASE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- token buckets, one for each key ---- */

struct bucket;

/* `burst` tokens at first, and one more each refill_ms. The other fields begin as zeros. */
struct buckets {
    int64_t burst, refill_ms;
    struct bucket *all;
    unsigned sweep_above;
};

/* Take a token from the bucket of this key. now: monotonic milliseconds. False: none is left, or no memory.
 */
bool buckets_take(struct buckets *buckets, const void *key, size_t length, int64_t now);

/* Remove the buckets that are full at that time, since a missing bucket counts as full. INT64_MAX: all. */
void buckets_forget_full(struct buckets *buckets, int64_t now);

/*
 * ---- when changes lead to a sweep, or to a publication ----
 *
 * A change after a quiet time is due at once, unless `more_follow`. Changes that follow another one soon are
 * gathered until `quiet` has passed without a change, or until the first of them has waited for
 * `debounce_max`. So a storm of changes makes few generations.
 */

struct debounce {
    int64_t quiet, debounce_max; /* the caller may change them at any time */
    bool more_follow;            /* a change after a quiet time waits for others, too */
    int64_t last;                /* time of the last change; valid after the first change */
    int64_t first;               /* of the changes that are due */
    int64_t since;               /* when the first due change was noticed */
    int64_t taken; /* when the first change of the running or last sweep was noticed; -1: none */
    bool any, due;
};

void debounce_init(struct debounce *debounce, int64_t quiet, int64_t debounce_max);

/* Note a change. */
void debounce_changed(struct debounce *debounce, int64_t now);

/* Return the time at which the next sweep is due, possibly in the past; -1: none is due. */
int64_t debounce_when(const struct debounce *debounce);

/* Note that a sweep begins: no change is due any more. Later changes count as changes that follow others. */
void debounce_covered(struct debounce *debounce);

/*
 * Return the time at which the first due change was noticed; -1: none. The second function returns the same
 * for the first change that the last begun sweep covers.
 */
int64_t debounce_since(const struct debounce *debounce);
int64_t debounce_covered_since(const struct debounce *debounce);

/* ---- repeated lines of the log: equal lines once a minute, since others can cause them at any rate ---- */

/* The lines of the last minute. Begins as zeros. */
struct log_limit {
    struct limited_line *all;
};

/* Return whether this line was not logged within the last minute. now: monotonic milliseconds. *unsaid: how
 * often it was suppressed since it was logged last. */
bool log_limit_may_at(struct log_limit *limit, const char *line, int64_t now, unsigned *unsaid);

/*
 * The same at the current time. `what` need not be the line itself. again: the text to append to the line.
 * It is "", or contains how often the line was suppressed since.
 */
#define LOG_LIMIT_AGAIN 64
bool log_limit_may(struct log_limit *limit, const char *what, char again[LOG_LIMIT_AGAIN]);

void log_limit_clear(struct log_limit *limit);

#endif
