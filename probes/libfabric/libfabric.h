/*
 * libfabric.h - inside of the probe `libfabric`: from the library's list to facts.
 */
#ifndef FAB_PROBES_LIBFABRIC_LIBFABRIC_H
#define FAB_PROBES_LIBFABRIC_LIBFABRIC_H

#include <rdma/fabric.h>

#include "probes/core/facts.h"

/*
 * An item for each device that is named in the list, with all providers and protocols that can use it. What
 * is software alone (tcp, shm) has items of its own; they name the interface that they are on, if any.
 * Loopback is left out. interface: what a name is on the host that the list comes from (fact_interface()).
 */
int libfabric_report(const struct fi_info *list, enum fact_interface (*interface)(const char *name),
                     struct fab_report *report);

/* Is a provider, as "tcp;ofi_rxm", one without hardware? */
bool libfabric_is_software(const char *provider);

#endif
