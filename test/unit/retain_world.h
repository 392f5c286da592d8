/* retain_world.h - what the tests of retained places share. */
#ifndef FAB_TEST_RETAIN_WORLD_H
#define FAB_TEST_RETAIN_WORLD_H

#include "test/unit/generated.h"
#include "topo/model/retain.h"

static inline bool always(const struct fab_inventory *before, uint32_t port, void *cbdata)
{
    (void)before, (void)port, (void)cbdata;
    return true;
}

static inline struct fab_inventory keep(const struct fab_inventory *before, const struct fab_inventory *swept)
{
    struct fab_inventory out;
    must_do(fab_retain(before, swept, always, NULL, &out, fresh_err()));
    return out;
}

static inline void copy(const struct fab_inventory *from, struct fab_inventory *to)
{
    assert_int_equal(fab_inventory_copy(to, from), PMIXFAB_OK);
}

static inline bool is_missing(const struct fab_inventory *inv, uint64_t guid)
{
    uint32_t node = fab_inventory_find(inv, guid);
    return node != FAB_NONE && inv->nodes[node].missing;
}

/* The HCA of each second host becomes the second port of the one before. */
static inline void make_dual(struct fab_inventory *inv)
{
    uint32_t *to = must_have(((size_t)inv->n_nodes + 1) * sizeof(*to)), n = 0, first = FAB_NONE;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        bool second = inv->nodes[i].kind == FAB_HCA && first != FAB_NONE;
        to[i] = second ? first : n;
        if (inv->nodes[i].kind == FAB_HCA)
            first = second ? FAB_NONE : n;
        if (second)
            inv->nodes[to[i]].num_ports = 2;
        else
            inv->nodes[n++] = inv->nodes[i];
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t node = inv->ports[p].node;
        bool second = node > 0 && to[node] == to[node - 1];
        inv->ports[p].node = to[node];
        inv->ports[p].num = second ? 2 : inv->ports[p].num;
    }
    inv->n_nodes = n;
    inv->finished = false;
    free(to);
    assert_int_equal(fab_inventory_finish(inv, NULL), PMIXFAB_OK);
}

/* "dual " before a kind: each two HCAs are one with two ports. */
static inline void make_any(const char *kind, struct fab_inventory *inv)
{
    const bool dual = strncmp(kind, "dual ", 5) == 0;
    assert_int_equal(fabric_parse(dual ? kind + 5 : kind, inv), PMIXFAB_OK);
    if (dual)
        make_dual(inv);
}

#endif
