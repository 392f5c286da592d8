/*
 * report_world.h - reports of the hosts of a made-up fabric, with GUIDs that match it, for tests.
 *
 * Of each HCA port an item of verbs, of each HCA one of hwloc, and for each port one of libfabric and of UCX,
 * and of ethernet for its interface, all agreeing: device mlx5_N, N in the order of GUIDs on its host,
 * interface ibM by port.
 */
#ifndef FAB_TEST_REPORT_WORLD_H
#define FAB_TEST_REPORT_WORLD_H

#include <inttypes.h>

#include "test/unit/generated.h"
#include "test/unit/report_say.h"
#include "topo/base/natural.h"
#include "topo/join/join.h"

/* Reports of hosts, in natural order, and pointers to them as fab_join() wants them. */
struct report_world {
    struct fab_report *reports;
    const struct fab_report **list;
    uint32_t n;
};

static inline uint32_t world_item(struct fab_report *report, enum fab_source source)
{
    uint32_t item = FAB_NONE;
    assert_int_equal(fab_report_item(report, source, &item), 0);
    return item;
}

static inline void world_begin(struct fab_report *report, const char *host)
{
    fab_report_init(report);
    assert_int_equal(fab_report_host(report, host, NULL), 0);
}

static inline void world_finish(struct fab_report *report)
{
    must_do(fab_report_finish(report, fresh_err()));
}

/* What a host says of one of its HCAs, the `nth` (from 0). Numbers give it an address, a NUMA node and so on.
 */
static inline void world_hca(struct fab_report *r, const struct fab_inventory *inv,
                             const struct fab_node *node, unsigned nth)
{
    const unsigned bus = 0x41 + nth * 0x10;
    report_say(
        r,
        "hwloc: name mlx5_%u, node-guid #%" PRIx64 ", pci 0000:%02x:00:00, bus PCI, "
        "vendor Mellanox Technologies, vendor-id 0x15b3, part MT28908 Family [ConnectX-6], part-id 0x101b, "
        "numa %u, package %u, slot-speed 252000",
        nth, node->guid, bus, nth % 8, nth % 8 / 4);
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        char known[200] = "";
        uint32_t mbps = fab_rate_mbps(port->width, (enum fab_speed)port->speed);
        if (port->guid != 0)
            snprintf(known, sizeof(known), ", port-guid #%" PRIx64 ", gid fe80::%x:%x:%x:%x", port->guid,
                     (unsigned)(port->guid >> 48 & 0xffff) | 0x1000u,
                     (unsigned)(port->guid >> 32 & 0xffff) | 0x1000u,
                     (unsigned)(port->guid >> 16 & 0xffff) | 0x1000u,
                     (unsigned)(port->guid & 0xffff) | 0x1000u);
        if (mbps != 0)
            snprintf(known + strlen(known), sizeof(known) - strlen(known), ", speed %" PRIu32, mbps);
        if (port->lid != 0)
            snprintf(known + strlen(known), sizeof(known) - strlen(known), ", lid %u", port->lid);
        report_say(
            r,
            "verbs: name mlx5_%u, port %u, node-guid #%" PRIx64 ", system-guid #%" PRIx64
            ", pci 0000:%02x:00:00, type InfiniBand, state %s, firmware 20.31.1014, driver mlx5_core, mtu "
            "4096%s",
            nth, port->num, node->guid, node->system_guid == 0 ? node->guid : node->system_guid, bus,
            port->state == FAB_PORT_ACTIVE ? "up" : "down", known);
        report_say(r,
                   "libfabric: name mlx5_%u, port %u, provider verbs;ofi_rxm, protocol FI_PROTO_RXM\n"
                   "ucx: name mlx5_%u, port %u, transport rc_mlx5, ~latency 600\n"
                   "ethernet: interface ib%u, port %u, pci 0000:%02x:00:00, type InfiniBand",
                   nth, port->num, nth, port->num, nth * 2 + port->num - 1, port->num, bus);
    }
}

struct world_hca_of {
    const char *host;
    uint32_t node;
};

static inline int world_cmp(const void *va, const void *vb)
{
    const struct world_hca_of *a = va, *b = vb;
    int order = fab_natural_cmp(a->host, b->host);
    return order != 0 ? order : a->node < b->node ? -1 : a->node > b->node;
}

/* A report for each host of a finished and named fabric. */
static inline void world_reports(struct report_world *world, const struct fab_inventory *inv)
{
    OWNED(free) struct world_hca_of *hcas = calloc(inv->n_nodes + 1u, sizeof(*hcas));
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (inv->nodes[i].kind == FAB_HCA)
            hcas[n++] = (struct world_hca_of){fab_str(inv, inv->nodes[i].host), i};
    qsort(hcas, n, sizeof(*hcas), world_cmp);
    *world = (struct report_world){.reports = calloc(n + 1u, sizeof(*world->reports)),
                                   .list = calloc(n + 1u, sizeof(*world->list))};
    for (uint32_t first = 0, end; first < n; first = end) {
        struct fab_report *report = &world->reports[world->n];
        world_begin(report, hcas[first].host);
        for (end = first; end < n && strcmp(hcas[end].host, hcas[first].host) == 0; end++)
            world_hca(report, inv, &inv->nodes[hcas[end].node], end - first);
        world_finish(report);
        world->list[world->n++] = report;
    }
}

static inline void world_reports_free(struct report_world *world)
{
    for (uint32_t i = 0; i < world->n; i++)
        fab_report_destroy(&world->reports[i]);
    free(world->reports);
    free(world->list);
}

/* The believed text of a port and kind; NULL: nothing is known. */
static inline const struct fab_detail *world_detail(const struct fab_joined *joined, uint32_t port,
                                                    enum fab_fact kind)
{
    const struct fab_details *d = &joined->details;
    for (uint32_t f = d->first[port]; f < d->first[port + 1]; f++)
        if (d->facts[f].kind == kind && (d->facts[f].flags & FAB_DETAIL_CHOSEN) != 0)
            return &d->facts[f];
    return NULL;
}

static inline const char *world_text(const struct fab_joined *joined, uint32_t port, enum fab_fact kind)
{
    const struct fab_detail *detail = world_detail(joined, port, kind);
    return detail == NULL ? NULL : joined->details.pool + detail->text;
}

#endif
