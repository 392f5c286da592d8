/*
 * supervisor.h - a child that stays and is replaced when it is lost: when the next one may start, and what
 * operators read of the last one. It starts nothing and reads no clock: its caller does both.
 */
#ifndef FABRICD_PROCESS_SUPERVISOR_H
#define FABRICD_PROCESS_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/base/backoff.h"

struct supervisor {
    struct backoff again; /* pauses between children that were lost early, milliseconds */
    int64_t good_ms;      /* a child that lived longer was a good one: the pauses begin anew */
    int64_t began;        /* the last one; milliseconds of the monotonic clock, as `now` below */
    int64_t not_before;   /* the next one */
    unsigned replaced;    /* how many were lost */
    int64_t last;         /* when, microseconds since 1970; 0: none was */
    char why[300];        /* the last one; clean text, "": none was */
};

/* A child starts. */
void supervisor_began(struct supervisor *supervisor, int64_t now);

/* The child shows that it is a good one, however long it has lived. */
void supervisor_good(struct supervisor *supervisor);

/* The child is lost; served: it has begun to do its work, else it is no good one. why: any text. real:
 * microseconds since 1970. Returns the pause before the next one, milliseconds. */
int64_t supervisor_lost(struct supervisor *supervisor, const char *why, bool served, int64_t now,
                        int64_t real);

/* Milliseconds until the next one may start; 0: now. */
int64_t supervisor_wait(const struct supervisor *supervisor, int64_t now);

#endif
