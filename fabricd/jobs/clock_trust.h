/*
 * clock_trust.h - may the clock of the day be believed? It can be set while the daemon runs, and wrongly.
 */
#ifndef FABRICD_JOBS_CLOCK_TRUST_H
#define FABRICD_JOBS_CLOCK_TRUST_H

#include <stdbool.h>
#include <stdint.h>

/* All times in microseconds; {0} is one that has seen nothing yet. */
struct clock_trust {
    bool read, jumped;
    int64_t offset;  /* of the clock of the day to the one since the boot, when it was read last */
    int64_t jump_at; /* when it was seen to have jumped, since the boot */
};

/* As if it had jumped now. */
void clock_doubt(struct clock_trust *trust, int64_t boot);

#define CLOCK_JUMP 3600000000LL /* what counts as one */
#define CLOCK_TRUST                                                                                          \
    86400000000LL /* after a jump it must go on so long before what cannot be undone is done by it */

/*
 * Look at it. True: it has not jumped since the first reading, or not for a day, and `latest`, a time written
 * down by it, is not in the future. `wall` is CLOCK_REALTIME, `boot` CLOCK_BOOTTIME.
 */
bool clock_trusted(struct clock_trust *trust, int64_t wall, int64_t boot, int64_t latest);

#endif
