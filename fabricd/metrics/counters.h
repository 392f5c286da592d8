/*
 * count.h - what has happened since the start, counted, for fabricctl metrics and the metrics file.
 *
 * Any thread, without a lock.
 */
#ifndef FABRICD_COUNT_H
#define FABRICD_COUNT_H

#include <stdint.h>

/* What each is called outside, and its help, stand in metrics.c. */
enum count {
    COUNT_SWEEPS_OK,
    COUNT_SWEEPS_PARTIAL,
    COUNT_SWEEPS_FAILED,
    COUNT_PUBLISHED,
    COUNT_HOOKS,
    COUNT_HOOKS_FAILED,
    COUNT_HOOKS_DROPPED,
    COUNT_DELIVERIES, /* accepted; those refused by their reason */
    COUNT_CONNECTIONS,
    COUNT_TRIMMED,
    COUNT_BACKUPS,
    COUNT_SCANS,
    COUNT_SCANS_FAILED,
    COUNT_KINDS
};

void count(enum count what);
void count_add(enum count what, uint64_t n);
uint64_t counted(enum count what);

/* Published changes by kind (enum fab_change_kind), refused deliveries by reason (PMIXFAB_ERR_...). */
void count_change(unsigned kind);
uint64_t counted_changes(unsigned kind);
void count_refused(int code);
uint64_t counted_refused(int code);

/* `changed` is called, on whatever thread counts, at the first count after each call of count_seen(). NULL:
 * no more. */
void count_listen(void (*changed)(void *cbdata), void *cbdata);
void count_seen(void);

#endif
