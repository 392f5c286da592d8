/*
 * store_tables.h - what the store holds: inventory, planes, reports, generations and their history. Places
 * that are kept, findings, announced swaps and names of before have headers of their own beside this one.
 */
#ifndef FABRICD_STORE_STORE_TABLES_H
#define FABRICD_STORE_STORE_TABLES_H

#include <stdbool.h>

#include "fabricd/store/store.h"
#include "topo/changes/changes.h"
#include "topo/model/inventory.h"

struct pmixfab;
struct absent;

/* 0 is what a PMIx library sends that fills nothing in: no plane has that number. */
#define STORE_FIRST_PLANE 1

/* One plane as known to the store. */
struct store_plane {
    uint32_t index;
    bool
        was_zero; /* written: it has its number from now on, and in the store still 0, as planes had before */
    bool retired; /* not part of the fabric any more; the number stays taken */
    uint64_t generation; /* in which it last changed */
    char name[64];
    void *snapshot; /* the bytes of its last snapshot */
    size_t size;
    struct pmixfab *fab; /* a handle on them, borrowed; NULL: nobody has opened them */
};

/* The last published inventory, finished and named; an empty finished one where nothing was published. */
int store_load_inventory(struct store *store, struct fab_inventory *inv, struct fab_err *err);

/* All planes, retired ones too, by index. Free with store_planes_free(). */
int store_load_planes(struct store *store, struct store_plane **planes, uint32_t *n, struct fab_err *err);
void store_planes_free(struct store_plane *planes, uint32_t n);

/* The newest generation (0: none yet) and its time (microseconds since 1970). */
int store_generation(struct store *store, uint64_t *generation, int64_t *published, struct fab_err *err);

/* The newest generation that was published before this time; 0: there is none any more. */
int store_generation_before(struct store *store, int64_t time, uint64_t *generation, struct fab_err *err);

/* When the newest two were published, the newest one first; 0: there is none. */
int store_newest_times(struct store *store, int64_t published[2], struct fab_err *err);

/* ---- what hosts report ---- */

/* The report of one host, as delivered last. The store does not look into the bytes. */
struct store_report {
    const char *host;
    uint64_t digest;  /* of the bytes; never 0 */
    int64_t received; /* microseconds since 1970 */
    unsigned uid;     /* who delivered it */
    const void *bytes;
    size_t size;
};
typedef int (*store_report_fn)(const struct store_report *report, void *cbdata); /* non-zero ends the walk */

/* All reports, by host. What fn gets is valid while it runs; fn must not call the store. A walk that fn ends
 * is a success. PMIXFAB_ERR_CORRUPT: a row is not the one that was written. */
int store_reports_load(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err);

/* Store reports, each in place of its host's last one: all or none, on the disk when this returns. */
int store_reports_put(struct store *store, const struct store_report *reports, uint32_t n,
                      struct fab_err *err);

/* PMIXFAB_ERR_NOTFOUND: there is none. */
int store_report_forget(struct store *store, const char *host, struct fab_err *err);

/* As above, of the reports that were published last (store_publication.announced): host and digest only. */
int store_reports_published(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err);
/* The bytes of the one of a host; free(*bytes). PMIXFAB_ERR_NOTFOUND. */
int store_report_published(struct store *store, const char *host, void **bytes, size_t *size,
                           struct fab_err *err);

/* A change to publish: all of it or nothing, in one transaction. */
struct store_publication {
    /* Asked when everything is written, right before the commit: an error of it is that of the whole. NULL:
     * nobody. */
    int (*ready)(void *data, struct fab_err *err);
    void *ready_data;
    /* As store_next_generation() says. Or 0: no new generation, only facts of the inventory that are not
     * served; the diff is then not recorded. */
    uint64_t generation;
    int64_t published;
    bool partial;                       /* the operator accepted a partial sweep, or it was the first */
    const struct fab_inventory *before; /* what the store holds now: only rows that differ are written */
    const struct fab_inventory *after;  /* where it is the same one, nothing of it is written or checked */
    const struct fab_diff *diff;        /* goes into the history; may be NULL */
    const struct store_plane *planes;   /* those that changed, are new, or retire; others are left alone */
    uint32_t n_planes;
    /* Reports that were not published before (host and digest: the one that is stored), and those that are
     * published no more (digest 0). */
    const struct store_report *announced;
    uint32_t n_announced;
    /* What is absent (store_absent.h): what the store holds, and what it shall hold; what was lost, with a
     * generation only. NULL: as it is. */
    const struct absent *absent_before, *absent;
};

