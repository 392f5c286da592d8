/* verbs_priv.h - inside of the probe `verbs`: the RDMA devices of this host. */
#ifndef FAB_PROBES_VERBS_VERBS_PRIV_H
#define FAB_PROBES_VERBS_VERBS_PRIV_H

#include <infiniband/verbs.h>

#include "probes/core/item.h"

/* Items of one RDMA device, one a port; one without a port where no port can be asked. PMIXFAB_ERR_IO: it
 * cannot be asked at all, err says why, and nothing was added. */
int verbs_device_report(struct ibv_device *device, const struct probe_sink *sink, struct fab_report *report,
                        struct fab_err *err);

/* active_speed of a port as the speed of a lane. FAB_SPEED_UNKNOWN: not known. */
enum fab_speed verbs_speed(unsigned speed);

/*
 * What sysfs says of the device: PCI address and ids, bus, driver. folder: "/sys/class/infiniband/mlx5_0", as
 * libibverbs gives it. Where sysfs is not mounted nothing is added.
 */
void verbs_sysfs_facts(const char *folder, struct probe_item *item);

/* The network interface of a port; false: it has none. n_ports: of the device. */
bool verbs_sysfs_interface(const char *folder, unsigned port, unsigned n_ports, char *name, size_t size);

/* Speed of a lane as the kernel has it: verbs has no number beyond NDR. FAB_SPEED_UNKNOWN: not known. */
enum fab_speed verbs_sysfs_speed(const char *folder, unsigned port);

#endif
