/*
 * supervisor.h - restart policy of a child that stays: when the next one may start, and the data of the last
 * loss for operators. It starts nothing and reads no clock: its caller does both.
 */
#ifndef FABRICD_PROCESS_SUPERVISOR_H
#define FABRICD_PROCESS_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/base/backoff.h"

struct supervisor {
    struct backoff again; /* pauses after children that were lost early, milliseconds */
    int64_t good_ms;      /* a child that lived longer resets the pauses */
    int64_t began;        /* start of the last one; milliseconds of the monotonic clock, as `now` below */
    int64_t not_before;   /* earliest start of the next one */
    unsigned replaced;    /* number of losses */
    int64_t last;         /* time of the last loss, microseconds since 1970; 0: none */
    char why[300];        /* reason of the last loss, clean text; "": none */
};

/* Note the start of a child. */
void supervisor_began(struct supervisor *supervisor, int64_t now);

/* Note that the child works, however long it has lived. */
void supervisor_good(struct supervisor *supervisor);

/*
 * Note the loss of the child. served: the child had begun to do its work. Otherwise the loss counts as an
 * early loss. why: any text. real: microseconds since 1970. Returns the pause before the next start,
 * milliseconds.
 */
int64_t supervisor_lost(struct supervisor *supervisor, const char *why, bool served, int64_t now,
                        int64_t real);

/* Return the milliseconds until the next child may start; 0: now. */
int64_t supervisor_wait(const struct supervisor *supervisor, int64_t now);

#endif
