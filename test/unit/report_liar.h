/* report_liar.h - reports that claim the devices of others, for tests: GUIDs, MACs, names and addresses are
 * of few values, so that they meet. */
#ifndef FAB_TEST_REPORT_LIAR_H
#define FAB_TEST_REPORT_LIAR_H

#include "test/unit/report_world.h"

static inline uint32_t liar_below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)((fabric_random_next(seed) >> 16) % n);
}

/* GUIDs that a liar would choose: of nodes and ports of the fabric, made up ones, new ones. */
static inline uint64_t liar_guid(const struct fab_inventory *inv, uint64_t *seed)
{
    switch (liar_below(seed, 5)) {
    case 0:
        return inv->nodes[liar_below(seed, inv->n_nodes)].guid;
    case 1: {
        uint64_t guid = inv->ports[liar_below(seed, inv->n_ports)].guid;
        return guid == 0 ? 1 : guid;
    }
    case 2:
        return FAB_ETHERNET_GUID | (UINT64_C(0x020000000000) + liar_below(seed, 6));
    case 3:
        return UINT64_MAX - liar_below(seed, 2);
    default:
        return 0x900 + liar_below(seed, 8);
    }
}

static inline void liar_fact(struct fab_report *r, uint32_t item, unsigned kind,
                             const struct fab_inventory *inv, uint64_t *seed)
{
    static const char *const types[] = {"InfiniBand", "Ethernet"}, *const states[] = {"up", "down",
                                                                                      "unknown"};
    static const char *const speeds[] = {"1", "1000", "25000", "100000", "4000000000"};
    static const char *const switches[] = {"00:21:5e:00:00:01", "02:00:00:00:00:01", "local x", "ifname y"};
    static const char *const names[] = {"mlx5_0", "mlx5_1", "HCA-1", "0x0000000000000900", "HCA-2"};
    switch (kind) {
    case FAB_FACT_NAME:
        fab_report_fact(r, item, FAB_FACT_NAME, names[liar_below(seed, 5)]);
        break;
    case FAB_FACT_PORT:
        fab_report_printf(r, item, FAB_FACT_PORT, "%u",
                          liar_below(seed, 20) == 0 ? 254 : 1 + liar_below(seed, 3));
        break;
    case FAB_FACT_INTERFACE:
        fab_report_printf(r, item, FAB_FACT_INTERFACE, "e%u", liar_below(seed, 4));
        break;
    case FAB_FACT_NODE_GUID:
    case FAB_FACT_SYSTEM_GUID:
    case FAB_FACT_PORT_GUID:
        fab_report_printf(r, item, (enum fab_fact)kind, "0x%016" PRIx64, liar_guid(inv, seed));
        break;
    case FAB_FACT_MAC:
        fab_report_printf(r, item, FAB_FACT_MAC, "02:00:00:00:00:%02x", liar_below(seed, 6) + 1);
        break;
    case FAB_FACT_PCI:
    case FAB_FACT_SWITCH:
        fab_report_printf(r, item, (enum fab_fact)kind, "0000:%02x:00:00", liar_below(seed, 4));
        break;
    case FAB_FACT_TYPE:
        fab_report_fact(r, item, FAB_FACT_TYPE, types[liar_below(seed, 2)]);
        break;
    case FAB_FACT_STATE:
        fab_report_fact(r, item, FAB_FACT_STATE, states[liar_below(seed, 3)]);
        break;
    case FAB_FACT_SPEED:
        fab_report_fact(r, item, FAB_FACT_SPEED, speeds[liar_below(seed, 5)]);
        break;
    case FAB_FACT_LID:
        fab_report_printf(r, item, FAB_FACT_LID, "%u", 1 + liar_below(seed, 60000));
        break;
    case FAB_FACT_ADDRESS:
        fab_report_printf(r, item, FAB_FACT_ADDRESS, "10.%u.0.%u/16", liar_below(seed, 4),
                          liar_below(seed, 250));
        break;
    case FAB_FACT_NUMA:
    case FAB_FACT_PACKAGE:
        fab_report_printf(r, item, (enum fab_fact)kind, "%u", liar_below(seed, 3));
        break;
    case FAB_FACT_SWITCH_ID:
        fab_report_fact(r, item, FAB_FACT_SWITCH_ID, switches[liar_below(seed, 4)]);
        break;
    case FAB_FACT_SWITCH_NAME:
        fab_report_printf(r, item, FAB_FACT_SWITCH_NAME, "tor%u", liar_below(seed, 3));
        break;
    case FAB_FACT_SWITCH_PORT:
        fab_report_printf(r, item, FAB_FACT_SWITCH_PORT, "p%u", liar_below(seed, 300));
        break;
    default:
        break;
    }
}

/* Who had what before: somebody, by chance. cbdata: the seed, the same one gives the same answers. */
static inline const char *liar_holder(void *cbdata, enum fab_fact kind, uint64_t value, uint64_t node)
{
    static const char *const hosts[] = {"node0001", "node0002", "node0003", "n9", "node2", "localhost", NULL};
    uint64_t mixed = *(const uint64_t *)cbdata ^ (value + node + kind) * UINT64_C(0x9e3779b97f4a7c15);
    return hosts[liar_below(&mixed, sizeof(hosts) / sizeof(hosts[0]))];
}

static inline void liar_report(struct fab_report *r, const char *host, const struct fab_inventory *inv,
                               uint64_t *seed)
{
    world_begin(r, host);
    for (unsigned i = liar_below(seed, 24); i > 0; i--) {
        uint32_t item = world_item(r, (enum fab_source)(1 + liar_below(seed, 6)));
        unsigned chance = 10 + liar_below(seed, 60);
        for (unsigned kind = 1; kind < FAB_FACTS; kind++)
            if (liar_below(seed, 100) < chance)
                liar_fact(r, item, kind, inv, seed);
    }
    world_finish(r);
}

#endif
