/* join_choose.c - of all reported values of one port, find the chosen ones and the conflicts. */
#include <stdlib.h>
#include <string.h>

#include "topo/base/array.h"
#include "topo/base/natural.h"
#include "topo/base/order.h"
#include "topo/join/join_state.h"

/* ---- rank of sources ------------------------------------------------------------------------------ */

#define END FAB_SOURCES
#define V   FAB_FROM_VERBS
#define H   FAB_FROM_HWLOC
#define F   FAB_FROM_LIBFABRIC
#define U   FAB_FROM_UCX
#define E   FAB_FROM_ETHERNET
#define L   FAB_FROM_LLDP
#define S   FAB_FROM_SUBNET

/* Orders of sources. Each contains all of them, so a value with only one source is chosen. */
static const enum fab_source by_driver[] = {
    V, H, F, U, E, L, S, END}; /* the process that holds the RDMA device open first */
static const enum fab_source by_fabric[] = {S, V, E, F, H, U, L, END}; /* knowledge of the connection first */
static const enum fab_source by_machine[] = {H, V, E, F, U, L, S, END}; /* knowledge of the buses first */
static const enum fab_source by_module[] = {V, E, F, H,
                                            U, L, S, END}; /* knowledge from the kernel's driver first */
static const enum fab_source by_use[] = {V, F, E, H, U, L, S, END}; /* the sender first */
static const enum fab_source by_network[] = {E, V, H, F,
                                             U, L, S, END}; /* the configuration of interfaces first */
static const enum fab_source by_libfabric[] = {F, U, V, E, H, L, S, END}; /* known to libfabric only */
static const enum fab_source by_ucx[] = {U, F, V, E, H, L, S, END};       /* measured or estimated by UCX */
static const enum fab_source by_neighbour[] = {L, E, V, H, F, U, S, END}; /* the far end of the cable first */

#undef V
#undef H
#undef F
#undef U
#undef E
#undef L
#undef S

/* The table. `per_port`: each port of a device has its own value. */
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

/* ---- what is chosen -------------------------------------------------------------------------------- */

void join_heap_free(struct join_heap *heap)
{
    free(heap->facts);
    free(heap->sorted);
    free(heap->said);
    memset(heap, 0, sizeof(*heap));
}

int join_heap_add(struct join_heap *heap, const struct join_fact *fact)
{
    if (!FAB_ARRAY_ROOM(&heap->facts, &heap->cap_facts, heap->n_facts + 1))
        return PMIXFAB_ERR_NOMEM;
    heap->facts[heap->n_facts++] = *fact;
    return PMIXFAB_OK;
}

/* Compare facts of one kind. */
static int cmp_fact(const void *va, const void *vb)
{
    const struct join_fact *a = va, *b = vb;
    int order = a->text == b->text ? 0 : fab_natural_cmp(a->text, b->text);
    return order ?: FAB_ORDER(a->estimate, b->estimate) ?: FAB_ORDER(a->source, b->source);
}

/* Sort facts of one kind: mostly one of each source. */
static void sort_kind(struct join_fact *facts, uint32_t n)
{
    if (n > 64) {
        qsort(facts, n, sizeof(*facts), cmp_fact);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        struct join_fact fact = facts[i];
        uint32_t at = i;
        for (; at > 0 && cmp_fact(&facts[at - 1], &fact) > 0; at--)
            facts[at] = facts[at - 1];
        facts[at] = fact;
    }
}

/* Sort by kind, then as above. There are few kinds: count them, and compare facts of one kind only. */
static void join_heap_sort(struct join_heap *heap)
{
    uint32_t first[FAB_FACTS + 1] = {0};
    for (uint32_t i = 0; i < heap->n_facts; i++)
        first[heap->facts[i].kind + 1]++;
    for (unsigned kind = 0; kind < FAB_FACTS; kind++)
        first[kind + 1] += first[kind];
    uint32_t at[FAB_FACTS];
    memcpy(at, first, sizeof(at));
    for (uint32_t i = 0; i < heap->n_facts; i++)
        heap->sorted[at[heap->facts[i].kind]++] = heap->facts[i];
    for (unsigned kind = 0; kind < FAB_FACTS; kind++)
        if (first[kind + 1] - first[kind] > 1)
            sort_kind(heap->sorted + first[kind], first[kind + 1] - first[kind]);
}

/* The sweep's name of a device is the fabric's name for it and no contradiction. */
static bool join_fact_disputes(const struct join_fact *fact)
{
    return !fact->estimate && !(fact->kind == FAB_FACT_NAME && fact->source == FAB_FROM_SUBNET);
}

/* Merge adjacent facts with one text. */
static void join_heap_merge_equal(struct join_heap *heap)
{
    heap->n_said = 0;
    for (uint32_t i = 0; i < heap->n_facts; i++) {
        const struct join_fact *fact = &heap->sorted[i];
        struct join_said *said = heap->n_said == 0 ? NULL : &heap->said[heap->n_said - 1];
        if (said == NULL || said->fact.kind != fact->kind || strcmp(said->fact.text, fact->text) != 0) {
            said = &heap->said[heap->n_said++];
            *said = (struct join_said){.fact = *fact, .software = true};
        } else if (join_better(fact, &said->fact)) {
            said->fact = *fact;
        }
        said->sources |= (uint16_t)(1u << fact->source);
        said->software = said->software && fact->software;
        said->disputes = said->disputes || join_fact_disputes(fact);
    }
}

/* Decide among the texts of one kind. */
static void join_texts_decide(struct join_said *said, uint32_t n)
{
    bool many = fab_fact_many((enum fab_fact)said[0].fact.kind);
    uint32_t best = 0, n_disputes = 0;
    for (uint32_t i = 0; i < n; i++) {
        said[i].flags = (uint8_t)((said[i].fact.estimate ? FAB_DETAIL_ESTIMATE : 0) |
                                  (said[i].software ? FAB_DETAIL_SOFTWARE : 0));
        n_disputes += said[i].disputes;
        if (i > 0 && join_better(&said[i].fact, &said[best].fact))
            best = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (many)
            said[i].flags |= FAB_DETAIL_CHOSEN;
        else if (n_disputes > 1 && said[i].disputes)
            said[i].flags |= FAB_DETAIL_CONFLICT;
    }
    if (many)
        return;
    struct join_said chosen = said[best];
    chosen.flags |= FAB_DETAIL_CHOSEN;
    memmove(said + 1, said, best * sizeof(*said));
    said[0] = chosen;
}

int join_choose(struct join_heap *heap)
{
    if (!FAB_ARRAY_ROOM(&heap->said, &heap->cap_said, heap->n_facts) ||
        !FAB_ARRAY_ROOM(&heap->sorted, &heap->cap_sorted, heap->n_facts))
        return PMIXFAB_ERR_NOMEM;
    join_heap_sort(heap);
    join_heap_merge_equal(heap);
    for (uint32_t first = 0, end; first < heap->n_said; first = end) {
        for (end = first + 1; end < heap->n_said && heap->said[end].fact.kind == heap->said[first].fact.kind;)
            end++;
        join_texts_decide(heap->said + first, end - first);
    }
    heap->n_facts = 0;
    return PMIXFAB_OK;
}
