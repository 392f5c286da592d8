/*
 * refusals.h - the origins on whose messages fronts were lost: the next ones do not take them in for a while.
 *
 * First for REFUSED_FIRST seconds, with each time twice as long, up to REFUSED_MOST. What is noted is a
 * front's word, and a stranger may have taken that front over. So root, this process's user and the nodes'
 * user are never refused: such a front could else lock out all who matter, for longer than it lives. The
 * other side of that: an address is refused with all that is there, a node's fabricd among them.
 */
#ifndef FABRICD_FRONT_REFUSALS_H
#define FABRICD_FRONT_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

#include "guard/guard.h"
#include "topo/base/backoff.h"

#define REFUSED_FIRST 10
#define REFUSED_MOST  3600
#define REFUSED_AGAIN 3600 /* seconds after its end: then it begins at the first again */
#define REFUSALS_MAX  64   /* then the one that ends first is forgotten */

struct refusal {
    struct guard_origin origin;
    struct backoff again; /* seconds */
    unsigned seconds;     /* how long the last one is, or was; 0: no entry */
    int64_t until;        /* milliseconds of the monotonic clock */
};

/* Begins as zeros. */
struct refusals {
    struct refusal all[REFUSALS_MAX];
};

/* A front was lost on a message of it. For how many seconds it is refused now; 0: it is one that is not. */
unsigned refusals_add(struct refusals *refusals, const struct guard_origin *origin, const uid_t *spared,
                      unsigned n_spared, int64_t now);

/* Those that are refused now, from *at on, which goes on behind it. NULL: no more. */
const struct refusal *refusals_next(const struct refusals *refusals, unsigned *at, int64_t now);

/* "uid 1000", "192.0.2.7"; "" without any. text: ORIGIN_TEXT bytes (front.h). */
void origin_text(const struct guard_origin *origin, char *text);

#endif
