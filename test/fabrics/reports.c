/* reports.c - what hosts of a generated fabric report. */
#include "test/fabrics/reports.h"

static int verbs_item(struct fab_report *report, const struct host_hca *hca, unsigned d, const char *firmware)
{
    uint32_t item;
    int rc = fab_report_item(report, FAB_FROM_VERBS, &item);
    rc |= fab_report_printf(report, item, FAB_FACT_NAME, "mlx5_%u", d);
    rc |= fab_report_fact(report, item, FAB_FACT_PORT, "1");
    rc |= fab_report_printf(report, item, FAB_FACT_NODE_GUID, "0x%016llx", (unsigned long long)hca->node);
    rc |= fab_report_printf(report, item, FAB_FACT_PORT_GUID, "0x%016llx", (unsigned long long)hca->port);
    rc |= fab_report_fact(report, item, FAB_FACT_FIRMWARE, firmware);
    rc |= fab_report_fact(report, item, FAB_FACT_DRIVER, "mlx5_core");
    rc |= fab_report_fact(report, item, FAB_FACT_VENDOR_ID, "0x15b3");
    rc |= fab_report_fact(report, item, FAB_FACT_TYPE, "InfiniBand");
    rc |= fab_report_fact(report, item, FAB_FACT_STATE, "up");
    rc |= fab_report_fact(report, item, FAB_FACT_MTU, "4096");
    rc |= fab_report_fact(report, item, FAB_FACT_SPEED, "200000");
    rc |= fab_report_printf(report, item, FAB_FACT_LID, "%u", 1 + d);
    rc |= fab_report_printf(report, item, FAB_FACT_GID, "fe80::10:%x", 1 + (unsigned)(hca->node & 0xfff));
    return rc;
}

static int hwloc_item(struct fab_report *report, unsigned d)
{
    uint32_t item;
    int rc = fab_report_item(report, FAB_FROM_HWLOC, &item);
    rc |= fab_report_printf(report, item, FAB_FACT_NAME, "mlx5_%u", d);
    rc |= fab_report_printf(report, item, FAB_FACT_INTERFACE, "ib%u", d);
    rc |= fab_report_printf(report, item, FAB_FACT_PCI, "0000:%02x:00:00", 0x10 + d);
    rc |= fab_report_fact(report, item, FAB_FACT_BUS, "PCI");
    rc |= fab_report_fact(report, item, FAB_FACT_VENDOR, "Mellanox Technologies");
    rc |= fab_report_fact(report, item, FAB_FACT_PART, "MT28908 Family [ConnectX-6]");
    rc |= fab_report_printf(report, item, FAB_FACT_NUMA, "%u", d / 4);
    rc |= fab_report_printf(report, item, FAB_FACT_PACKAGE, "%u", d / 4);
    rc |= fab_report_printf(report, item, FAB_FACT_SWITCH, "0000:%02x:00:00", 2 + d / 2);
    return rc;
}

static int software_items(struct fab_report *report, unsigned d)
{
    static const char *const transports[] = {"rc_mlx5", "dc_mlx5", "ud_mlx5"};
    uint32_t item;
    int rc = fab_report_item(report, FAB_FROM_LIBFABRIC, &item);
    rc |= fab_report_printf(report, item, FAB_FACT_NAME, "mlx5_%u", d);
    rc |= fab_report_fact(report, item, FAB_FACT_PROVIDER, "verbs;ofi_rxm");
    rc |= fab_report_fact(report, item, FAB_FACT_PROTOCOL, "FI_PROTO_RXM");
    rc |= fab_report_item(report, FAB_FROM_UCX, &item);
    rc |= fab_report_printf(report, item, FAB_FACT_NAME, "mlx5_%u", d);
    rc |= fab_report_fact(report, item, FAB_FACT_PORT, "1");
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
        rc |= fab_report_fact(report, item, FAB_FACT_TRANSPORT, transports[i]);
    rc |= fab_report_estimate(report, item, FAB_FACT_BANDWIDTH, "196000");
    rc |= fab_report_estimate(report, item, FAB_FACT_LATENCY, "600");
    return rc;
}

int host_report(const char *host, const struct host_hca *hcas, unsigned n, const char *firmware,
                struct fab_report *out, struct fab_err *err)
{
    fab_report_init(out);
    int rc = fab_report_host(out, host, NULL);
    for (unsigned d = 0; d < n; d++) {
        rc |= verbs_item(out, &hcas[d], d, d == 0 ? firmware : "20.31.1014");
        rc |= hwloc_item(out, d);
        rc |= software_items(out, d);
    }
    return rc == 0 ? fab_report_finish(out, err) : fab_fail(err, PMIXFAB_ERR_NOMEM, "no memory for a report");
}
