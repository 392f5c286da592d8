/*
 * backup.h - back the store up into a file, on a thread, while it is served and published. For a restore:
 * copy a backup to a file beside the store, where the next step finds it (store_restore_copied()).
 */
#ifndef FABRICD_JOBS_BACKUP_H
#define FABRICD_JOBS_BACKUP_H

#include <event2/event.h>

#include "fabricd/base/counts.h"
#include "fabricd/config/config.h"
#include "fabricd/store/store.h"

struct backup;

int backup_new(struct event_base *base, const struct config *config, struct counts *counts,
               struct backup **out, struct fab_err *err);
void backup_free(struct backup *backup); /* NULL allowed; cancels a running one */

struct backup_order {
    const char *file; /* absolute; must not exist, except for an older backup with `force` */
    /* Not 0: `file` is a backup to restore (store_restorable()), open as this descriptor, which is closed at
     * the end. */
    int restore;
    bool force;
    bool verify;     /* no copy: compare the history with its digests up to generation `newest` */
    uint64_t newest; /* done() then gets a number of generations instead of bytes */
    void (*progress)(const char *line, void *cbdata); /* both are called on the loop */
    void (*done)(int code, const char *message, uint64_t bytes, void *cbdata); /* called once */
    void *cbdata;
};

/* Start. On error no callback follows. PMIXFAB_ERR_BUSY: a backup is running. */
int backup_start(struct backup *backup, const struct backup_order *order, struct fab_err *err);

/* Return the result of the last comparison, for done(). */
const struct store_history_checked *backup_verified(const struct backup *backup);

/* Cancel the running backup; no callback follows. */
void backup_give_up(struct backup *backup);

#endif
