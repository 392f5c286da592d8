/*
 * store_absent.h - what is absent, kept over a restart: missing, while its place is kept, and lost from then
 * on.
 */
#ifndef FABRICD_STORE_STORE_ABSENT_H
#define FABRICD_STORE_STORE_ABSENT_H

#include "fabricd/store/store.h"
#include "topo/changes/lost_list.h"

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

/* From one state to the next: what is missing, and (of what was lost, and where `lost`) rows that differ. In
 * a transaction (handle.h). */
int store_write_absent(struct store *store, const struct absent *before, const struct absent *after,
                       bool lost, struct fab_err *err);

/* The same by itself, on the disk when this returns. */
int store_lost_put(struct store *store, const struct absent *before, const struct absent *after,
                   struct fab_err *err);

#endif
