/*
 * details.c - what the hosts of a made-up fabric would say of their devices.
 */
#include "test/fabrics/details.h"

#include <stdlib.h>
#include <string.h>

#include "test/fabrics/fabrics.h"
#include "topo/base/string_table.h"

#define VERBS        (1u << FAB_FROM_VERBS)
#define HWLOC        (1u << FAB_FROM_HWLOC)
#define LIBFABRIC    (1u << FAB_FROM_LIBFABRIC)
#define UCX          (1u << FAB_FROM_UCX)
#define SUBNET       (1u << FAB_FROM_SUBNET)
#define FACTS_A_PORT 32 /* at most */

struct telling {
    struct fab_details *out;
    struct fab_strings strings;
    uint32_t n;
    uint64_t dice;
    bool whole; /* every fact, no chance */
};

static void tell(struct telling *t, enum fab_fact kind, unsigned sources, unsigned flags, const char *text)
{
    if (!t->whole && fabric_random_next(&t->dice) % 4 == 0)
        return;
    t->out->facts[t->n++] = (struct fab_detail){
        .text = fab_strings_add(&t->strings, text),
        .sources = (uint16_t)sources,
        .kind = (uint8_t)kind,
        .flags = (uint8_t)flags,
    };
}

static void tell_number(struct telling *t, enum fab_fact kind, unsigned sources, unsigned flags,
                        unsigned number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    tell(t, kind, sources, flags, text);
}

static void tell_guid(struct telling *t, enum fab_fact kind, unsigned sources, uint64_t guid)
{
    char text[24];
    snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)guid);
    tell(t, kind, sources, FAB_DETAIL_CHOSEN, text);
}

/* The card's number in its host, from 1: HCAs of a host follow each other by GUID. */
static unsigned card_of(const struct fab_inventory *inv, uint32_t node)
{
    unsigned card = 1;
    while (node > 0 && inv->nodes[node - 1].kind == FAB_HCA &&
           strcmp(fab_str(inv, inv->nodes[node - 1].host), fab_str(inv, inv->nodes[node].host)) == 0) {
        card++;
        node--;
    }
    return card;
}

