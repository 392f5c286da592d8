/*
 * manager.h - the subnet manager of one probe's subnet, by what light sweeps see of it.
 *
 * Decisions only. A manager that is busy may miss one question: it counts as gone when it has missed several,
 * one after the other.
 */
#ifndef FABRICD_SOURCES_MANAGER_H
#define FABRICD_SOURCES_MANAGER_H

#include "probes/core/probe.h"

#define MANAGER_MISSES 3                              /* light sweeps */
#define MANAGER_USUAL  (24 * 3600 * INT64_C(1000000)) /* so long in charge, and it is the usual one */

/* Times are microseconds since 1970. */
struct manager {
    struct probe_manager now; /* the one that answered last; guid 0: none ever did */
    uint64_t usual;           /* GUID of the port of the one that is usually in charge */
    int64_t since;            /* since when the one above is seen */
    int64_t missed_since;     /* while missed > 0 */
    unsigned missed;          /* light sweeps without an answer, up to MANAGER_MISSES: then it is gone */
};

enum manager_news { MANAGER_AS_BEFORE, MANAGER_FIRST, MANAGER_GONE, MANAGER_BACK, MANAGER_ANOTHER };

/* A light sweep that asked for the manager. *manager begins as zeros. */
enum manager_news manager_seen(struct manager *manager, const struct probe_manager *saw, int64_t now);

static inline bool manager_is_gone(const struct manager *manager)
{
    return manager->missed >= MANAGER_MISSES;
}

/* It answers, and is not the usual one. */
static inline bool manager_is_another(const struct manager *manager)
{
    return manager->now.guid != 0 && manager->now.guid != manager->usual;
}

#endif
