/* news.h - announce changes of the fabric to the clients of this process's server, as pairs of events. */
#ifndef FAB_MCA_PMDL_NEWS_H
#define FAB_MCA_PMDL_NEWS_H

#include "pmix/rundir/snapshots.h"

/*
 * Start, until the stop; a second call does nothing. Call it after the library's initialization: the thread
 * detects the library's end by its count of initializations. Return false if the run directory cannot be
 * watched.
 */
bool pmdl_news_start(struct rundir_snapshots *snapshots, const char *rundir);

/* The library's thread does not run any more. */
void pmdl_news_stop(void);

#endif
