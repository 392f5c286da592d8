/* news.h - changes of the fabric, as the pair of events for the clients of this process's server. */
#ifndef FAB_MCA_PMDL_NEWS_H
#define FAB_MCA_PMDL_NEWS_H

#include "pmix/rundir/snapshots.h"

/* From here on, until the stop; once more does nothing. After the library's initialization: it is by the
 * count of these that the thread knows the library's end. False: the run directory cannot be watched. */
bool pmdl_news_start(struct rundir_snapshots *snapshots, const char *rundir);

/* The library's thread stands still by now. */
void pmdl_news_stop(void);

#endif
