/*
 * pmdl_environment.h - set the device that a local process should use in its environment, if a site enables
 * it. docs/design/component.md describes this for each launcher.
 */
#ifndef FAB_MCA_PMDL_PMDL_ENVIRONMENT_H
#define FAB_MCA_PMDL_PMDL_ENVIRONMENT_H

#include <pmix_common.h>

#include "pmix/launch/job_map.h"
#include "pmix/rundir/snapshots.h"

/*
 * Remember a job for pmdl_environment_set(). The choice is among the devices of `host` in planes[plane].
 * Takes over the content of *here if there is memory for it.
 */
void pmdl_environment_keep(const char *nspace, struct rundir_planes *planes, uint32_t plane, uint32_t host,
                           struct fab_job_here *here);
void pmdl_environment_forget(const char *nspace); /* NULL: all jobs */

/* From the host, on any thread, or in the process itself between fork and exec. `wanted`: enum fab_env. */
void pmdl_environment_set(const pmix_proc_t *proc, unsigned wanted, char ***env);

#endif
