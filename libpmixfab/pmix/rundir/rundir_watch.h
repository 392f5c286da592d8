/* rundir_watch.h - a thread that waits for changes in a run directory and calls a function. */
#ifndef FAB_PMIX_RUNDIR_RUNDIR_WATCH_H
#define FAB_PMIX_RUNDIR_RUNDIR_WATCH_H

#include <stdbool.h>

struct dir_watch;

/*
 * Called on the watching thread, without any lock, when there may be a change. Return whether to call again
 * after a second in any case.
 */
typedef bool (*dir_watch_fn)(struct dir_watch *watch, void *cbdata);

/* Start; the first call is at once. PMIXFAB_ERR_NOMEM or _IO. */
int dir_watch_start(const char *rundir, dir_watch_fn look, void *cbdata, struct dir_watch **out);

/* End the thread and wait for it. NULL is allowed. */
void dir_watch_stop(struct dir_watch *watch);

/* Return whether the called function should stop early. */
bool dir_watch_stopping(const struct dir_watch *watch);

#endif
