/*
 * store_expected.h - the store's table of announced swaps. As store.h: one thread at a time.
 */
#ifndef FABRICD_STORE_EXPECTED_H
#define FABRICD_STORE_EXPECTED_H

#include "fabricd/store.h"

struct store_expected {
    const char *name;     /* of a host or a switch */
    int64_t since, until; /* microseconds since 1970 */
    unsigned uid;         /* who announced it */
};
typedef int (*store_expected_fn)(const struct store_expected *row, void *cbdata); /* non-zero ends the walk */

/* All, by name. What fn gets is valid while it runs; fn must not call the store. */
int store_expected_load(struct store *store, store_expected_fn fn, void *cbdata, struct fab_err *err);

/* On the disk when these return. One name is announced once: a second one replaces the first. */
int store_expected_put(struct store *store, const struct store_expected *row, struct fab_err *err);
int store_expected_delete(struct store *store, const char *name, struct fab_err *err);

#endif
