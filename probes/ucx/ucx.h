/* ucx.h - private parts of the probe `ucx`: from UCT's transports to facts. */
#ifndef FAB_PROBES_UCX_UCX_H
#define FAB_PROBES_UCX_UCX_H

#include <uct/api/uct.h>

#include "probes/core/facts.h"

/* A transport on a device. */
struct ucx_resource {
    char transport[UCT_TL_NAME_MAX];
    char device[UCT_DEVICE_NAME_MAX]; /* "mlx5_0:1", "eth0", "memory" */
    uct_device_type_t type;
    char pci[16];     /* in the form of FAB_FACT_PCI; empty: unknown */
    double bandwidth; /* bytes per second for one process; 0: unknown */
    double latency;   /* seconds with one endpoint; negative: unknown */
};

/*
 * Add an item for each device, with all its transports. Bandwidth is that of the fastest, latency the lowest
 * one; they are estimates, because UCX computes them from the device's capabilities. Loopback is left out.
 */
int ucx_report(const struct ucx_resource *list, size_t n, enum fact_interface (*interface)(const char *name),
               struct fab_report *report);

#endif
