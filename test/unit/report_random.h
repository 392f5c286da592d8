/* report_random.h - reports as hosts make them, by a seed: n RDMA devices of one port and n network
 * interfaces, told by several sources; and what a host may say later. */
#ifndef FAB_TEST_REPORT_RANDOM_H
#define FAB_TEST_REPORT_RANDOM_H

#include "test/fabrics/fabrics.h"
#include "test/unit/report_say.h"

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

/* A MAC's bytes for "mac %02x:...". */
#define REPORT_RANDOM_MAC "%02x:%02x:%02x:%02x:%02x:%02x"
#define REPORT_RANDOM_BYTES(mac)                                                                             \
    (unsigned)((mac) >> 40 & 0xff), (unsigned)((mac) >> 32 & 0xff), (unsigned)((mac) >> 24 & 0xff),          \
        (unsigned)((mac) >> 16 & 0xff), (unsigned)((mac) >> 8 & 0xff), (unsigned)((mac)&0xff)

/* PCI addresses of a host's devices: RDMA devices first, then interfaces. */
#define REPORT_RANDOM_PCI      "%04x:%02x:00:00"
#define REPORT_RANDOM_BUS(bus) (bus) / 200, 1 + (bus) % 200

/* "mlx5_2" as libibverbs and hwloc see it, and often libfabric and UCX. */
static inline void report_random_rdma(struct fab_report *report, uint64_t *random, unsigned i)
{
    static const char *const speeds[] = {"100000", "200000", "400000"};
    static const char *const transports[] = {"rc_mlx5", "dc_mlx5", "ud_mlx5", "rc_verbs", "ud_verbs"};
    const uint64_t guid = (UINT64_C(0x0c42a1) << 40) | (fabric_random_next(random) & UINT64_C(0xffffffffff));
    const unsigned firmware = 30 + report_random_below(random, 5);
    const char *state = report_random_below(random, 8) == 0 ? "down" : "up";
    const char *speed = speeds[report_random_below(random, 3)];
    report_say(
        report,
        "verbs: name mlx5_%u, port 1, node-guid #%" PRIx64 ", system-guid #%" PRIx64 ", port-guid #%" PRIx64
        ", gid fe80::c42:%x:%x:%x, vendor-id 0x15b3, part-id 0x101b, firmware 20.%u.1014, type InfiniBand, "
        "state %s, mtu 4096, speed %s, lid %u",
        i, guid, guid, guid, (unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff) | 1,
        (unsigned)(guid & 0xffff) | 1, firmware, state, speed, 1 + report_random_below(random, 48000));
    report_say(
        report,
        "hwloc: name mlx5_%u, port 1, pci " REPORT_RANDOM_PCI ", switch " REPORT_RANDOM_PCI
        ", bus PCI, vendor Mellanox Technologies, part MT28908 Family [ConnectX-6], slot-speed 252000, "
        "numa %u, package %u",
        i, REPORT_RANDOM_BUS(i), REPORT_RANDOM_BUS(100 + i / 2), i / 2, i / 4);
    if (report_random_below(random, 3) > 0)
        report_say(
            report,
            "libfabric: name mlx5_%u, pci " REPORT_RANDOM_PCI
            ", provider verbs, provider verbs;ofi_rxm, protocol FI_PROTO_RDMA_CM_IB_RC, driver mlx5_core",
            i, REPORT_RANDOM_BUS(i));
    if (report_random_below(random, 3) > 0) {
        const char *some[3];
        for (unsigned k = 0; k < 3; k++)
            some[k] = transports[report_random_below(random, 5)];
        report_say(report,
                   "ucx: name mlx5_%u, port 1, transport %s, transport %s, transport %s, ~latency 600, "
                   "~bandwidth 188000",
                   i, some[0], some[1], some[2]);
    }
}

/* "eth1" as the kernel and hwloc see it, and its neighbour. */
static inline void report_random_interface(struct fab_report *report, uint64_t *random, unsigned i,
                                           unsigned bus)
{
    const uint64_t mac = (UINT64_C(0x02) << 40) | (fabric_random_next(random) & UINT64_C(0xffffffffff));
    const unsigned net = report_random_below(random, 256), host = 1 + report_random_below(random, 250);
    const unsigned v6 = 1 + report_random_below(random, 65535);
    const char *state = report_random_below(random, 8) == 0 ? "down" : "up";
    const char *mtu = report_random_below(random, 2) == 0 ? "1500" : "9000";
    report_say(report,
               "ethernet: interface eth%u, mac " REPORT_RANDOM_MAC ", type Ethernet, address 10.%u.%u.%u/16, "
               "address fd00:%x::%x/64, state %s, mtu %s, speed 25000, driver ice\n"
               "hwloc: interface eth%u, mac " REPORT_RANDOM_MAC ", pci " REPORT_RANDOM_PCI
               ", bus PCI, numa %u",
               i, REPORT_RANDOM_BYTES(mac), 91 + i % 100, net, host, 1 + i, v6, state, mtu, i,
               REPORT_RANDOM_BYTES(mac), REPORT_RANDOM_BUS(bus), i % 2);
    if (report_random_below(random, 3) > 0)
        report_say(report,
                   "lldp: interface eth%u, switch-id 00:21:5e:c4:86:%02x, switch-name tor%u, "
                   "switch-port Ethernet%u",
                   i, i % 4, i % 4, report_random_below(random, 64));
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
            report_random_must(fab_report_fact(later, item, FAB_FACT_PROVIDER, "tcp;ofi_rxm"));
    }
    if (report_random_below(random, 100) < percent)
        report_random_rdma(later, random, 50 + report_random_below(random, 50));
    report_random_must(fab_report_finish(later, NULL));
}

#endif
