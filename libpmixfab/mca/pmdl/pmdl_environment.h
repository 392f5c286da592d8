/*
 * pmdl_environment.h - set the device that a local process should use in its environment, if a site enables
 * it. docs/design/component.md describes this for each launcher.
 */
#ifndef FAB_MCA_PMDL_PMDL_ENVIRONMENT_H
#define FAB_MCA_PMDL_PMDL_ENVIRONMENT_H

#include <pmix_common.h>

#include "place/environment.h"
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
void pmdl_environment_set(const pmix_proc_t *proc, unsigned wanted,
                          const enum fab_env_from order[FAB_ENV_FROMS], char ***env);

/*
 * Remember the process's variables for the next pmdl_environment_set(): from 7 on the library's components
 * overwrite them before pmdl is called. On the same thread.
 */
void pmdl_environment_note(const pmix_proc_t *proc, char *const *env);

#endif
