/* Cables and switches that are taken as pulled: what a sweep would see then. */

#include "test/fabrics/fabrics.h"
#include "test/unit/generated.h"
#include "topo/model/retain.h"

static bool is_marked(const struct fab_inventory *inv, uint32_t port, void *cbdata)
{
    (void)inv;
    return ((const uint8_t *)cbdata)[port] != 0;
}

/* From this switch over the cables that are left; the ports of HCAs that are met. */
static uint32_t walk(const struct fab_inventory *inv, const uint8_t *cut, uint32_t from, uint8_t *met)
{
    uint32_t n = 0;
    bool again = true;
    met[from] = 1;
    while (again) {
        again = false;
        for (uint32_t p = 0; p < inv->n_ports; p++) {
            const struct fab_port *port = &inv->ports[p];
            uint32_t far = port->peer == FAB_NONE ? FAB_NONE : inv->ports[port->peer].node;
            if (far == FAB_NONE || cut[p] || cut[port->peer] || !met[port->node] || met[far] ||
                inv->nodes[port->node].kind != FAB_SWITCH || inv->nodes[far].kind != FAB_SWITCH)
                continue;
            met[far] = 1;
            again = true;
        }
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        const struct fab_port *port = &inv->ports[p];
        n += port->peer != FAB_NONE && !cut[p] && !cut[port->peer] && met[port->node] &&
             inv->nodes[port->node].kind == FAB_SWITCH &&
             inv->nodes[inv->ports[port->peer].node].kind == FAB_HCA;
    }
    return n;
}

/* Is a switch in the largest part of what it was connected with? */
static bool model_sees(const struct fab_inventory *inv, const uint8_t *cut, const uint8_t *none, uint32_t sw)
{
    uint8_t *whole = calloc(inv->n_nodes, 1), *part = calloc(inv->n_nodes, 1),
            *best = calloc(inv->n_nodes, 1);
    uint32_t most = 0;
    assert_true(whole != NULL && part != NULL && best != NULL);
    walk(inv, none, sw, whole);
    for (uint32_t i = 0; i < inv->n_nodes; i++) { /* of equal ones the first */
        if (!whole[i])
            continue;
        memset(part, 0, inv->n_nodes);
        uint32_t n = walk(inv, cut, i, part);
        if (n > most || (most == 0 && !memchr(best, 1, inv->n_nodes))) {
            most = n;
            memcpy(best, part, inv->n_nodes);
        }
    }
    bool seen = best[sw] != 0;
    free(whole);
    free(part);
    free(best);
    return seen;
}

TEST(what_falls_apart_is_seen_in_its_largest_part)
{
    static const char *const kinds[] = {"fattree2:5,3,4",  "fattree2:4,2,3,2", "fattree3:4",
                                        "dragonfly:2,4,2", "torus:3,4,2:1",    "mesh:4,3:1",
                                        "mesh:1,12:1",     "random:12,40,10:3"};
    for (uint64_t seed = 1; seed <= 56; seed++) {
        SCOPED(fab_inventory) before, out;
        uint64_t dice = seed;
        uint32_t n_switches = 0, n_cabled = 0;
        assert_int_equal(fabric_parse(kinds[seed % (sizeof(kinds) / sizeof(kinds[0]))], &before), PMIXFAB_OK);
        OWNED(free) uint8_t *cut = calloc(before.n_ports, 1), *none = calloc(before.n_ports, 1);
        bool *seen = calloc(before.n_nodes, sizeof(*seen));
        assert_true(cut != NULL && none != NULL && seen != NULL);
        const uint64_t often = 2 + fabric_random_next(&dice) % 12;
        for (uint32_t p = 0; p < before.n_ports; p++)
            cut[p] = fabric_random_next(&dice) % often == 0;
        for (uint32_t i = 0; i < before.n_nodes; i++)
            if (before.nodes[i].kind == FAB_SWITCH)
                n_switches += seen[i] = model_sees(&before, cut, none, i);
        for (uint32_t p = 0; p < before.n_ports; p++) {
            const struct fab_port *port = &before.ports[p];
            n_cabled += port->peer != FAB_NONE && !cut[p] && !cut[port->peer] &&
                        (seen[port->node] || seen[before.ports[port->peer].node]);
        }
        assert_int_equal(fab_inventory_cut(&before, is_marked, cut, &out, NULL), PMIXFAB_OK);
        for (uint32_t i = 0; i < before.n_nodes; i++)
            if (before.nodes[i].kind == FAB_SWITCH)
                assert_int_equal(fab_inventory_find(&out, before.nodes[i].guid) != FAB_NONE, seen[i]);
        for (uint32_t p = 0; p < out.n_ports; p++)
            n_cabled -= out.ports[p].peer != FAB_NONE;
        assert_int_equal(n_cabled, 0);
        for (uint32_t i = 0; i < out.n_nodes; i++)
            n_switches -= out.nodes[i].kind == FAB_SWITCH;
        assert_int_equal(n_switches, 0);
        free(seen);
    }
}
