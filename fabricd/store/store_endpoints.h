/*
 * store_endpoints.h - the store's table of the endpoints that jobs have. One thread at a time.
 */
#ifndef FABRICD_STORE_STORE_ENDPOINTS_H
#define FABRICD_STORE_STORE_ENDPOINTS_H

#include "fabricd/store/store.h"

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
typedef int (*store_endpoints_fn)(const struct store_endpoints *row, void *cbdata); /* non-zero: the end */

/* All, by plane and number. What fn gets is valid while it runs; fn must not call the store. */
int store_endpoints_load(struct store *store, store_endpoints_fn fn, void *cbdata, struct fab_err *err);

/* Those of another boot than this id go: their starters are gone. On the disk when it returns. */
int store_endpoints_forget(struct store *store, const char *boot, struct fab_err *err);

/* All of them or none; on the disk when it returns. An error where a number is there already. */
int store_endpoints_add(struct store *store, const struct store_endpoints *rows, uint32_t n,
                        struct fab_err *err);

/* Those of a starter (pid, started); where job is not NULL, of this job and user. On the disk when it
 * returns. */
int store_endpoints_delete(struct store *store, const struct store_endpoints *who, struct fab_err *err);

/* Those of the database at this path in place of those here, where it has the table: it is newer. */
int store_endpoints_take_over(struct store *store, const char *path, struct fab_err *err);

#endif
