/* libfabric.h - private parts of the probe `libfabric`: from the library's list to facts. */
#ifndef FAB_PROBES_LIBFABRIC_LIBFABRIC_H
#define FAB_PROBES_LIBFABRIC_LIBFABRIC_H

#include <rdma/fabric.h>

#include "probes/core/facts.h"

/*
 * Add an item for each device in the list, with all providers and protocols that can use it. Software
 * providers (tcp, shm) have items of their own, which name the interface of the provider, if it has one.
 * Loopback is left out. interface: the meaning of a name on the host of the list (fact_interface()).
 */
int libfabric_report(const struct fi_info *list, enum fact_interface (*interface)(const char *name),
                     struct fab_report *report);

/* Return whether a provider, as "tcp;ofi_rxm", uses no hardware. */
bool libfabric_is_software(const char *provider);

#endif
