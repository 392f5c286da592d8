/* store_findings.h - the store's table of what looks wrong. As store.h: one thread at a time. */
#ifndef FABRICD_STORE_STORE_FINDINGS_H
#define FABRICD_STORE_STORE_FINDINGS_H

#include "fabricd/store/store.h"

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
typedef int (*store_finding_fn)(const struct store_finding *row, void *cbdata); /* non-zero ends the walk */

/* All, by id as a signed number. What fn gets is valid while it runs; fn must not call the store.
 * PMIXFAB_ERR_CORRUPT: a row is none that was written. */
int store_findings_load(struct store *store, store_finding_fn fn, void *cbdata, struct fab_err *err);

/* Put rows, each in place of that with its id, and drop those whose comings are 0: all or none, on the disk
 * when this returns. */
int store_findings_put(struct store *store, const struct store_finding *const *rows, uint32_t n,
                       struct fab_err *err);

#endif
