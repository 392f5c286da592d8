/*
 * hold.h - which cables and switches come and go too often, and are taken as down until they are quiet.
 *
 * One that changes (comes, or goes) `count` times within `window` is held down for `down`. Each change while
 * it is held begins that anew and doubles it, up to `down_max`. When the time is over it is released. If it
 * flaps again, it is held for twice as long as the last time; but for each `window` that it was quiet after
 * its release, that is halved, down to `down`.
 *
 * No clock is read here: `now` is in microseconds of any clock that does not go back; one that does stands
 * still instead. What is known is lost with the process.
 */
#ifndef FABRICD_HOLD_H
#define FABRICD_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#define HOLD_MAX_COUNT 16

struct hold_limits {
    unsigned count;                  /* 1 to HOLD_MAX_COUNT; 0: nothing is held */
    unsigned window, down, down_max; /* seconds */
};

/* A cable by its two ends, the lower one first; or a switch with all of its cables: port and far are 0. */
struct hold_end {
    uint64_t guid;
    uint32_t port;
};
struct hold_key {
    struct hold_end end, far;
};
struct hold_key hold_cable(struct hold_end a, struct hold_end b);
struct hold_key hold_switch(uint64_t guid);
bool hold_is_switch(const struct hold_key *key);
int hold_compare(const struct hold_key *a, const struct hold_key *b); /* as memcmp() */

struct hold;
struct hold *hold_new(const struct hold_limits *limits); /* NULL: out of memory */
void hold_free(struct hold *hold);                       /* NULL allowed */

/*
 * It came or went. True: from now on it is held, and was not. (Where there is no memory to remember it, the
 * change is not counted.)
 */
bool hold_change(struct hold *hold, const struct hold_key *key, bool came, int64_t now);

/* A cable went because its switch did: that is not counted, nor that it comes back within `window`. */
void hold_excuse(struct hold *hold, const struct hold_key *cable, int64_t now);
/* A switch is gone altogether: the cables that went before it, within `window`, went because of that. What
 * they have done to be held already stands. */
void hold_excuse_all(struct hold *hold, uint64_t guid, int64_t now);

/* What people call one that is held, and the names that they would look for: each with its end, an empty one
 * behind the last. Both are copied; without memory they stay empty. */
void hold_name(struct hold *hold, const struct hold_key *key, const char *what, const char *subjects);

/* Let time pass: release those whose time is over. Returns how many. */
uint32_t hold_pass(struct hold *hold, int64_t now);

/* Release it now, and forget what it did. False: it is not held. */
bool hold_release(struct hold *hold, const struct hold_key *key);

/* ---- questions: as of the last call with a time ---- */

/* Is this cable held, or one of its switches? */
bool hold_is_held(const struct hold *hold, const struct hold_key *cable);

/* Is a cable in this port held, or its switch? */
bool hold_holds_end(const struct hold *hold, uint64_t guid, uint32_t port);

struct held {
    struct hold_key key;
    const char *what, *subjects; /* never NULL */
    int64_t since;               /* the first of the changes that it is held for */
    int64_t until;
    uint32_t changes; /* since then */
};
/* Those that are held, one after the other: *at begins with 0. False: there is no more. */
bool hold_next(const struct hold *hold, uint32_t *at, struct held *out);
/* This one. False: it is not held. */
bool hold_find(const struct hold *hold, const struct hold_key *key, struct held *out);

/* How many cables and switches are held, and when the next of them is released (0: none is). */
struct hold_counts {
    uint32_t cables, switches;
    int64_t next;
};
struct hold_counts hold_count(const struct hold *hold);

/* How many cables and switches are remembered. */
uint32_t hold_remembered(const struct hold *hold);

#endif
