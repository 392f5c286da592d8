/*
 * store_tables.h - the contents of the store:
 * - the last published inventory, and the planes with their numbers and last snapshots
 * - all generations, and the history of changes
 * - the reports of hosts
 * - absent objects, findings, announced swaps, and endpoints.
 *
 * One thread at a time may use the store. Data passed to a callback is valid while the callback runs. A
 * callback ends the walk by a return value other than 0; the walk is then still a success. A callback must
 * not call the store. Written data is on the disk when a function returns.
 */
#ifndef FABRICD_STORE_STORE_TABLES_H
#define FABRICD_STORE_STORE_TABLES_H

#include "fabricd/store/store.h"
#include "topo/changes/changes.h"
#include "topo/model/inventory.h"

struct pmixfab;

/* A PMIx library that sets no value sends 0: no plane has that number. */
#define STORE_FIRST_PLANE 1

/* A plane of the store. */
struct store_plane {
    uint32_t index;
    bool was_zero;       /* at a publication: it has its number from now on; in the store it is still 0 */
    bool retired;        /* not part of the fabric any more; the number stays in use */
    uint64_t generation; /* of its last change */
    char name[64];
    void *snapshot; /* the bytes of its last snapshot */
    size_t size;
    struct pmixfab *fab; /* a handle for them, borrowed; NULL: not opened */
};

/* Load the last published inventory, finished and named; an empty finished one if nothing was published. */
int store_load_inventory(struct store *store, struct fab_inventory *inv, struct fab_err *err);

/* Load all planes, with the retired ones, by index. Free with store_planes_free(). */
int store_load_planes(struct store *store, struct store_plane **planes, uint32_t *n, struct fab_err *err);
void store_planes_free(struct store_plane *planes, uint32_t n);

/* Return the newest generation (0: none yet) and its time (microseconds since 1970). */
int store_generation(struct store *store, uint64_t *generation, int64_t *published, struct fab_err *err);

/* Return the newest generation that was published before this time; 0: no such generation is left. */
int store_generation_before(struct store *store, int64_t time, uint64_t *generation, struct fab_err *err);

/* Return the times at which the newest two generations were published, the newest first; 0: none. */
int store_newest_times(struct store *store, int64_t published[2], struct fab_err *err);

/* ---- reports of hosts ---- */

/* The last delivered report of a host. The store does not read the bytes. */
struct store_report {
    const char *host;
    uint64_t digest;  /* of the bytes; never 0 */
    int64_t received; /* microseconds since 1970 */
    unsigned uid;     /* the user who delivered it */
    const void *bytes;
    size_t size;
};
typedef int (*store_report_fn)(const struct store_report *report, void *cbdata);

/* Load all reports, by host. PMIXFAB_ERR_CORRUPT: a row differs from the one that was written. */
int store_reports_load(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err);

/* Store reports, each in place of its host's last one: all or none. */
int store_reports_put(struct store *store, const struct store_report *reports, uint32_t n,
                      struct fab_err *err);

/* Delete a report. PMIXFAB_ERR_NOTFOUND: there is none. */
int store_report_forget(struct store *store, const char *host, struct fab_err *err);

/* Load the last published reports (store_publication.announced) in the same way: host and digest only. */
int store_reports_published(struct store *store, store_report_fn fn, void *cbdata, struct fab_err *err);
/* Return the bytes of the last published report of a host; free(*bytes). PMIXFAB_ERR_NOTFOUND. */
int store_report_published(struct store *store, const char *host, void **bytes, size_t *size,
                           struct fab_err *err);

/* ---- absent objects, kept over a restart: missing, while the place is kept, and lost from then on ---- */

#define RETAINED_BOOT_MAX 40

/* A port of an HCA whose cable is not seen; or a switch. If an HCA is missing as a whole, each of its ports
 * has an entry. */
struct retained_place {
    uint64_t guid;
    uint32_t port;   /* 0: a switch (in the stored list also an HCA, from older versions) */
    int64_t since;   /* by the wall clock: the first sweep that did not see it */
    int64_t seen;    /* the last sweep that did; 0: not known */
    int64_t counted; /* start of its time, by the running clock of the list's boot */
    bool forgotten;  /* to be retired now, requested by an operator; not stored */
};
struct retained {
    struct retained_place *places; /* by GUID and port */
    uint32_t n;
    char boot[RETAINED_BOOT_MAX]; /* id of the machine's boot */
};

void retained_free(struct retained *missing); /* leaves it empty */

struct absent {
    struct retained missing;
    struct fab_lost lost; /* finished */
};
void absent_free(struct absent *absent); /* leaves it empty */

/* Load the absent objects. *out is initialised here. PMIXFAB_ERR_CORRUPT: a row differs from the one that was
 * written. */
