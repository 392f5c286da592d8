/*
 * counts.h - counters of events since the start of a role, for `fabricctl metrics` and the metrics file.
 *
 * Any thread, without a lock.
 */
#ifndef FABRICD_BASE_COUNTS_H
#define FABRICD_BASE_COUNTS_H

#include <stdint.h>

/* The names of the metrics and their help are in the code that prints them. */
enum count {
    COUNT_SWEEPS_OK,
    COUNT_SWEEPS_PARTIAL,
    COUNT_SWEEPS_FAILED,
    COUNT_PUBLISHED,
    COUNT_HOOKS,
    COUNT_HOOKS_FAILED,
    COUNT_HOOKS_DROPPED,
    COUNT_EXPORTS, /* whose content changed */
    COUNT_EXPORTS_SAME,
    COUNT_EXPORTS_FAILED,
    COUNT_EXPORT_COMMANDS,
    COUNT_EXPORT_COMMANDS_FAILED,
    COUNT_DELIVERIES, /* accepted; refused ones are counted by reason */
    COUNT_CONNECTIONS,
    COUNT_TRIMMED,
    COUNT_BACKUPS,
    COUNT_MANAGERS, /* takeovers by another subnet manager */
    COUNT_SCANS,
    COUNT_SCANS_FAILED,
    COUNT_CHANGES,                       /* published, by kind: see count_of_change() */
    COUNT_REFUSED = COUNT_CHANGES + 128, /* deliveries, by reason: see count_of_refused() */
    COUNT_KINDS = COUNT_REFUSED + 64
};

/* Return the counter of an enum fab_change_kind. */
static inline enum count count_of_change(unsigned kind)
{
    return kind < COUNT_REFUSED - COUNT_CHANGES ? COUNT_CHANGES + kind : COUNT_CHANGES;
}

/* Return the counter of a code PMIXFAB_ERR_...: a small negative number. */
static inline enum count count_of_refused(int code)
{
    return code <= 0 && code > COUNT_REFUSED - COUNT_KINDS ? COUNT_REFUSED - code : COUNT_REFUSED;
}

/* Create counters, all 0. NULL: no memory. */
struct counts;
struct counts *counts_new(void);
void counts_free(struct counts *counts); /* NULL allowed */

/* counts NULL: nothing is counted. */
void count(struct counts *counts, enum count what);
void count_add(struct counts *counts, enum count what, uint64_t n);
uint64_t counted(const struct counts *counts, enum count what);

#endif
