/* verbs_priv.h - private parts of the probe `verbs`: the RDMA devices of this host. */
#ifndef FAB_PROBES_VERBS_VERBS_PRIV_H
#define FAB_PROBES_VERBS_VERBS_PRIV_H

#include <infiniband/verbs.h>

#include "probes/core/facts.h"

/* Return the speed of a lane from a port's active_speed; FAB_SPEED_UNKNOWN. */
enum fab_speed verbs_speed(unsigned speed);

/* Find the network interface of a port; return false if there is none. n_ports: of the device. */
bool verbs_sysfs_interface(const char *folder, unsigned port, unsigned n_ports, char *name, size_t size);

/* Return the speed of a lane from the kernel: verbs has no number beyond NDR. FAB_SPEED_UNKNOWN. */
enum fab_speed verbs_sysfs_speed(const char *folder, unsigned port);

#endif
