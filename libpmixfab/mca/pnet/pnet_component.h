/*
 * pnet_component.h - shared by the files of the component. The room pnet is the component of the PMIx
 * library: registered objects and their watcher, the inventory of nodes, and launch information. Parts
 * without the library's private headers: plane_registry.h, inventory_child.h.
 */
#ifndef FAB_MCA_PNET_PNET_COMPONENT_H
#define FAB_MCA_PNET_PNET_COMPONENT_H

#include <src/include/pmix_config.h>

#include <src/class/pmix_list.h>
#include <src/include/pmix_globals.h>
#include <src/mca/pnet/base/base.h>
#include <src/util/pmix_output.h>

#include "mca/library/shapes.h"
#include "pmix/launch/blob.h"
#include "pmix/launch/job_map.h"
#include "pmix/rundir/snapshots.h"

/* The library's macro is an `if` and a block. */
#define pnet_say(...)                                                                                        \
    do {                                                                                                     \
        pmix_output_verbose(2, pmix_pnet_base_framework.framework_output, "pnet:fabricd: " __VA_ARGS__);     \
    } while (0)

/*
 * ---- launch_*.c: launch information of a job's starter, and its use on the nodes (docs/design/launch.md)
 * ----
 */

#define PNET_ENDPOINTS_SECONDS 3

/* The settings of an operator. */
struct pnet_launch_params {
    const char *rundir;
    const char *coordinates; /* as for the component pmdl */
    const char *forward;     /* patterns of environment variables that jobs get */
    const char *exclude;     /* and of those that jobs do not get */
    int seconds;             /* deadline for the pools of endpoints */
    bool launch;             /* send the fabric's data, and set it on nodes without their own */
};
extern struct pnet_launch_params pnet_launch_params;

/* PMIx_server_setup_application: append a blob to the list. */
pmix_status_t pnet_launch_allocate(pmix_namespace_t *job, pmix_info_t *info, size_t n, pmix_list_t *list);

/* PMIx_server_setup_local_support: use the blobs among these. */
pmix_status_t pnet_launch_set_up(pmix_nspace_env_cache_t *job, pmix_info_t *info, size_t n);

/* PMIx_server_deregister_nspace: release the job's endpoints. */
void pnet_launch_end(pmix_namespace_t *job);

/* The library's thread does not run any more. */
void pnet_launch_stop(void);

/* Endpoints that a starter requests. */
struct pnet_endpoints_wanted {
    uint32_t per_process, per_node;
    bool required;
};

/*
 * Take endpoints into the blob, whose planes are open, as an array to be freed. None is an error only if they
 * are required; err has the reason.
 */
pmix_status_t pnet_launch_endpoints(pmix_namespace_t *job, const struct pnet_endpoints_wanted *wanted,
                                    const struct fab_job_map *map, struct fab_blob *blob,
                                    struct fab_err *err);

/*
 * Get this node's own planes; planes->of stays NULL without memory. Locked until rundir_planes_put(). On the
 * library's thread.
 */
void pnet_launch_planes(struct rundir_planes *planes, struct fab_err *err);

/* Drop a node's data of a job; of all jobs. */
void pnet_launch_node_forget(const char *nspace);
void pnet_launch_node_stop(void);

#endif
