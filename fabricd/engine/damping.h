/*
 * damping.h - which cables and switches come and go too often, and are taken as down until they are quiet.
 * The room policy/ says how to take what sweeps see: this, what is missing (retained.h), and what an operator
 * has announced (planned.h).
 *
 * One that changes (comes, or goes) `count` times within `window` is suppressed for `down`. Each change while
 * it is suppressed begins that anew and doubles it, up to `down_max`. When the time is over it is released.
 * If it flaps again, it is suppressed for twice as long as the last time; but for each `window` that it was
 * quiet after its release, that is halved, down to `down`.
 *
 * No clock is read here: `now` is in microseconds of any clock that does not go back; one that does stands
 * still instead. What is known is lost with the process.
 */
#ifndef FABRICD_ENGINE_DAMPING_H
#define FABRICD_ENGINE_DAMPING_H

#include <stdbool.h>
#include <stdint.h>

#define DAMPING_MAX_COUNT 16

struct damping_limits {
    unsigned count;                  /* 1 to DAMPING_MAX_COUNT; 0: nothing is suppressed */
    unsigned window, down, down_max; /* seconds */
};

/* A cable by its two ends, the lower one first; or a switch with all of its cables: port and far are 0. */
struct damping_end {
    uint64_t guid;
    uint32_t port;
};
struct damping_key {
    struct damping_end end, far;
};
struct damping_key damping_cable(struct damping_end a, struct damping_end b);
struct damping_key damping_switch(uint64_t guid);
bool damping_is_switch(const struct damping_key *key);
int damping_compare(const struct damping_key *a, const struct damping_key *b); /* as memcmp() */

struct damping;
struct damping *damping_new(const struct damping_limits *limits); /* NULL: out of memory */
void damping_free(struct damping *damping);                       /* NULL allowed */

/* From now on these; what is suppressed stays so until its time is over. */
void damping_limit(struct damping *damping, const struct damping_limits *limits);

/*
 * It came or went. True: from now on it is suppressed, and was not. (Where there is no memory to remember it,
 * the change is not counted.)
 */
bool damping_change(struct damping *damping, const struct damping_key *key, bool came, int64_t now);

/* A cable went because its switch did: that is not counted, nor that it comes back within `window`. */
void damping_ignore(struct damping *damping, const struct damping_key *cable, int64_t now);
/* A switch is gone altogether: the cables that went before it, within `window`, went because of that. What
 * they have done to be suppressed already stands. */
void damping_ignore_all(struct damping *damping, uint64_t guid, int64_t now);

/* What people call one that is suppressed, and the names that they would look for: each with its end, an
 * empty one behind the last. Both are copied; without memory they stay empty. */
void damping_name(struct damping *damping, const struct damping_key *key, const char *what,
                  const char *subjects);

/* Let time pass: release those whose time is over. Returns how many. */
uint32_t damping_advance(struct damping *damping, int64_t now);

/* Release it now, and forget what it did. False: it is not suppressed. */
bool damping_release(struct damping *damping, const struct damping_key *key);

/* ---- questions: as of the last call with a time ---- */

/* Is this cable suppressed, or one of its switches? */
bool damping_is_suppressed(const struct damping *damping, const struct damping_key *cable);

/* Is a cable in this port suppressed, or its switch? */
bool damping_suppresses_end(const struct damping *damping, uint64_t guid, uint32_t port);

struct suppressed {
    struct damping_key key;
    const char *what, *subjects; /* never NULL */
    int64_t since;               /* the first of the changes that it is suppressed for */
    int64_t until;
    uint32_t changes; /* since then */
};
/* Those that are suppressed, one after the other: *at begins with 0. False: there is no more. */
bool damping_next(const struct damping *damping, uint32_t *at, struct suppressed *out);
/* This one. False: it is not suppressed. */
bool damping_find(const struct damping *damping, const struct damping_key *key, struct suppressed *out);

/* How many cables and switches are suppressed, and when the next of them is released (0: none is). */
struct damping_counts {
    uint32_t cables, switches;
    int64_t next;
};
struct damping_counts damping_count(const struct damping *damping);

/* How many cables and switches are remembered. */
uint32_t damping_remembered(const struct damping *damping);

#endif
