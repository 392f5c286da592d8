/*
 * pmdl_component.h - settings of the component. The room pmdl is a component of the PMIx library. It runs in
 * the process that hosts the PMIx server of a job, and passes the fabric's data to the job's processes.
 */
#ifndef FAB_MCA_PMDL_PMDL_COMPONENT_H
#define FAB_MCA_PMDL_PMDL_COMPONENT_H

#include <src/include/pmix_config.h>

#include <src/mca/pmdl/base/base.h>
#include <src/util/pmix_output.h>

#include "mca/library/shapes.h"

/* The settings of an operator. */
struct pmdl_settings {
    const char *rundir;
    const char *coordinates; /* "single" or "standard" */
    const char *env;         /* "ucx,nccl": libraries whose variables name the nearest device */
    const char *env_order;   /* "site,fabricd,library": whose value of such a variable counts */
    bool launch;             /* jobs get launch information */
    bool fabric;             /* the host's empty fabric function is filled */
    bool query;              /* queries for the fabric's keys are answered */
};
extern struct pmdl_settings pmdl_settings;

#define pmdl_say(...)                                                                                        \
    pmix_output_verbose(1, pmix_pmdl_base_framework.framework_output, "pmdl:fabricd: " __VA_ARGS__)

#endif
