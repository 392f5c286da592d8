/*
 * report_random.h - reports as hosts make them, by a seed: n RDMA devices of one port and n network
 * interfaces, told by several sources; and what a host may say later.
 */
#ifndef FAB_TEST_REPORT_RANDOM_H
#define FAB_TEST_REPORT_RANDOM_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fabrics/fabrics.h"
#include "topo/report/report.h"

static inline uint32_t report_random_below(uint64_t *random, uint32_t n)
{
    return (uint32_t)((fabric_random_next(random) >> 16) % n);
}

/* Tests only: without memory there is no test. */
static inline void report_random_must(int rc)
{
    if (rc != PMIXFAB_OK)
        abort();
}

static inline uint32_t report_random_item(struct fab_report *report, enum fab_source source)
{
    uint32_t item = FAB_NONE;
    report_random_must(fab_report_item(report, source, &item));
    return item;
}

static inline void report_random_fact(struct fab_report *report, uint32_t item, enum fab_fact kind,
                                      const char *text)
{
    report_random_must(fab_report_fact(report, item, kind, text));
}

#define REPORT_RANDOM_PRINT(report, item, kind, ...)                                                         \
    report_random_must(fab_report_printf(report, item, kind, __VA_ARGS__))

/* PCI address of a host's device: RDMA devices first, then interfaces. */
static inline void report_random_pci(struct fab_report *report, uint32_t item, enum fab_fact kind,
                                     unsigned bus)
{
    REPORT_RANDOM_PRINT(report, item, kind, "%04x:%02x:00:00", bus / 200, 1 + bus % 200);
}

static inline void report_random_mac(struct fab_report *report, uint32_t item, enum fab_fact kind,
                                     uint64_t mac)
{
    REPORT_RANDOM_PRINT(report, item, kind, "%02x:%02x:%02x:%02x:%02x:%02x", (unsigned)(mac >> 40 & 0xff),
                        (unsigned)(mac >> 32 & 0xff), (unsigned)(mac >> 24 & 0xff),
                        (unsigned)(mac >> 16 & 0xff), (unsigned)(mac >> 8 & 0xff), (unsigned)(mac & 0xff));
}

/* "mlx5_2" as libibverbs and hwloc see it, and often libfabric and UCX. */
static inline void report_random_rdma(struct fab_report *report, uint64_t *random, unsigned i)
{
    static const char *const speeds[] = {"100000", "200000", "400000"};
    static const char *const transports[] = {"rc_mlx5", "dc_mlx5", "ud_mlx5", "rc_verbs", "ud_verbs"};
    uint64_t guid = (UINT64_C(0x0c42a1) << 40) | (fabric_random_next(random) & UINT64_C(0xffffffffff));
    uint32_t item = report_random_item(report, FAB_FROM_VERBS);

    REPORT_RANDOM_PRINT(report, item, FAB_FACT_NAME, "mlx5_%u", i);
    report_random_fact(report, item, FAB_FACT_PORT, "1");
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_NODE_GUID, "0x%016" PRIx64, guid);
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_SYSTEM_GUID, "0x%016" PRIx64, guid);
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_PORT_GUID, "0x%016" PRIx64, guid);
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_GID, "fe80::%x:%x:%x:%x", 0xc42,
                        (unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff) | 1,
                        (unsigned)(guid & 0xffff) | 1);
    report_random_fact(report, item, FAB_FACT_VENDOR_ID, "0x15b3");
    report_random_fact(report, item, FAB_FACT_PART_ID, "0x101b");
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_FIRMWARE, "20.%u.1014", 30 + report_random_below(random, 5));
    report_random_fact(report, item, FAB_FACT_TYPE, "InfiniBand");
    report_random_fact(report, item, FAB_FACT_STATE, report_random_below(random, 8) == 0 ? "down" : "up");
    report_random_fact(report, item, FAB_FACT_MTU, "4096");
    report_random_fact(report, item, FAB_FACT_SPEED, speeds[report_random_below(random, 3)]);
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_LID, "%u", 1 + report_random_below(random, 48000));

    item = report_random_item(report, FAB_FROM_HWLOC);
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_NAME, "mlx5_%u", i);
    report_random_fact(report, item, FAB_FACT_PORT, "1");
    report_random_pci(report, item, FAB_FACT_PCI, i);
    report_random_pci(report, item, FAB_FACT_SWITCH, 100 + i / 2);
    report_random_fact(report, item, FAB_FACT_BUS, "PCI");
    report_random_fact(report, item, FAB_FACT_VENDOR, "Mellanox Technologies");
    report_random_fact(report, item, FAB_FACT_PART, "MT28908 Family [ConnectX-6]");
    report_random_fact(report, item, FAB_FACT_SLOT_SPEED, "252000");
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_NUMA, "%u", i / 2);
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_PACKAGE, "%u", i / 4);

    if (report_random_below(random, 3) > 0) {
        item = report_random_item(report, FAB_FROM_LIBFABRIC);
        REPORT_RANDOM_PRINT(report, item, FAB_FACT_NAME, "mlx5_%u", i);
        report_random_pci(report, item, FAB_FACT_PCI, i);
        report_random_fact(report, item, FAB_FACT_PROVIDER, "verbs");
        report_random_fact(report, item, FAB_FACT_PROVIDER, "verbs;ofi_rxm");
        report_random_fact(report, item, FAB_FACT_PROTOCOL, "FI_PROTO_RDMA_CM_IB_RC");
        report_random_fact(report, item, FAB_FACT_DRIVER, "mlx5_core");
    }
    if (report_random_below(random, 3) > 0) {
        item = report_random_item(report, FAB_FROM_UCX);
        REPORT_RANDOM_PRINT(report, item, FAB_FACT_NAME, "mlx5_%u", i);
        report_random_fact(report, item, FAB_FACT_PORT, "1");
        for (unsigned k = 0; k < 3; k++)
            report_random_fact(report, item, FAB_FACT_TRANSPORT, transports[report_random_below(random, 5)]);
        report_random_must(fab_report_estimate(report, item, FAB_FACT_LATENCY, "600"));
        report_random_must(fab_report_estimate(report, item, FAB_FACT_BANDWIDTH, "188000"));
    }
}