/*
 * PMIXFAB_ERR_CONFLICT where the generation does not follow the newest or the store does not hold `before`;
 * _BUSY, _IO (a full disk, ...), _CORRUPT. After any error the store is as before, and the next call can
 * succeed.
 */
int store_publish(struct store *store, const struct store_publication *publication, struct fab_err *err);

/* History, oldest first. */
struct store_change {
    uint64_t generation;
    uint32_t seq; /* in it */
    int64_t time;
    const char *kind, *what, *before, *after;
    const char *why;               /* empty: not told */
    const char *subjects;          /* names of hosts and switches, a line each, without an end of the last */
    bool planned;                  /* the operator had announced it */
    int64_t first_seen, last_seen; /* as in struct fab_change; 0: not known */
};
typedef int (*store_change_fn)(const struct store_change *change, void *cbdata); /* non-zero ends the walk */

/*
 * Changes of generations from+1..to; limit 0: all (else the newest). `what` NULL; or a subject of a change:
 * those about it, found by an index, and those about nobody that have it in their `what`; or else a part of
 * the texts what, before or after, looked for in all. A walk that fn ends is a success. fn must not call the
 * store.
 */
int store_history(struct store *store, uint64_t from, uint64_t to, const char *what, uint32_t limit,
                  store_change_fn fn, void *cbdata, struct fab_err *err);

/* The same in pages, for the loop, that nobody waits for another one's question: none takes more than some
 * milliseconds, however long the history is. The range is of places, from the first one up to before the end.
 */
struct store_place {
    uint64_t generation;
    uint32_t seq; /* of a change in it */
};
struct store_range {
    struct store_place first, end;
};
struct store_range store_range(uint64_t from, uint64_t to); /* of generations from+1..to */

/* The newest of the range, oldest first, not more than limit (from 1). With `what` no more than so many are
 * looked through: there may be none, and more in what is left. *range is what is left. fn does not end the
 * walk. */
#define STORE_LOOKED_THROUGH 30000
int store_history_older(struct store *store, struct store_range *range, const char *what, uint32_t limit,
                        store_change_fn fn, void *cbdata, struct fab_err *err);
/* The oldest of the range, likewise; fn may end the walk. */
int store_history_newer(struct store *store, struct store_range *range, uint32_t limit, store_change_fn fn,
                        void *cbdata, struct fab_err *err);

/* Is a change of the history about a host or switch of this name? */
int store_knows_subject(struct store *store, const char *name, bool *known, struct fab_err *err);

/* ---- the history within bounds ---- */

struct store_bounds {
    uint64_t trimmed; /* changes of generations up to this one are no more (0: all are there) */
    uint64_t changes; /* rows of history */
    uint64_t above;   /* the next generation is above this one, too */
};
int store_bounds(struct store *store, struct store_bounds *out, struct fab_err *err);

/* No generation is as high as this: one each microsecond gets there in 9,000 years. */
#define STORE_MAX_GENERATION ((uint64_t)1 << 58)

/* The number that store_publish() takes next. */
int store_next_generation(struct store *store, uint64_t *next, struct fab_err *err);

/* Readers have seen this generation, although the store does not know it (it was restored from a backup): the
 * next one is above it. PMIXFAB_ERR_RANGE. */
int store_raise(struct store *store, uint64_t above, struct fab_err *err);

/* Generations that were given out and that the store does not have (store_gone.h). */
struct store_gone {
    uint64_t above, newest; /* generations above+1 to newest */
    int64_t found;          /* microseconds since 1970 */
    char why[400];
};

/* What may go. The newest generation never does. */
struct store_limits {
    int64_t before;   /* generations published before this time (microseconds since 1970); 0: no limit */
    uint64_t changes; /* the oldest, while there are more changes than this; 0: no limit */
};
struct store_trimmed {
    uint32_t rows;    /* that this step removed */
    uint64_t trimmed; /* as store_bounds() */
    bool more;        /* call again */
};

/* One short step of trimming: some milliseconds and one transaction, which writes nothing where there is
 * nothing to do. */
int store_trim(struct store *store, const struct store_limits *limits, struct store_trimmed *out,
               struct fab_err *err);

/* One short step of giving free pages back to the file system, where there are many. *more: call again. */
int store_shrink(struct store *store, bool *more, struct fab_err *err);

struct store_pages {
    uint64_t pages, free, page_size;
    bool shrinks; /* false: made by an older fabricd; free pages are used again, but not given back */
};
int store_pages(struct store *store, struct store_pages *out, struct fab_err *err);

#endif
