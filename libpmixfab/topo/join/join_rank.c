/* join_rank.c - who is believed about what. */
#include "topo/base/natural.h"
#include "topo/join/join_state.h"

#define END FAB_SOURCES
#define V   FAB_FROM_VERBS
#define H   FAB_FROM_HWLOC
#define F   FAB_FROM_LIBFABRIC
#define U   FAB_FROM_UCX
#define E   FAB_FROM_ETHERNET
#define L   FAB_FROM_LLDP
#define S   FAB_FROM_SUBNET

/* Orders of sources. Each has all of them: whoever alone says something is believed. */
static const enum fab_source by_driver[] = {V, H, F, U, E, L, S, END};    /* who holds the RDMA device open */
static const enum fab_source by_fabric[] = {S, V, E, F, H, U, L, END};    /* who is connected */
static const enum fab_source by_machine[] = {H, V, E, F, U, L, S, END};   /* who looks at the buses */
static const enum fab_source by_module[] = {V, E, F, H, U, L, S, END};    /* who asks the kernel's driver */
static const enum fab_source by_use[] = {V, F, E, H, U, L, S, END};       /* who sends */
static const enum fab_source by_network[] = {E, V, H, F, U, L, S, END};   /* who configures interfaces */
static const enum fab_source by_libfabric[] = {F, U, V, E, H, L, S, END}; /* what libfabric alone knows */
static const enum fab_source by_ucx[] = {U, F, V, E, H, L, S, END};       /* what UCX measures or guesses */
static const enum fab_source by_neighbour[] = {L, E, V, H, F, U, S, END}; /* what lies beyond the cable */

#undef V
#undef H
#undef F
#undef U
#undef E
#undef L
#undef S

/* The table. `per_port`: each port of a device has its own. */
static const struct {
    const enum fab_source *order;
    bool per_port;
} kinds[FAB_FACTS] = {
    [FAB_FACT_NAME] = {by_driver, false},
    [FAB_FACT_PORT] = {by_fabric, true},
    [FAB_FACT_INTERFACE] = {by_network, true},
    [FAB_FACT_NODE_GUID] = {by_fabric, false},
    [FAB_FACT_SYSTEM_GUID] = {by_fabric, false},
    [FAB_FACT_PORT_GUID] = {by_fabric, true},
    [FAB_FACT_MAC] = {by_network, true},
    [FAB_FACT_PCI] = {by_machine, false},
    [FAB_FACT_BUS] = {by_machine, false},
    [FAB_FACT_VENDOR] = {by_machine, false},
    [FAB_FACT_VENDOR_ID] = {by_machine, false},
    [FAB_FACT_PART] = {by_machine, false},
    [FAB_FACT_PART_ID] = {by_machine, false},
    [FAB_FACT_DRIVER] = {by_module, false},
    [FAB_FACT_FIRMWARE] = {by_use, false},
    [FAB_FACT_TYPE] = {by_fabric, true},
    [FAB_FACT_STATE] = {by_fabric, true},
    [FAB_FACT_MTU] = {by_use, true},
    [FAB_FACT_SPEED] = {by_fabric, true},
    [FAB_FACT_LID] = {by_fabric, true},
    [FAB_FACT_GID] = {by_driver, true},
    [FAB_FACT_ADDRESS] = {by_network, true},
    [FAB_FACT_NUMA] = {by_machine, false},
    [FAB_FACT_PACKAGE] = {by_machine, false},
    [FAB_FACT_SWITCH] = {by_machine, false},
    [FAB_FACT_SLOT_SPEED] = {by_machine, false},
    [FAB_FACT_PROVIDER] = {by_libfabric, false},
    [FAB_FACT_PROTOCOL] = {by_libfabric, false},
    [FAB_FACT_TRANSPORT] = {by_ucx, false},
    [FAB_FACT_BANDWIDTH] = {by_ucx, true},
    [FAB_FACT_LATENCY] = {by_ucx, true},
    [FAB_FACT_SWITCH_ID] = {by_neighbour, true},
    [FAB_FACT_SWITCH_NAME] = {by_neighbour, true},
    [FAB_FACT_SWITCH_PORT] = {by_neighbour, true},
    [FAB_FACT_SOFTWARE] = {by_machine, false},
    [FAB_FACT_CPUS] = {by_machine, false},
    [FAB_FACT_PACKAGE_CPUS] = {by_machine, false},
};

const enum fab_source *fab_join_order(enum fab_fact kind)
{
    static const enum fab_source nobody[] = {END};
    return (unsigned)kind < FAB_FACTS && kinds[kind].order != NULL ? kinds[kind].order : nobody;
}

bool join_per_port(enum fab_fact kind)
{
    return (unsigned)kind < FAB_FACTS && kinds[kind].per_port;
}

static unsigned rank_of(const struct join_fact *fact)
{
    const enum fab_source *order = fab_join_order((enum fab_fact)fact->kind);
    unsigned rank = 0;
    while (order[rank] != FAB_SOURCES && order[rank] != fact->source)
        rank++;
    return rank;
}

bool join_better(const struct join_fact *a, const struct join_fact *b)
{
    if (a->text == NULL || b->text == NULL)
        return b->text == NULL && a->text != NULL;
    if (a->estimate != b->estimate)
        return a->estimate < b->estimate;
    if (a->source != b->source)
        return rank_of(a) < rank_of(b);
    int order = a->text == b->text ? 0 : fab_natural_cmp(a->text, b->text);
    return a->kind == FAB_FACT_BANDWIDTH ? order > 0 : order < 0; /* "of the fastest of them" */
}