/* "eth1" as the kernel and hwloc see it, and its neighbour. */
static inline void report_random_interface(struct fab_report *report, uint64_t *random, unsigned i,
                                           unsigned bus)
{
    uint64_t mac = (UINT64_C(0x02) << 40) | (fabric_random_next(random) & UINT64_C(0xffffffffff));
    uint32_t item = report_random_item(report, FAB_FROM_ETHERNET);

    REPORT_RANDOM_PRINT(report, item, FAB_FACT_INTERFACE, "eth%u", i);
    report_random_mac(report, item, FAB_FACT_MAC, mac);
    report_random_fact(report, item, FAB_FACT_TYPE, "Ethernet");
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_ADDRESS, "10.%u.%u.%u/16", 91 + i % 100,
                        report_random_below(random, 256), 1 + report_random_below(random, 250));
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_ADDRESS, "fd00:%x::%x/64", 1 + i,
                        1 + report_random_below(random, 65535));
    report_random_fact(report, item, FAB_FACT_STATE, report_random_below(random, 8) == 0 ? "down" : "up");
    report_random_fact(report, item, FAB_FACT_MTU, report_random_below(random, 2) == 0 ? "1500" : "9000");
    report_random_fact(report, item, FAB_FACT_SPEED, "25000");
    report_random_fact(report, item, FAB_FACT_DRIVER, "ice");

    item = report_random_item(report, FAB_FROM_HWLOC);
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_INTERFACE, "eth%u", i);
    report_random_mac(report, item, FAB_FACT_MAC, mac);
    report_random_pci(report, item, FAB_FACT_PCI, bus);
    report_random_fact(report, item, FAB_FACT_BUS, "PCI");
    REPORT_RANDOM_PRINT(report, item, FAB_FACT_NUMA, "%u", i % 2);

    if (report_random_below(random, 3) > 0) {
        item = report_random_item(report, FAB_FROM_LLDP);
        REPORT_RANDOM_PRINT(report, item, FAB_FACT_INTERFACE, "eth%u", i);
        report_random_mac(report, item, FAB_FACT_SWITCH_ID, UINT64_C(0x00215ec48600) + i % 4);
        REPORT_RANDOM_PRINT(report, item, FAB_FACT_SWITCH_NAME, "tor%u", i % 4);
        REPORT_RANDOM_PRINT(report, item, FAB_FACT_SWITCH_PORT, "Ethernet%u",
                            report_random_below(random, 64));
    }
}

/* A finished report of a host. *report is initialised here. */
static inline void report_random(struct fab_report *report, uint64_t *random, const char *host,
                                 unsigned n_rdma, unsigned n_interfaces)
{
    fab_report_init(report);
    report_random_must(fab_report_host(report, host, NULL));
    for (unsigned i = 0; i < n_rdma; i++)
        report_random_rdma(report, random, i);
    for (unsigned i = 0; i < n_interfaces; i++)
        report_random_interface(report, random, i, n_rdma + i);
    report_random_must(fab_report_finish(report, NULL));
}

/* Another text of a kind's form, NULL: this one does not change here. */
static inline const char *report_random_text(enum fab_fact kind, uint64_t *random)
{
    bool odd = report_random_below(random, 2) == 1;
    switch ((unsigned)kind) {
    case FAB_FACT_FIRMWARE:
        return odd ? "20.99.1000" : "20.98.1000";
    case FAB_FACT_STATE:
        return odd ? "down" : "up";
    case FAB_FACT_SPEED:
        return odd ? "40000" : "56000";
    case FAB_FACT_MTU:
        return odd ? "2048" : "1024";
    case FAB_FACT_DRIVER:
        return odd ? "mlx4_core" : "bnxt_en";
    default:
        return NULL;
    }
}

/* What the host says later: of a hundred items `percent` are gone, of their facts as many differ or are new.
 * *later is initialised here. */
static inline void report_random_later(struct fab_report *later, const struct fab_report *from,
                                       uint64_t *random, unsigned percent)
{
    fab_report_init(later);
    report_random_must(fab_report_host(later, from->host, NULL));
    for (uint32_t i = 0; i < from->n_items; i++) {
        const struct fab_report_item *old = &from->items[i];
        if (report_random_below(random, 100) < percent)
            continue;
        uint32_t item = report_random_item(later, old->source);
        for (uint32_t k = old->first; k < old->first + old->n; k++) {
            const struct fab_report_fact *fact = &from->facts[k];
            const char *other =
                report_random_below(random, 100) < percent ? report_random_text(fact->kind, random) : NULL;
            const char *text = other != NULL ? other : from->pool + fact->text;
            report_random_must(fact->estimate != 0 ? fab_report_estimate(later, item, fact->kind, text)
                                                   : fab_report_fact(later, item, fact->kind, text));
        }
        if (report_random_below(random, 100) < percent)
            report_random_fact(later, item, FAB_FACT_PROVIDER, "tcp;ofi_rxm");
    }
    if (report_random_below(random, 100) < percent)
        report_random_rdma(later, random, 50 + report_random_below(random, 50));
    report_random_must(fab_report_finish(later, NULL));
}

#endif
