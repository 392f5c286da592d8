/* launch_news.h - endpoints of jobs here that change, because a card was swapped or moved:
 * PMIX_FABRIC_UPDATE_ENDPOINTS. On the library's thread. */
#ifndef FAB_MCA_PNET_LAUNCH_NEWS_H
#define FAB_MCA_PNET_LAUNCH_NEWS_H

#include "mca/job/job.h"
#include "pmix/launch/blob.h"
#include "pmix/rundir/snapshots.h"

/* What this node itself knows; planes->of stays NULL without memory. Locked until rundir_planes_put(). */
void pnet_launch_news_planes(const char *rundir, struct rundir_planes *planes);

/* The job was told of its endpoints, `own`: by these planes. Look from now on for what changes in this run
 * directory. */
void pnet_launch_news_keep(const char *rundir, const pmix_namespace_t *job, const struct fab_blob *blob,
                           bool own);

void pnet_launch_news_forget(const char *nspace);
void pnet_launch_news_stop(void);

#endif
