/*
 * ucx.h - inside of the probe `ucx`: from transports as UCT lists them to facts.
 */
#ifndef FAB_PROBES_UCX_UCX_H
#define FAB_PROBES_UCX_UCX_H

#include <uct/api/uct.h>

#include "probes/core/facts.h"

/* A transport on a device. */
struct ucx_resource {
    char transport[UCT_TL_NAME_MAX];
    char device[UCT_DEVICE_NAME_MAX]; /* "mlx5_0:1", "eth0", "memory" */
    uct_device_type_t type;
    char pci[16];     /* in the form of FAB_FACT_PCI; empty: not known */
    double bandwidth; /* bytes a second for one process; 0: not known */
    double latency;   /* seconds with one endpoint; negative: not known */
};

/*
 * An item for each device, with all its transports. Bandwidth and latency are those of the fastest and of the
 * quickest; they are estimates, since UCX computes them from what the device could do. Loopback is left out.
 */
int ucx_report(const struct ucx_resource *list, size_t n, enum fact_interface (*interface)(const char *name),
               struct fab_report *report);

#endif
