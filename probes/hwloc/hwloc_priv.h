/* hwloc_priv.h - inside of the probe `hwloc`: where in the machine its devices are. */
#ifndef FAB_PROBES_HWLOC_HWLOC_PRIV_H
#define FAB_PROBES_HWLOC_HWLOC_PRIV_H

#include <hwloc.h>

#include "probes/core/facts.h"

/*
 * The machine as far as this probe needs it: packages, NUMA nodes, bridges, PCI and OS devices. path: a
 * recorded one (XML), NULL: this host. The caller destroys *out.
 */
int hwloc_machine_load(const char *path, hwloc_topology_t *out, struct fab_err *err);

/*
 * The PCI switch above a PCI device: the bridge that is the upstream port of the topmost one; NULL: none. So
 * two devices have the same one exactly when the way between them does not pass a root port. A root port
 * leads to one slot, and what its bus has is one card. Switches behind switches count as one, by the topmost.
 */
hwloc_obj_t hwloc_switch_above(hwloc_obj_t pci);

#endif
