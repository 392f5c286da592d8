/* cpus.h - sets of processors, by the numbers that the operating system gives them. */
#ifndef FAB_TOPO_BASE_CPUS_H
#define FAB_TOPO_BASE_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAB_CPUS_MAX 4096 /* processors of a machine */

struct fab_cpus {
    uint64_t words[FAB_CPUS_MAX / 64];
};

/*
 * A list as taskset(1) and hwloc write it: "0-11,24-35", "0-14:2" for every second one. False, and *out is
 * empty: another form, no processor, or one whose number is too high.
 */
bool fab_cpus_parse(const char *text, struct fab_cpus *out);

/* The one list of this set that the facts have. False: it does not fit, or the set is empty. */
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

/* The first processor of the set from `from` on; FAB_CPUS_MAX: none. */
unsigned fab_cpus_next(const struct fab_cpus *cpus, unsigned from);

bool fab_cpus_meet(const struct fab_cpus *a, const struct fab_cpus *b);

#endif
