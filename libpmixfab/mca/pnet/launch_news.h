/* launch_news.h - endpoints of jobs here that change, because a card was swapped or moved:
 * PMIX_FABRIC_UPDATE_ENDPOINTS. On the library's thread. */
#ifndef FAB_MCA_PNET_LAUNCH_NEWS_H
#define FAB_MCA_PNET_LAUNCH_NEWS_H

#include "mca/job/job.h"
#include "pmix/launch/blob.h"

/* The job was told of its endpoints: look from now on for what changes in this run directory. */
void pnet_launch_news_keep(const char *rundir, const pmix_namespace_t *job, const struct fab_blob *blob);

void pnet_launch_news_forget(const char *nspace);
void pnet_launch_news_stop(void);

#endif