int store_absent_load(struct store *store, struct absent *out, struct fab_err *err);

/* Write the change from one state to the next: missing objects, and the rows of lost ones that differ. */
int store_lost_put(struct store *store, const struct absent *before, const struct absent *after,
                   struct fab_err *err);

/* ---- publications ---- */

/* A change to publish. It is stored completely or not at all, in one transaction. */
struct store_publication {
    /* Called when everything is written, right before the commit: its error fails the publication. NULL:
     * none. */
    int (*ready)(void *data, struct fab_err *err);
    void *ready_data;
    /*
     * The result of store_next_generation(). 0: there is no new generation, because only facts changed that
     * are not served. The diff is then not recorded.
     */
    uint64_t generation;
    int64_t published;
    bool partial;                       /* the operator accepted a partial sweep, or it was the first */
    const struct fab_inventory *before; /* the present contents: only rows that differ are written */
    const struct fab_inventory *after;  /* if it is the same object, it is neither written nor checked */
    const struct fab_diff *diff;        /* for the history; may be NULL */
    const struct store_plane *planes;   /* changed, new and retired ones; others stay */
    uint32_t n_planes;
    /* Reports that were not published before (host and digest: of the stored one), and those that are not
     * published any more (digest 0). */
    const struct store_report *announced;
    uint32_t n_announced;
    /*
     * Absent objects: the present contents and the new contents. Lost objects only change with a
     * generation. NULL: no change.
     */
    const struct absent *absent_before, *absent;
};

/*
 * Publish. PMIXFAB_ERR_CONFLICT: the generation does not follow the newest one, or the store does not have
 * `before`; _BUSY, _IO (a full disk, ...), _CORRUPT. After any error the store is unchanged, and the next
 * call can succeed.
 */
int store_publish(struct store *store, const struct store_publication *publication, struct fab_err *err);

/* A change of the history; oldest first. */
struct store_change {
    uint64_t generation;
    uint32_t seq; /* in its generation */
    int64_t time;
    const char *kind, *what, *before, *after;
    const char *why;               /* empty: none */
    const char *subjects;          /* names of hosts and switches, separated by line ends */
    bool planned;                  /* it was announced by the operator */
    int64_t first_seen, last_seen; /* as in struct fab_change; 0: not known */
};
/*
 * Convert the subjects of a struct fab_change (NULL allowed) to this form. Free the result with free().
 * NULL: no memory.
 */
char *store_subject_lines(const char *subjects);

typedef int (*store_change_fn)(const struct store_change *change, void *cbdata);

/*
 * Read changes of generations from+1..to. limit 0: all changes, else the newest. `what` can be one of these:
 * - NULL
 * - a subject of a change: changes with this subject, found by an index, and changes without a subject that
 *   mention it
 * - else a part of the texts what, before or after.
 */
int store_history(struct store *store, uint64_t from, uint64_t to, const char *what, uint32_t limit,
                  store_change_fn fn, void *cbdata, struct fab_err *err);

/* The same in pages, for use on the loop: no call takes more than some milliseconds, however long the history
 * is. A range goes from its first place up to before its end. */
struct store_place {
    uint64_t generation;
    uint32_t seq; /* of a change in its generation */
};
struct store_range {
    struct store_place first, end;
};
struct store_range store_range(uint64_t from, uint64_t to); /* of generations from+1..to */

/* Read the newest changes of the range, oldest first, at most `limit` (from 1). With `what`, a call examines
 * at most this number of changes, so it may find none while more are left. *range is the rest. fn does not
 * end the walk. */
#define STORE_LOOKED_THROUGH 30000
int store_history_older(struct store *store, struct store_range *range, const char *what, uint32_t limit,
                        store_change_fn fn, void *cbdata, struct fab_err *err);
/* Read the oldest changes of the range in the same way; fn may end the walk. */
int store_history_newer(struct store *store, struct store_range *range, uint32_t limit, store_change_fn fn,
                        void *cbdata, struct fab_err *err);

/* Return whether the history has a change of a host or switch of this name. */
int store_knows_subject(struct store *store, const char *name, bool *known, struct fab_err *err);

/* ---- bounds of the history ---- */

struct store_bounds {
    uint64_t trimmed; /* changes of generations up to this one were removed (0: none) */
    uint64_t changes; /* rows of history */
    uint64_t above;   /* the next generation is larger than this one, too */
};
int store_bounds(struct store *store, struct store_bounds *out, struct fab_err *err);

/* Above any generation: with one per microsecond it takes 9,000 years to get there. */
#define STORE_MAX_GENERATION ((uint64_t)1 << 58)

/* Return the number of the next store_publish(). */
int store_next_generation(struct store *store, uint64_t *next, struct fab_err *err);

