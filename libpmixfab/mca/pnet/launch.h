/*
 * launch.h - launch information by the standard's calls: what a job's starter hands out, and what its nodes
 * do with that. docs/design/launch.md says what is in it.
 */
#ifndef FAB_MCA_PNET_LAUNCH_H
#define FAB_MCA_PNET_LAUNCH_H

#include <src/include/pmix_config.h>

#include <src/mca/pnet/pnet.h>

/* What an operator may set. */
struct pnet_launch_params {
    const char *rundir;
    const char *coordinates; /* as the component pmdl's */
    const char *forward;     /* patterns of variables of the environment that jobs get along */
    const char *exclude;     /* and of those that they do not */
    bool launch; /* the fabric's data is handed out, and told where the node itself knows nothing */
};
extern struct pnet_launch_params pnet_launch_params;

/* PMIx_server_setup_application: append a blob to the list. */
pmix_status_t pnet_launch_allocate(pmix_namespace_t *job, pmix_info_t *info, size_t n, pmix_list_t *list);

/* PMIx_server_setup_local_support: what the blobs among these are for. */
pmix_status_t pnet_launch_set_up(pmix_nspace_env_cache_t *job, pmix_info_t *info, size_t n);

void pnet_launch_stop(void);

#endif
