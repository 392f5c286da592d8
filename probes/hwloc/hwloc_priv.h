/* hwloc_priv.h - private parts of the probe `hwloc`: the places of devices in a machine. */
#ifndef FAB_PROBES_HWLOC_HWLOC_PRIV_H
#define FAB_PROBES_HWLOC_HWLOC_PRIV_H

#include <hwloc.h>

#include "probes/core/facts.h"

/*
 * Load the parts of the machine that this probe needs: packages, NUMA nodes, bridges, PCI and OS devices.
 * path: a recorded machine (XML); NULL: this host. The caller destroys *out.
 */
int hwloc_machine_load(const char *path, hwloc_topology_t *out, struct fab_err *err);

/*
 * Return the topmost PCI switch above a PCI device, as the bridge that is the upstream port of the switch;
 * NULL: none. Two devices have the same switch exactly if the path between them does not pass a root port. A
 * root port leads to one slot, and the devices of its bus are one card. Cascaded switches count as the
 * topmost switch.
 */
hwloc_obj_t hwloc_switch_above(hwloc_obj_t pci);

#endif
