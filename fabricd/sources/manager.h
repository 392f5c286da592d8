/*
 * manager.h - the subnet manager of one probe's subnet, as observed by light sweeps.
 *
 * Decisions only. A busy manager may miss a query: it counts as gone after several missed queries in a row.
 */
#ifndef FABRICD_SOURCES_MANAGER_H
#define FABRICD_SOURCES_MANAGER_H

#include "probes/core/probe.h"

#define MANAGER_MISSES 3                              /* light sweeps */
#define MANAGER_USUAL  (24 * 3600 * INT64_C(1000000)) /* after so long in charge it is the usual one */

/* Times are microseconds since 1970. */
struct manager {
    struct probe_manager now; /* the last one that answered; guid 0: none yet */
    uint64_t usual;           /* GUID of the port of the usual manager */
    int64_t since;            /* first light sweep that saw the present one */
    int64_t missed_since;     /* while missed > 0 */
    unsigned missed;          /* light sweeps without an answer, up to MANAGER_MISSES: then it is gone */
};

enum manager_news { MANAGER_AS_BEFORE, MANAGER_FIRST, MANAGER_GONE, MANAGER_BACK, MANAGER_ANOTHER };

/* Process a light sweep that queried the manager. *manager begins as zeros. */
enum manager_news manager_seen(struct manager *manager, const struct probe_manager *saw, int64_t now);

static inline bool manager_is_gone(const struct manager *manager)
{
    return manager->missed >= MANAGER_MISSES;
}

/* Return whether the present manager answers and is not the usual one. */
static inline bool manager_is_another(const struct manager *manager)
{
    return manager->now.guid != 0 && manager->now.guid != manager->usual;
}

#endif
