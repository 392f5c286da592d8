/*
 * store_tables.h - what the store holds: the inventory as last published, the planes with their numbers and
 * last snapshots, every generation and the history of changes, what hosts report, and what is remembered of
 * what is absent, looks wrong, was announced, or has numbers of endpoints.
 *
 * One thread at a time. What a function of the caller's gets of a row is valid while it runs; where it
 * returns something else than 0 the walk ends, which is a success. It must not call the store. What is
 * written is on the disk when a function returns.
 */
#ifndef FABRICD_STORE_STORE_TABLES_H
#define FABRICD_STORE_STORE_TABLES_H

#include "fabricd/store/store.h"
#include "topo/changes/changes.h"
#include "topo/model/inventory.h"

struct pmixfab;

/* 0 is what a PMIx library sends that fills nothing in: no plane has that number. */
#define STORE_FIRST_PLANE 1

/* One plane as known to the store. */
struct store_plane {
    uint32_t index;
    bool was_zero;       /* written: it has its number from now on; in the store it is still 0, as once */
    bool retired;        /* not part of the fabric any more; the number stays taken */
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
typedef int (*store_report_fn)(const struct store_report *report, void *cbdata);

/* All reports, by host. PMIXFAB_ERR_CORRUPT: a row is not the one that was written. */
int store_reports_load(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err);

/* Store reports, each in place of its host's last one: all or none. */
int store_reports_put(struct store *store, const struct store_report *reports, uint32_t n,
                      struct fab_err *err);

/* PMIXFAB_ERR_NOTFOUND: there is none. */
int store_report_forget(struct store *store, const char *host, struct fab_err *err);

/* As above, of the reports that were published last (store_publication.announced): host and digest only. */
int store_reports_published(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err);
/* The bytes of the one of a host; free(*bytes). PMIXFAB_ERR_NOTFOUND. */
int store_report_published(struct store *store, const char *host, void **bytes, size_t *size,
                           struct fab_err *err);

/* ---- what is absent, kept over a restart: missing, while its place is kept, and lost from then on ---- */

#define RETAINED_BOOT_MAX 40

/* A port of an HCA whose cable is not seen; or a switch. Of an HCA that is missing altogether each port
 * counts for itself, too. */
struct retained_place {
    uint64_t guid;
    uint32_t port;   /* 0: a switch (in a store's list also an HCA, as older versions wrote it) */
    int64_t since;   /* by the wall clock: the first sweep that did not see it */
    int64_t seen;    /* the last one that did; 0: not known */
    int64_t counted; /* by the running clock of the list's boot */
    bool forgotten;  /* an operator wants it retired now; is not stored */
};
struct retained {
    struct retained_place *places; /* by GUID and port */
    uint32_t n;
    char boot[RETAINED_BOOT_MAX]; /* of the machine, by its id */
};

void retained_free(struct retained *missing); /* leaves it empty */

struct absent {
    struct retained missing;
    struct fab_lost lost; /* finished */
};
void absent_free(struct absent *absent); /* leaves it empty */

/* *out is initialised here. PMIXFAB_ERR_CORRUPT: a row is none that was written. */
int store_absent_load(struct store *store, struct absent *out, struct fab_err *err);

/* From one state to the next: what is missing, and rows that differ of what was lost. */
int store_lost_put(struct store *store, const struct absent *before, const struct absent *after,
                   struct fab_err *err);

/* ---- publishing ---- */

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
    /* What is absent: what the store holds, and what it shall hold; what was lost, with a
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
/* The subjects of a struct fab_change (NULL allowed) so. free(); NULL: no memory. */
char *store_subject_lines(const char *subjects);

typedef int (*store_change_fn)(const struct store_change *change, void *cbdata);

/*
 * Changes of generations from+1..to; limit 0: all (else the newest). `what` NULL; or a subject of a change:
 * those about it, found by an index, and those about nobody that have it in their `what`; or else a part of
 * the texts what, before or after, looked for in all.
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

/* ---- names: a host or a switch under those that it had one after the other ---- */

/* So many names at most are followed. */
#define STORE_NAMES_MAX 64

struct store_name {
    const char *name;
    uint64_t from, to; /* generations in which it is followed; to 0: until now */
};
typedef int (*store_name_fn)(const struct store_name *name, void *cbdata);

/* The other names that store_history() follows for `what`, by name, each with its generations. */
int store_names(struct store *store, const char *what, store_name_fn fn, void *cbdata, struct fab_err *err);

/* ---- generations that were given out and that the store does not have ---- */

struct store_gone {
    uint64_t above, newest; /* generations above+1 to newest */
    int64_t found;          /* microseconds since 1970 */
    char why[400];
};

/* All that the history would still have, by number. free(*list). */
int store_gone_load(struct store *store, struct store_gone **list, uint32_t *n, struct fab_err *err);

/* Later numbers are above these. */
int store_gone_add(struct store *store, const struct store_gone *gone, struct fab_err *err);

/* ---- what looks wrong ---- */

/* Times are microseconds since 1970. */
struct store_finding {
    uint64_t id;
    const char *kind, *place;
    uint64_t state;
    int64_t since, came; /* when it came first, and last */
    int64_t gone;        /* 0: it is there */
    uint32_t comings;
    int64_t acked;       /* 0: it is not */
    int64_t acked_until; /* 0: until it changes */
    unsigned acked_by;   /* uid */
};
typedef int (*store_finding_fn)(const struct store_finding *row, void *cbdata);

/* All, by id as a signed number. PMIXFAB_ERR_CORRUPT: a row is none that was written. */
int store_findings_load(struct store *store, store_finding_fn fn, void *cbdata, struct fab_err *err);

/* Put rows, each in place of that with its id, and drop those whose comings are 0: all or none. */
int store_findings_put(struct store *store, const struct store_finding *const *rows, uint32_t n,
                       struct fab_err *err);

/* ---- announced swaps ---- */

struct store_planned {
    const char *name;     /* of a host or a switch */
    int64_t since, until; /* microseconds since 1970 */
    unsigned uid;         /* who announced it */
};
typedef int (*store_planned_fn)(const struct store_planned *row, void *cbdata);

/* All, by name. */
int store_planned_load(struct store *store, store_planned_fn fn, void *cbdata, struct fab_err *err);

/* One name is announced once: a second one replaces the first. */
int store_planned_put(struct store *store, const struct store_planned *row, struct fab_err *err);
int store_planned_delete(struct store *store, const char *name, struct fab_err *err);

/* ---- endpoints that jobs have ---- */

/* Numbers of a plane, from first to last, that a job has. */
struct store_endpoints {
    const char *plane, *job;
    uint32_t first, last;
    unsigned uid;
    int pid;          /* of the job's starter; */
    uint64_t started; /* and when it began, in ticks since boot; 0: not known */
    int64_t since;    /* microseconds since 1970 */
    const char *boot; /* of the host: its id; of what is added only */
};
typedef int (*store_endpoints_fn)(const struct store_endpoints *row, void *cbdata);

/* All, by plane and number. */
int store_endpoints_load(struct store *store, store_endpoints_fn fn, void *cbdata, struct fab_err *err);

/* Those of another boot than this id go: their starters are gone. */
int store_endpoints_forget(struct store *store, const char *boot, struct fab_err *err);

/* All of them or none. An error where a number is there already. */
int store_endpoints_add(struct store *store, const struct store_endpoints *rows, uint32_t n,
                        struct fab_err *err);

/* Those of a starter (pid, started); where job is not NULL, of this job and user. */
int store_endpoints_delete(struct store *store, const struct store_endpoints *who, struct fab_err *err);

#endif
