/*
 * history_trim.h - the stored history: it is kept within its configured bounds, a short step at a time when
 * nothing is published, and compared with its digests once.
 */
#ifndef FABRICD_JOBS_HISTORY_TRIM_H
#define FABRICD_JOBS_HISTORY_TRIM_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabricd/base/counts.h"
#include "fabricd/config/config.h"

/* ---- may the clock of the day be believed? It can be set while the daemon runs, and wrongly ---- */

/* All times in microseconds; {0} is one that has seen nothing yet. */
struct clock_trust {
    bool read, jumped;
    int64_t offset;  /* of the clock of the day to the one since the boot, when it was read last */
    int64_t jump_at; /* when it was seen to have jumped, since the boot */
};

#define CLOCK_JUMP 3600000000LL /* what counts as one */
#define CLOCK_TRUST                                                                                          \
    86400000000LL /* after a jump it must go on so long before what cannot be undone is done by it */

/*
 * Look at it. True: it has not jumped since the first reading, or not for a day, and `latest`, a time written
 * down by it, is not in the future. `wall` is CLOCK_REALTIME, `boot` CLOCK_BOOTTIME.
 */
bool clock_trusted(struct clock_trust *trust, int64_t wall, int64_t boot, int64_t latest);

/* ---- within bounds ---- */

struct store;
struct trim;

/* busy: is something on its way that must not wait? It is asked before each step. */
int trim_new(struct event_base *base, const struct config *config, struct counts *counts, struct store *store,
             bool (*busy)(void *cbdata), void *cbdata, struct trim **out, struct fab_err *err);
void trim_free(struct trim *trim); /* NULL allowed */

/* The history may be too long now: look in a moment. Nothing is looked at but after this. */
void trim_soon(struct trim *trim);

/* ---- as it was published, looked at by a thread of its own ---- */

/* Of the store at this path, which stays as it is. changed() is called on the loop when it was not as it was
 * published, or cannot be compared. NULL: no memory; nothing is compared. */
struct history_check;
struct history_check *history_check_new(struct event_base *base, const char *path, uint64_t newest,
                                        void (*changed)(void *cbdata), void *cbdata);
void history_check_free(struct history_check *check); /* waits for its thread; NULL allowed */

/* Where the history is not as it was published, which generation; else NULL. NULL allowed. */
const char *history_check_fault(const struct history_check *check);

#endif
