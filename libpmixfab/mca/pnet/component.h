/*
 * component.h - what the PMIx library finds in this object, and the module that its objects are marked with.
 * The room pnet is the component of the PMIx library: registered objects, their watcher, and the inventory of
 * nodes.
 */
#ifndef FAB_MCA_PNET_COMPONENT_H
#define FAB_MCA_PNET_COMPONENT_H

#include <src/include/pmix_config.h>

#include <src/mca/pnet/pnet.h>

extern pmix_pnet_base_component_t pmix_mca_pnet_fabricd_component;
extern pmix_pnet_module_t pnet_fabricd_module;

#endif
