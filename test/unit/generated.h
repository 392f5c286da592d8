/* generated.h - for tests: a generated fabric, and what is computed of one, as values. */
#ifndef TEST_UNIT_GENERATED_H
#define TEST_UNIT_GENERATED_H

#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"
#include "topo/plane/cost.h"

/* As fabric_parse() has it: generated("fattree2:4,2,4"). */
static inline struct fab_inventory generated(const char *text)
{
    struct fab_inventory inv;
    int rc = fabric_parse(text, &inv);
    if (rc != 0)
        fail_msg("%s cannot be generated: %d", text, rc);
    return inv;
}

/* As fabric_node_name() has it. */
static inline const char *node_name(const struct fab_inventory *inv, uint32_t node)
{
    char name[256];
    return printed("%s", fabric_node_name(inv, node, name, sizeof(name)));
}

static inline struct fab_inventory inventory_copy(const struct fab_inventory *inv)
{
    struct fab_inventory copy;
    assert_int_equal(fab_inventory_copy(&copy, inv), 0);
    return copy;
}

/* With costs by rate. */
static inline struct fab_planes planes_of(const struct fab_inventory *inv)
{
    struct fab_planes planes;
    must_do(fab_planes_build(inv, FAB_COST_RATE, &planes, fresh_err()));
    return planes;
}

static inline struct fab_costs costs_of(const struct fab_plane *plane, unsigned threads)
{
    struct fab_costs costs;
    assert_int_equal(fab_costs_compute(plane, threads, &costs), 0);
    return costs;
}

#endif
