/*
 * rate.h - how often: buckets of tokens for what each of many may do, changes that are gathered before they
 * lead to something, and equal lines of the log. Times are monotonic milliseconds, given by the caller. One
 * thread at a time.
 */
#ifndef FABRICD_BASE_RATE_H
#define FABRICD_BASE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- how often each of many may do something ---- */

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

/*
 * ---- when changes lead to a sweep, or to a publication ----
 *
 * One change after quiet does at once, unless `more_follow`. Changes that come soon after another one are
 * gathered until it has been quiet for `quiet`, or until the first of them has waited for `debounce_max`: a
 * storm makes few generations.
 */

struct debounce {
    int64_t quiet, debounce_max; /* the caller may change them any time */
    bool more_follow;            /* after quiet, too, one change waits for others */
    int64_t last;                /* when something changed last; meaningful after the first change */
    int64_t first;               /* of those that are due */
    int64_t since;               /* when the first of them was noticed */
    int64_t taken; /* the same of those that the sweep that began last sees; -1: there are none */
    bool any, due;
};

void debounce_init(struct debounce *debounce, int64_t quiet, int64_t debounce_max);

/* Something changed. */
void debounce_changed(struct debounce *debounce, int64_t now);

/* When it is time for a sweep: a moment that may have passed, or -1 where nothing is due. */
int64_t debounce_when(const struct debounce *debounce);

/* A sweep begins: nothing is due any more. What changes from now on comes soon after what changed before. */
void debounce_covered(struct debounce *debounce);

/* When the first of what is due was noticed, and of what the sweep that began last sees; -1: nothing was. */
int64_t debounce_since(const struct debounce *debounce);
int64_t debounce_covered_since(const struct debounce *debounce);

/* ---- how often the log has what others can cause again and again: equal lines once a minute ---- */

/* The lines of the last minute. Begins as zeros. */
struct log_limit {
    struct limited_line *all;
};

/* Was this line not logged within a minute? now: monotonic milliseconds. *unsaid: how often it was kept back
 * since it was logged last. */
bool log_limit_may_at(struct log_limit *limit, const char *line, int64_t now, unsigned *unsaid);

/* The same now. `what` need not be the line itself. again: "", or how often it was kept back since, to follow
 * the line. */
#define LOG_LIMIT_AGAIN 64
bool log_limit_may(struct log_limit *limit, const char *what, char again[LOG_LIMIT_AGAIN]);

void log_limit_clear(struct log_limit *limit);

#endif
