/*
 * history_trim.h - the stored history: keep it within its configured bounds, in short steps while nothing is
 * published, and compare it with its digests once.
 */
#ifndef FABRICD_JOBS_HISTORY_TRIM_H
#define FABRICD_JOBS_HISTORY_TRIM_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabricd/base/counts.h"
#include "fabricd/config/config.h"

/* ---- trust in the wall clock, which can be set wrongly while the daemon runs ---- */

/* All times in microseconds; {0} is the initial state. */
struct clock_trust {
    bool read, jumped;
    int64_t offset;  /* of the wall clock against the boot clock, at the last reading */
    int64_t jump_at; /* when a jump was detected, by the boot clock */
};

#define CLOCK_JUMP  3600000000LL  /* the least jump */
#define CLOCK_TRUST 86400000000LL /* time without a jump before data is removed by age */

/*
 * Read the clocks into `trust`. wall: CLOCK_REALTIME, boot: CLOCK_BOOTTIME. Return true if two conditions
 * hold. The clock has not jumped since the first reading, or for a day. And `latest`, a time recorded by this
 * clock, is not in the future.
 */
bool clock_trusted(struct clock_trust *trust, int64_t wall, int64_t boot, int64_t latest);

/* ---- bounds ---- */

struct store;
struct trim;

/*
 * busy() is called before each step. It returns whether a publication is running or due, because a
 * publication must not be delayed.
 */
int trim_new(struct event_base *base, const struct config *config, struct counts *counts, struct store *store,
             bool (*busy)(void *cbdata), void *cbdata, struct trim **out, struct fab_err *err);
void trim_free(struct trim *trim); /* NULL allowed */

/* Check the length of the history soon. Without this call no check is made. */
void trim_soon(struct trim *trim);

/* ---- comparison of the history with its digests, on a thread of its own ---- */

/*
 * Compare the history of the store at this path. The store is only read. changed() is called on the loop if
 * the history differs or cannot be compared. NULL: there is no memory, and nothing is compared.
 */
struct history_check;
struct history_check *history_check_new(struct event_base *base, const char *path, uint64_t newest,
                                        void (*changed)(void *cbdata), void *cbdata);
void history_check_free(struct history_check *check); /* waits for its thread; NULL allowed */

/* Return a message that names the changed generation, if the history differs from its digests; else NULL.
 * NULL allowed. */
const char *history_check_fault(const struct history_check *check);

#endif
