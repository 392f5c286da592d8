/*
 * debounce.h - when changes lead to a sweep, or to a publication.
 *
 * One change after quiet does at once, unless `more_follow`. Changes that come soon after another one are
 * gathered until it has been quiet for `quiet`, or until the first of them has waited for `debounce_max`: a
 * storm makes few generations. Times are monotonic milliseconds, given by the caller. No I/O, no timers.
 */
#ifndef FABRICD_BASE_DEBOUNCE_H
#define FABRICD_BASE_DEBOUNCE_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
