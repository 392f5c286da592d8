/*
 * gather.h - when changes that were noticed lead to a sweep.
 *
 * One change after quiet does at once. Changes that come soon after another one are gathered until it has
 * been quiet for `settle`, or until the first of them has waited for `longest_wait`: a storm makes few
 * generations. Times are monotonic milliseconds, given by the caller. No I/O, no timers.
 */
#ifndef FABRICD_GATHER_H
#define FABRICD_GATHER_H

#include <stdbool.h>
#include <stdint.h>

struct gather {
    int64_t settle, longest_wait;
    int64_t last;  /* when something changed last; meaningful after the first change */
    int64_t first; /* of those that are due */
    int64_t since; /* when the first of them was noticed */
    int64_t taken; /* the same of those that the sweep that began last sees; -1: there are none */
    bool any, due;
};

void gather_init(struct gather *gather, int64_t settle, int64_t longest_wait);

/* Something changed. */
void gather_changed(struct gather *gather, int64_t now);

/* When it is time for a sweep: a moment that may have passed, or -1 where nothing is due. */
int64_t gather_when(const struct gather *gather);

/* A sweep begins: nothing is due any more. What changes from now on comes soon after what changed before. */
void gather_taken(struct gather *gather);

/* When the first of what is due was noticed, and of what the sweep that began last sees; -1: nothing was. */
int64_t gather_since(const struct gather *gather);
int64_t gather_taken_since(const struct gather *gather);

#endif