/* By kind, as a reader of the snapshot relies on. */
static void tell_port(struct telling *t, const struct fab_inventory *inv, uint32_t p)
{
    const unsigned chosen = FAB_DETAIL_CHOSEN, all = VERBS | HWLOC | LIBFABRIC | UCX;
    const struct fab_port *port = &inv->ports[p];
    const struct fab_node *node = &inv->nodes[port->node];
    unsigned card = card_of(inv, port->node), mbps = fab_rate_mbps(port->width, port->speed);
    char text[32];

    snprintf(text, sizeof(text), "mlx5_%u", card - 1);
    tell(t, FAB_FACT_NAME, all, chosen, text);
    tell_number(t, FAB_FACT_PORT, VERBS | UCX, chosen, port->num);
    tell_guid(t, FAB_FACT_NODE_GUID, SUBNET | VERBS | HWLOC, node->guid);
    tell_guid(t, FAB_FACT_PORT_GUID, SUBNET | VERBS, port->guid);
    snprintf(text, sizeof(text), "0000:%02x:00:%02x", (0x40 + card) & 255, port->num - 1u);
    tell(t, FAB_FACT_PCI, HWLOC | VERBS, chosen, text);
    tell(t, FAB_FACT_BUS, HWLOC, chosen, "PCI");
    tell(t, FAB_FACT_VENDOR, HWLOC, chosen, "Mellanox Technologies");
    tell(t, FAB_FACT_VENDOR_ID, HWLOC | VERBS, chosen, "0x15b3");
    tell(t, FAB_FACT_PART, HWLOC, chosen, "MT28908 Family [ConnectX-6]");
    tell(t, FAB_FACT_PART_ID, HWLOC | VERBS, chosen, "0x101b");
    tell(t, FAB_FACT_DRIVER, VERBS, chosen, "mlx5_core");
    tell(t, FAB_FACT_FIRMWARE, VERBS, chosen, p % 5 == 0 ? "20.28.2006" : "20.31.1014");
    tell(t, FAB_FACT_TYPE, VERBS, chosen, "InfiniBand");
    tell(t, FAB_FACT_STATE, SUBNET | VERBS, chosen, port->state == FAB_PORT_ACTIVE ? "up" : "down");
    tell_number(t, FAB_FACT_MTU, VERBS, chosen, 4096);
    if (p % 7 == 3) {
        tell_number(t, FAB_FACT_SPEED, SUBNET, chosen | FAB_DETAIL_CONFLICT, mbps);
        tell_number(t, FAB_FACT_SPEED, VERBS, FAB_DETAIL_CONFLICT, mbps / 2 + 1);
    } else {
        tell_number(t, FAB_FACT_SPEED, SUBNET | VERBS, chosen, mbps);
    }
    tell_number(t, FAB_FACT_NUMA, HWLOC, chosen, (card - 1) / 2);
    tell_number(t, FAB_FACT_PACKAGE, HWLOC, chosen, (card - 1) / 4);
    tell(t, FAB_FACT_PROVIDER, LIBFABRIC, chosen, "verbs");
    tell(t, FAB_FACT_PROVIDER, LIBFABRIC, chosen, "verbs;ofi_rxm");
    tell(t, FAB_FACT_TRANSPORT, UCX, chosen, "rc_mlx5");
    tell(t, FAB_FACT_TRANSPORT, UCX, chosen, "ud_mlx5");
    tell_number(t, FAB_FACT_LATENCY, UCX, chosen | FAB_DETAIL_ESTIMATE, 600);
    t->out->places[p] = (struct fab_locality){
        .card = (uint16_t)card,
        .sw = (card - 1) % 4 < 2 ? (uint16_t)(1 + (card - 1) / 4) : 0,
        .numa = (uint16_t)(1 + (card - 1) / 2),
        .package = (uint16_t)(1 + (card - 1) / 4),
    };
}

static void tell_all(struct telling *t, const struct fab_inventory *inv)
{
    struct fab_details *out = t->out;

    for (uint32_t p = 0; p < inv->n_ports; p++) {
        out->first[p] = t->n;
        out->seen[p] = FAB_SEEN_SUBNET;
        if (inv->nodes[inv->ports[p].node].kind != FAB_HCA)
            continue;
        if (!t->whole && fabric_random_next(&t->dice) % 4 == 0)
            continue;
        out->seen[p] |= FAB_SEEN_NODE;
        if (!t->whole && fabric_random_next(&t->dice) % 4 == 0)
            out->seen[p] = FAB_SEEN_NODE;
        tell_port(t, inv, p);
    }
    out->first[inv->n_ports] = t->n;
}

int fabric_details(const struct fab_inventory *inv, uint64_t seed, struct fab_details *out)
{
    struct telling t = {.out = out, .dice = seed, .whole = seed == 0};

    *out = (struct fab_details){.n_ports = inv->n_ports};
    out->first = calloc(inv->n_ports + 1u, sizeof(*out->first));
    out->facts = calloc((size_t)inv->n_ports * FACTS_A_PORT + 1, sizeof(*out->facts));
    out->places = calloc(inv->n_ports + 1u, sizeof(*out->places));
    out->seen = calloc(inv->n_ports + 1u, sizeof(*out->seen));
    int rc = fab_strings_init(&t.strings);
    if (out->first == NULL || out->facts == NULL || out->places == NULL || out->seen == NULL)
        rc = PMIXFAB_ERR_NOMEM;
    if (rc == 0) {
        tell_all(&t, inv);
        rc = t.strings.error;
    }
    out->pool = t.strings.text;
    out->pool_size = t.strings.size;
    t.strings.text = NULL;
    fab_strings_destroy(&t.strings);
    if (rc != 0)
        fabric_details_destroy(out);
    return rc;
}

void fabric_details_destroy(struct fab_details *details)
{
    free(details->first);
    free(details->facts);
    free(details->places);
    free(details->seen);
    free(details->pool);
    *details = (struct fab_details){0};
}
