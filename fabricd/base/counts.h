/*
 * counts.h - what has happened since the start of a role, counted, for fabricctl metrics and the metrics
 * file.
 *
 * Any thread, without a lock.
 */
#ifndef FABRICD_BASE_COUNTS_H
#define FABRICD_BASE_COUNTS_H

#include <stdint.h>

/* What each is called outside, and its help, stand with those that tell it. */
enum count {
    COUNT_SWEEPS_OK,
    COUNT_SWEEPS_PARTIAL,
    COUNT_SWEEPS_FAILED,
    COUNT_PUBLISHED,
    COUNT_HOOKS,
    COUNT_HOOKS_FAILED,
    COUNT_HOOKS_DROPPED,
    COUNT_EXPORTS, /* that said something new */
    COUNT_EXPORTS_SAME,
    COUNT_EXPORTS_FAILED,
    COUNT_EXPORT_COMMANDS,
    COUNT_EXPORT_COMMANDS_FAILED,
    COUNT_DELIVERIES, /* accepted; those refused by their reason */
    COUNT_CONNECTIONS,
    COUNT_TRIMMED,
    COUNT_BACKUPS,
    COUNT_MANAGERS, /* subnet managers that took over */
    COUNT_SCANS,
    COUNT_SCANS_FAILED,
    COUNT_CHANGES,                       /* published, by kind: see count_of_change() */
    COUNT_REFUSED = COUNT_CHANGES + 128, /* deliveries, by reason: see count_of_refused() */
    COUNT_KINDS = COUNT_REFUSED + 64
};

/* Of enum fab_change_kind. */
static inline enum count count_of_change(unsigned kind)
{
    return kind < COUNT_REFUSED - COUNT_CHANGES ? COUNT_CHANGES + kind : COUNT_CHANGES;
}

/* Of PMIXFAB_ERR_...: small negative numbers. */
static inline enum count count_of_refused(int code)
{
    return code <= 0 && code > COUNT_REFUSED - COUNT_KINDS ? COUNT_REFUSED - code : COUNT_REFUSED;
}

/* All are 0. NULL: no memory. */
struct counts;
struct counts *counts_new(void);
void counts_free(struct counts *counts); /* NULL allowed */

/* counts NULL: nothing is counted. */
void count(struct counts *counts, enum count what);
void count_add(struct counts *counts, enum count what, uint64_t n);
uint64_t counted(const struct counts *counts, enum count what);

#endif
