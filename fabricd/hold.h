/*
 * hold.h - which ends of cables come and go too often, and are taken as down until they are quiet.
 *
 * An end (a port of a switch) whose cable changes (came, or went) `count` times within `window` is held down
 * for `down`. Each change while it is held begins that anew and doubles it, up to `down_max`. When the time
 * is over it is released. If it flaps again, it is held for twice as long as the last time; but for each
 * `window` that it was quiet after its release, that is halved, down to `down`.
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

struct hold;
struct hold *hold_new(const struct hold_limits *limits); /* NULL: out of memory */
void hold_free(struct hold *hold);                       /* NULL allowed */

/*
 * The cable at this end came or went. True: from now on it is held, and was not. (Where there is no memory to
 * remember it, the change is not counted.)
 */
bool hold_change(struct hold *hold, uint64_t guid, unsigned port, int64_t now);

/* Let time pass: release those whose time is over. Returns how many. */
uint32_t hold_pass(struct hold *hold, int64_t now);

/* Is it held, and (where until is not NULL) until when? As of the last call with a time. */
bool hold_is_held(const struct hold *hold, uint64_t guid, unsigned port, int64_t *until);

/* How many are held, and when the next of them is released (0: none is). */
uint32_t hold_count(const struct hold *hold, int64_t *next);

/* How many ends are remembered. */
uint32_t hold_remembered(const struct hold *hold);

#endif
