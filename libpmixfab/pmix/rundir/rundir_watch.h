/*
 * rundir_watch.h - a thread that sees what is published in a run directory, and has somebody look at it.
 */
#ifndef FAB_PMIX_RUNDIR_RUNDIR_WATCH_H
#define FAB_PMIX_RUNDIR_RUNDIR_WATCH_H

#include <stdbool.h>

struct dir_watch;

/* Called on the watching thread, without any lock, when something may be new. Returns whether to call it once
 * more after a second, whatever happens. */
typedef bool (*dir_watch_fn)(struct dir_watch *watch, void *cbdata);

/* Looks at once, too. PMIXFAB_ERR_NOMEM or _IO. */
int dir_watch_start(const char *rundir, dir_watch_fn look, void *cbdata, struct dir_watch **out);

/* Ends the thread and waits for it. NULL allowed. */
void dir_watch_stop(struct dir_watch *watch);

/* Whoever looks is to leave off. */
bool dir_watch_stopping(const struct dir_watch *watch);

#endif
