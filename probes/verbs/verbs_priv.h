/* verbs_priv.h - inside of the probe `verbs`: the RDMA devices of this host. */
#ifndef FAB_PROBES_VERBS_VERBS_PRIV_H
#define FAB_PROBES_VERBS_VERBS_PRIV_H

#include <infiniband/verbs.h>

#include "probes/core/facts.h"

/* active_speed of a port as the speed of a lane. FAB_SPEED_UNKNOWN: not known. */
enum fab_speed verbs_speed(unsigned speed);

/* The network interface of a port; false: it has none. n_ports: of the device. */
bool verbs_sysfs_interface(const char *folder, unsigned port, unsigned n_ports, char *name, size_t size);

/* Speed of a lane as the kernel has it: verbs has no number beyond NDR. FAB_SPEED_UNKNOWN: not known. */
enum fab_speed verbs_sysfs_speed(const char *folder, unsigned port);

#endif
