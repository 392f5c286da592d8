/* store_planned.h - the store's table of announced swaps. As store.h: one thread at a time. */
#ifndef FABRICD_STORE_STORE_PLANNED_H
#define FABRICD_STORE_STORE_PLANNED_H

#include "fabricd/store/store.h"

struct store_planned {
    const char *name;     /* of a host or a switch */
    int64_t since, until; /* microseconds since 1970 */
    unsigned uid;         /* who announced it */
};
typedef int (*store_planned_fn)(const struct store_planned *row, void *cbdata); /* non-zero ends the walk */

/* All, by name. What fn gets is valid while it runs; fn must not call the store. */
int store_planned_load(struct store *store, store_planned_fn fn, void *cbdata, struct fab_err *err);

/* On the disk when these return. One name is announced once: a second one replaces the first. */
int store_planned_put(struct store *store, const struct store_planned *row, struct fab_err *err);
int store_planned_delete(struct store *store, const char *name, struct fab_err *err);

#endif
