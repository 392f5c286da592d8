/* job.h - a job of the library's: where its ranks are, and what it is told. */
#ifndef FAB_MCA_PMDL_JOB_H
#define FAB_MCA_PMDL_JOB_H

#include "mca/pmdl/component.h"
#include "pmix/launch/launch.h"
#include "pmix/rundir/snapshots.h"

/* Put what the planes (the default one first) say of a job's hosts into its information. On the library's
 * thread. Says itself what could not be done. `keep`: which devices its local processes are to use is kept
 * for their environment. */
void pmdl_job_tell(pmix_namespace_t *job, struct rundir_planes *planes, bool standard, bool keep);

#endif