/* The data to remove. The newest generation always stays. */
struct store_limits {
    int64_t before;   /* generations published before this time (microseconds since 1970); 0: no limit */
    uint64_t changes; /* the oldest, while there are more changes than this; 0: no limit */
};
struct store_trimmed {
    uint32_t rows;    /* removed by this step */
    uint64_t trimmed; /* as in store_bounds() */
    bool more;        /* call again */
};

/* Do one short step of trimming: some milliseconds and one transaction, which writes nothing if there is
 * nothing to do. */
int store_trim(struct store *store, const struct store_limits *limits, struct store_trimmed *out,
               struct fab_err *err);

/* Return free pages to the file system in one short step, if there are many. *more: call again. */
int store_shrink(struct store *store, bool *more, struct fab_err *err);

struct store_pages {
    uint64_t pages, free, page_size;
    bool shrinks; /* false: made by an older fabricd; free pages are reused, but not returned */
};
int store_pages(struct store *store, struct store_pages *out, struct fab_err *err);

/* ---- names: all names of a host or switch over time ---- */

/* Limit of the names that are followed. */
#define STORE_NAMES_MAX 64

struct store_name {
    const char *name;
    uint64_t from, to; /* generations in which it is followed; to 0: until now */
};
typedef int (*store_name_fn)(const struct store_name *name, void *cbdata);

/* Return the other names that store_history() follows for `what`, by name, each with its generations. */
int store_names(struct store *store, const char *what, store_name_fn fn, void *cbdata, struct fab_err *err);

/* ---- generations that were published and that the store does not have ---- */

struct store_gone {
    uint64_t above, newest; /* generations above+1 to newest */
    int64_t found;          /* microseconds since 1970 */
    char why[400];
};

/* Load those that the history would still have, by number. free(*list). */
int store_gone_load(struct store *store, struct store_gone **list, uint32_t *n, struct fab_err *err);

/* Add them; later numbers are above these. */
int store_gone_add(struct store *store, const struct store_gone *gone, struct fab_err *err);

/* ---- findings ---- */

/* Times are microseconds since 1970. */
struct store_finding {
    uint64_t id;
    const char *kind, *place;
    uint64_t state;
    int64_t since, came; /* first and last time that it came */
    int64_t gone;        /* 0: it is present */
    uint32_t comings;
    int64_t acked;       /* 0: not acknowledged */
    int64_t acked_until; /* 0: until it changes */
    unsigned acked_by;   /* uid */
};
typedef int (*store_finding_fn)(const struct store_finding *row, void *cbdata);

/* Load all, by id as a signed number. PMIXFAB_ERR_CORRUPT: a row differs from the one that was written. */
int store_findings_load(struct store *store, store_finding_fn fn, void *cbdata, struct fab_err *err);

/* Store rows, each in place of that with its id, and delete those whose comings are 0: all or none. */
int store_findings_put(struct store *store, const struct store_finding *const *rows, uint32_t n,
                       struct fab_err *err);

/* ---- announced swaps ---- */

struct store_planned {
    const char *name;     /* of a host or a switch */
    int64_t since, until; /* microseconds since 1970 */
    unsigned uid;         /* the user who announced it */
};
typedef int (*store_planned_fn)(const struct store_planned *row, void *cbdata);

/* Load all, by name. */
int store_planned_load(struct store *store, store_planned_fn fn, void *cbdata, struct fab_err *err);

/* Store an announcement; it replaces an earlier one of the same name. */
int store_planned_put(struct store *store, const struct store_planned *row, struct fab_err *err);
int store_planned_delete(struct store *store, const char *name, struct fab_err *err);

/* ---- endpoints of jobs ---- */

/* Numbers of a plane, from first to last, assigned to a job. */
struct store_endpoints {
    const char *plane, *job;
    uint32_t first, last;
    unsigned uid;
    int pid;          /* of the job's starter; */
    uint64_t started; /* its start time, in ticks since boot; 0: not known */
    int64_t since;    /* microseconds since 1970 */
    const char *boot; /* id of the host's boot; only for added rows */
};
typedef int (*store_endpoints_fn)(const struct store_endpoints *row, void *cbdata);

/* Load all, by plane and number. */
int store_endpoints_load(struct store *store, store_endpoints_fn fn, void *cbdata, struct fab_err *err);

/* Delete those of another boot: their starters have ended. */
int store_endpoints_forget(struct store *store, const char *boot, struct fab_err *err);

/* Add all or none. Error: a number is assigned already. */
int store_endpoints_add(struct store *store, const struct store_endpoints *rows, uint32_t n,
                        struct fab_err *err);

/* Delete those of a starter (pid, started) and, if job is not NULL, of this job and user. */
int store_endpoints_delete(struct store *store, const struct store_endpoints *who, struct fab_err *err);

#endif
