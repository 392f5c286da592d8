/*
 * reports.h - what a host of a generated fabric would report of its HCAs: as verbs, hwloc, libfabric and UCX
 * tell it.
 */
#ifndef FAB_TEST_REPORTS_H
#define FAB_TEST_REPORTS_H

#include "topo/model/report.h"

struct host_hca {
    uint64_t node, port; /* GUIDs */
};

/* Device d is mlx5_d, one in two below a PCI switch with the next, four at each NUMA node. firmware: that of
 * the first one. *out is initialised here and finished; on error it is to be destroyed all the same. */
int host_report(const char *host, const struct host_hca *hcas, unsigned n, const char *firmware,
                struct fab_report *out, struct fab_err *err);

#endif
