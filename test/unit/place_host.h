/* place_host.h - a snapshot of one host with some HCAs, of which the host says where they are. */
#ifndef FAB_TEST_PLACE_HOST_H
#define FAB_TEST_PLACE_HOST_H

#include "test/unit/handmade.h"
#include "test/unit/snapshot_world.h"
#include "topo/join/join.h"

#define PLACE_DEVICES 16
#define PLACE_POOL    65536

/* An HCA as its host tells of it; NULL: it does not. What it does not call by a name the sweep calls
 * "mlx5_sweep". */
struct place_device {
    const char *cpus, *package_cpus, *name;
    bool down;
};

static inline uint32_t place_text(struct fab_details *details, const char *text)
{
    const uint32_t at = details->pool_size;
    assert_true(at + strlen(text) < PLACE_POOL);
    strcpy(details->pool + at, text);
    details->pool_size += (uint32_t)strlen(text) + 1;
    return at;
}

static inline void place_fact(struct fab_details *details, uint32_t *n, enum fab_fact kind,
                              enum fab_source source, const char *text)
{
    if (text != NULL)
        details->facts[(*n)++] = (struct fab_detail){.text = place_text(details, text),
                                                     .sources = (uint16_t)(1u << source),
                                                     .kind = (uint8_t)kind,
                                                     .flags = FAB_DETAIL_CHOSEN};
}

/* HCAs "node1 HCA-1", ... on one switch, as the sweep calls them. Close what comes back. */
static inline struct pmixfab *place_open(const struct place_device *devices, uint32_t n)
{
    static const char *const names[PLACE_DEVICES] = {
        "node1 HCA-1",  "node1 HCA-2",  "node1 HCA-3",  "node1 HCA-4",  "node1 HCA-5",  "node1 HCA-6",
        "node1 HCA-7",  "node1 HCA-8",  "node1 HCA-9",  "node1 HCA-10", "node1 HCA-11", "node1 HCA-12",
        "node1 HCA-13", "node1 HCA-14", "node1 HCA-15", "node1 HCA-16"};
    struct world world = {0};
    uint32_t n_facts = 0;
    hand_star(&world.inv, 0x1000, 1, names, n);
    struct fab_details details = {.n_ports = world.inv.n_ports, .pool_size = 1};
    details.first = must_have((world.inv.n_ports + 1) * sizeof(*details.first));
    details.facts = must_have(3 * PLACE_DEVICES * sizeof(*details.facts));
    details.places = must_have(world.inv.n_ports * sizeof(*details.places));
    details.seen = must_have(world.inv.n_ports);
    details.pool = must_have(PLACE_POOL);
    for (uint32_t p = 0; p < world.inv.n_ports; p++) {
        struct fab_port *port = &world.inv.ports[p];
        details.first[p] = n_facts;
        details.seen[p] = FAB_SEEN_SUBNET;
        if (world.inv.nodes[port->node].kind != FAB_HCA)
            continue;
        const struct place_device *device = &devices[(world.inv.nodes[port->node].guid - 0x1000) / 0x10];
        port->state = device->down ? FAB_PORT_INIT : FAB_PORT_ACTIVE;
        if (device->name == NULL)
            place_fact(&details, &n_facts, FAB_FACT_NAME, FAB_FROM_SUBNET, "mlx5_sweep");
        const uint32_t swept = n_facts;
        place_fact(&details, &n_facts, FAB_FACT_NAME, FAB_FROM_VERBS, device->name);
        place_fact(&details, &n_facts, FAB_FACT_CPUS, FAB_FROM_HWLOC, device->cpus);
        place_fact(&details, &n_facts, FAB_FACT_PACKAGE_CPUS, FAB_FROM_HWLOC, device->package_cpus);
        details.seen[p] |= swept < n_facts ? FAB_SEEN_NODE : 0;
    }
    details.first[world.inv.n_ports] = n_facts;
    world_compute(&world);
    layer_tell(&world.layers[0], &details);
    struct pmixfab *fab = layer_open(&world.layers[0]);
    free(details.first);
    free(details.facts);
    free(details.places);
    free(details.seen);
    free(details.pool);
    world_destroy(&world);
    return fab;
}

#endif
