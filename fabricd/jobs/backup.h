/*
 * backup.h - the store into a file, while it is served and published: on a thread of its own. And a backup
 * that is to be restored into a copy beside the store, where the next step finds it (store_restore_copied()).
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
void backup_free(struct backup *backup); /* NULL allowed; gives up what is under way */

struct backup_order {
    const char *file; /* absolute; not there, but for a backup of before with `force` */
    /* Not 0: `file` is a backup that is to be restored (store_restorable()), open as this descriptor, which
     * is closed at the end. */
    int restore;
    bool force;
    bool verify;     /* no copy: compare the history with its digests, of which the newest is `newest` */
    uint64_t newest; /* bytes of done() are generations then */
    void (*progress)(const char *line, void *cbdata);                          /* both on the loop */
    void (*done)(int code, const char *message, uint64_t bytes, void *cbdata); /* once */
    void *cbdata;
};

/* On error nothing is called. PMIXFAB_ERR_BUSY: there is one under way. */
int backup_start(struct backup *backup, const struct backup_order *order, struct fab_err *err);

/* What the last comparison found, for done(). */
const struct store_history_checked *backup_verified(const struct backup *backup);

/* Nobody waits for it any more: give it up; nothing is called. */
void backup_give_up(struct backup *backup);

#endif
