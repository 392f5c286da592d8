/*
 * pnet_component.h - the module that the component's objects are marked with, and what it says.
 * The room pnet is the component of the PMIx library: registered objects, their watcher, and the inventory of
 * nodes.
 */
#ifndef FAB_MCA_PNET_PNET_COMPONENT_H
#define FAB_MCA_PNET_PNET_COMPONENT_H

#include <src/include/pmix_config.h>

#include <src/mca/pnet/base/base.h>
#include <src/util/pmix_output.h>

#include "mca/library/shapes.h"

extern pmix_pnet_module_t pnet_fabricd_module;

/* The library's macro is an `if` and a block. */
#define pnet_say(...)                                                                                        \
    do {                                                                                                     \
        pmix_output_verbose(2, pmix_pnet_base_framework.framework_output, "pnet:fabricd: " __VA_ARGS__);     \
    } while (0)

#endif
