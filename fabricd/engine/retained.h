/*
 * retained.h - since when ports and switches are missing, by a clock that nobody sets.
 *
 * For how long something has been missing is counted by the time since the machine was booted
 * (CLOCK_BOOTTIME, which goes on over a suspend); the wall clock only tells people since when. So a clock
 * that is set an hour back or forth retires nobody, at once or never, also when fabricd is restarted
 * meanwhile. After a boot of the machine, and in a store that comes from another machine, everybody's time
 * begins anew.
 */
#ifndef FABRICD_ENGINE_RETAINED_H
#define FABRICD_ENGINE_RETAINED_H

#include "fabricd/store/store_tables.h"

/* A moment by both clocks, in microseconds. */
struct moment {
    int64_t wall;
    int64_t running; /* since the boot */
    char boot[RETAINED_BOOT_MAX];
};
void moment_now(struct moment *out);

/* The list for an inventory: those that are in `before` (of another boot: anew) go on, the others begin now,
 * and were last seen at `seen`. *out is initialised here. PMIXFAB_ERR_NOMEM. */
int retained_follow(const struct retained *before, const struct fab_inventory *inv, const struct moment *now,
                    int64_t seen, struct retained *out);

struct retained_place *retained_find(const struct retained *missing, uint64_t guid, uint32_t port);

/* Has it been missing for so many seconds, or will it within the next one (so that those of one accident are
 * retired together)? */
bool retained_is_due(const struct retained_place *place, unsigned retire, const struct moment *now);

/* In how many microseconds the first port is due, not below 0; -1: none is missing. */
int64_t retained_next(const struct retained *missing, unsigned retire, const struct moment *now);

#endif
