/* cpus.h - sets of processors, by the numbers that the operating system gives them. */
#ifndef FAB_TOPO_BASE_CPUS_H
#define FAB_TOPO_BASE_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAB_CPUS_MAX 4096 /* maximum number of processors of a machine */

struct fab_cpus {
    uint64_t words[FAB_CPUS_MAX / 64];
};

/*
 * Parse a list as taskset(1) and hwloc write it: "0-11,24-35", or "0-14:2" for every second one. Return
 * false, with *out empty, for another form, for an empty list, or for a number that is too large.
 */
bool fab_cpus_parse(const char *text, struct fab_cpus *out);

/* Write the set in the one form that facts use. Return false if it does not fit or the set is empty. */
bool fab_cpus_text(const struct fab_cpus *cpus, char *out, size_t size);

static inline void fab_cpus_add(struct fab_cpus *cpus, unsigned cpu)
{
    if (cpu < FAB_CPUS_MAX)
        cpus->words[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

static inline bool fab_cpus_has(const struct fab_cpus *cpus, unsigned cpu)
{
    return cpu < FAB_CPUS_MAX && (cpus->words[cpu / 64] >> cpu % 64 & 1) != 0;
}

/* Return the first processor of the set that is not below `from`; FAB_CPUS_MAX if there is none. */
unsigned fab_cpus_next(const struct fab_cpus *cpus, unsigned from);

bool fab_cpus_meet(const struct fab_cpus *a, const struct fab_cpus *b);

#endif
