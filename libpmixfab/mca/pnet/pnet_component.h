/*
 * pnet_component.h - the calls of the component, and what its files share.
 * The room pnet is the component of the PMIx library: registered objects and their watcher, the inventory of
 * nodes, and launch information. What needs none of the library's private headers: plane_registry.h,
 * inventory_child.h.
 */
#ifndef FAB_MCA_PNET_PNET_COMPONENT_H
#define FAB_MCA_PNET_PNET_COMPONENT_H

#include <src/include/pmix_config.h>

#include <src/class/pmix_list.h>
#include <src/include/pmix_globals.h>
#include <src/mca/pnet/base/base.h>
#include <src/util/pmix_output.h>

#include "mca/library/shapes.h"
#include "mca/pnet/inventory_child.h"
#include "mca/pnet/plane_registry.h"
#include "pmix/launch/blob.h"
#include "pmix/launch/job_map.h"
#include "pmix/rundir/snapshots.h"

/* The library's macro is an `if` and a block. */
#define pnet_say(...)                                                                                        \
    do {                                                                                                     \
        pmix_output_verbose(2, pmix_pnet_base_framework.framework_output, "pnet:fabricd: " __VA_ARGS__);     \
    } while (0)

/* ---- pnet_inventory.c: what this node has, and what nodes have ---- */

#define PNET_INVENTORY_SECONDS 10

/* The component's parameters; the library's memory. */
extern struct pnet_inventory_params pnet_inventory_params;

/*
 * In every server: nodes collect, and whoever gets what they collected delivers.
 * Both run on the library's thread. Anything but PMIX_SUCCESS would be the caller's status instead of what
 * other components have to say, so there is nothing else: why there is no inventory is in the log.
 */
pmix_status_t pnet_inventory_collect(pmix_info_t directives[], size_t ndirs, pmix_list_t *inventory);
pmix_status_t pnet_inventory_deliver(pmix_info_t info[], size_t ninfo, pmix_info_t directives[],
                                     size_t ndirs);

/* The end: what fabricd has not taken is dropped. */
void pnet_inventory_stop(void);

/* ---- launch_*.c: what a job's starter hands out, and what its nodes do with that (docs/design/launch.md)
 * ---- */

#define PNET_ENDPOINTS_SECONDS 3

/* What an operator may set. */
struct pnet_launch_params {
    const char *rundir;
    const char *coordinates; /* as the component pmdl's */
    const char *forward;     /* patterns of variables of the environment that jobs get along */
    const char *exclude;     /* and of those that they do not */
    int seconds;             /* that the pools of endpoints may take to answer */
    bool launch; /* the fabric's data is handed out, and told where the node itself knows nothing */
};
extern struct pnet_launch_params pnet_launch_params;

/* PMIx_server_setup_application: append a blob to the list. */
pmix_status_t pnet_launch_allocate(pmix_namespace_t *job, pmix_info_t *info, size_t n, pmix_list_t *list);

/* PMIx_server_setup_local_support: what the blobs among these are for. */
pmix_status_t pnet_launch_set_up(pmix_nspace_env_cache_t *job, pmix_info_t *info, size_t n);

/* PMIx_server_deregister_nspace: give back what the job has. */
void pnet_launch_end(pmix_namespace_t *job);

/* The library's thread stands still. */
void pnet_launch_stop(void);

/* Endpoints that a starter asks for. */
struct pnet_endpoints_wanted {
    uint32_t per_process, per_node;
    bool required;
};

/* Into the blob, whose planes are open; an array that is to be freed. Nothing where none can be had and none
 * is required. err says why not. */
pmix_status_t pnet_launch_endpoints(pmix_namespace_t *job, const struct pnet_endpoints_wanted *wanted,
                                    const struct fab_job_map *map, struct fab_blob *blob,
                                    struct fab_err *err);

/* What this node itself knows; planes->of stays NULL without memory. Locked until rundir_planes_put(). The
 * library's thread. */
void pnet_launch_planes(struct rundir_planes *planes, struct fab_err *err);

/* What a node keeps of a job; of all jobs. */
void pnet_launch_node_forget(const char *nspace);
void pnet_launch_node_stop(void);

#endif
