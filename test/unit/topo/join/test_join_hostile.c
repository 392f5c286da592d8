/* Reports that say anything: a join never fails for it, and the sweep's part stays what it was. */
#include <time.h>

#include "test/unit/handmade.h"
#include "test/unit/report_liar.h"
#include "test/unit/report_world.h"
#include "topo/inventory/host_name.h"
#include "topo/join/state.h"

#define MAX_HOSTS 8
#define MANY      3000 /* items, as many as fit a report's bytes */

static bool known_of(const struct fab_joined *joined, uint32_t p)
{
    for (uint32_t f = joined->details.first[p]; f < joined->details.first[p + 1]; f++)
        if ((joined->details.facts[f].sources & ~(1u << FAB_FROM_SUBNET)) != 0)
            return true;
    return false;
}

/* Every node, port and cable of the sweep is there, and who spoke of a port is of its host. */
static void check_swept(const struct fab_inventory *swept, const struct fab_joined *joined,
                        const struct fab_report *const *reports, uint32_t n)
{
    const struct fab_inventory *inv = &joined->inv;
    for (uint32_t i = 0; i < swept->n_nodes; i++) {
        const struct fab_node *old = &swept->nodes[i];
        uint32_t at = fab_inventory_find(inv, old->guid);
        assert_true(at != FAB_NONE);
        const struct fab_node *node = &inv->nodes[at];
        assert_true(node->kind == old->kind && node->num_ports == old->num_ports &&
                    node->system_guid == old->system_guid && node->lid == old->lid);
        assert_string_equal(fab_str(inv, node->desc), fab_str(swept, old->desc));
        if (old->kind != FAB_HCA)
            assert_string_equal(fab_str(inv, node->name), fab_str(swept, old->name));
        if (!join_unnamed(swept, old))
            assert_string_equal(fab_str(inv, node->host), fab_str(swept, old->host));
        for (uint32_t p = old->first_port; p < old->first_port + old->n_ports; p++) {
            const struct fab_port *was = &swept->ports[p];
            uint32_t q = fab_inventory_port(inv, at, was->num);
            bool mine = old->unnamed != 0 || join_unnamed(swept, old);
            assert_true(q != FAB_NONE);
            const struct fab_port *port = &inv->ports[q];
            assert_true(was->guid == 0 || was->guid == port->guid);
            if (was->peer != FAB_NONE) {
                const struct fab_port *a = &swept->ports[was->peer], *b = &inv->ports[port->peer];
                assert_true(swept->nodes[a->node].guid == inv->nodes[b->node].guid && a->num == b->num);
                assert_true(port->state == was->state && port->width == was->width &&
                            port->speed == was->speed && port->lid == was->lid &&
                            port->subnet == was->subnet);
                assert_true((joined->details.seen[q] & FAB_SEEN_SUBNET) != 0);
            }
            for (uint32_t r = 0; r < n; r++)
                mine = mine || fab_same_host(reports[r]->host, fab_str(swept, old->host));
            assert_true(mine || !known_of(joined, q));
        }
    }
}

/* Nodes of one host have different names, except those that the sweep calls alike. */
static void check_names(const struct fab_inventory *swept, const struct fab_joined *joined)
{
    const struct fab_inventory *inv = &joined->inv;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        for (uint32_t k = i + 1; k < inv->n_nodes; k++) {
            const struct fab_node *a = &inv->nodes[i], *b = &inv->nodes[k];
            if (a->kind != FAB_HCA || b->kind != FAB_HCA ||
                strcmp(fab_str(inv, a->host), fab_str(inv, b->host)) != 0 ||
                strcmp(fab_str(inv, a->name), fab_str(inv, b->name)) != 0)
                continue;
            uint32_t x = fab_inventory_find(swept, a->guid), y = fab_inventory_find(swept, b->guid);
            if (x == FAB_NONE || y == FAB_NONE ||
                strcmp(fab_str(swept, swept->nodes[x].name), fab_str(swept, swept->nodes[y].name)) != 0)
                fail_msg("two devices of %s are called %s", fab_str(inv, a->host), fab_str(inv, a->name));
        }
}

static void same_joined(const struct fab_joined *a, const struct fab_joined *b)
{
    assert_true(fab_inventory_equal(&a->inv, &b->inv));
    assert_int_equal(a->n_refused, b->n_refused);
    assert_int_equal(a->details.pool_size, b->details.pool_size);
    assert_memory_equal(a->details.pool, b->details.pool, a->details.pool_size);
    uint32_t n = a->details.n_ports, facts = a->details.first[n];
    assert_memory_equal(a->details.first, b->details.first, (n + 1) * sizeof(*a->details.first));
    assert_true(facts == 0 ||
                memcmp(a->details.facts, b->details.facts, facts * sizeof(*a->details.facts)) == 0);
    assert_memory_equal(a->details.places, b->details.places, n * sizeof(*a->details.places));
    assert_memory_equal(a->details.seen, b->details.seen, n);
}

/* The same report with its items in another order. */
static void shuffled(struct fab_report *to, const struct fab_report *from, uint64_t *seed)
{
    uint32_t order[64];
    world_begin(to, from->host);
    for (uint32_t i = 0; i < from->n_items; i++) {
        uint32_t k = liar_below(seed, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < from->n_items; i++) {
        const struct fab_report_item *old = &from->items[order[i]];
        uint32_t item = world_item(to, (enum fab_source)old->source);
        for (uint32_t f = old->first + old->n; f > old->first; f--)
            fab_report_fact(to, item, (enum fab_fact)from->facts[f - 1].kind,
                            from->pool + from->facts[f - 1].text);
    }
    world_finish(to);
}

static void count_line(const char *line, void *cbdata)
{
    assert_true(strlen(line) < 1200 && strchr(line, '\n') == NULL);
    (*(unsigned *)cbdata)++;
}

TEST(test_anything)
{
    static const char *const hosts[MAX_HOSTS] = {"node0001", "node0001.x", "node0002", "node0003",
                                                 "n9",       "localhost",  "node2",    "node0004.y"};
    static const struct fab_ethernet_plane planes[] = {
        {"b", "10.0.0.0/16"}, {"a", "10.1.0.0/16"}, {"a", "10.2.0.0/16"}};
    uint64_t seed = 77;
    unsigned lines = 0, refused = 0, added = 0, ethernet = 0;
    for (unsigned round = 0; round < 6000; round++) {
        struct fab_report reports[MAX_HOSTS], again[MAX_HOSTS];
        const struct fab_report *list[MAX_HOSTS], *mixed[MAX_HOSTS];
        SCOPED(fab_joined) joined, other;
        struct fab_err err = {{0}};
        SCOPED(fab_inventory) inv = generated("fattree2:2,1,3");
        for (uint32_t i = 0; i < inv.n_nodes; i++)
            inv.nodes[i].unnamed = inv.nodes[i].kind == FAB_HCA && liar_below(&seed, 4) == 0;
        if (liar_below(&seed, 2) == 0)
            fabric_unlink(&inv, "node0002", 1);
        uint32_t lost = inv.nodes[fabric_find(&inv, "node0002")].first_port;
        if (inv.ports[lost].peer == FAB_NONE && liar_below(&seed, 2) == 0)
            inv.ports[lost].guid = 0;
        if (liar_below(&seed, 3) == 0) { /* a real device with a GUID as we make them */
            inv.nodes[inv.n_nodes - 1].guid = FAB_ETHERNET_GUID | UINT64_C(0x020000000001);
            hand_finish(&inv);
        }
        uint32_t n = liar_below(&seed, MAX_HOSTS) + 1;
        for (uint32_t i = 0; i < n; i++) {
            liar_report(&reports[i], hosts[i], &inv, &seed);
            shuffled(&again[i], &reports[i], &seed);
            assert_true(fab_report_equal(&reports[i], &again[i]));
            list[i] = &reports[i];
            mixed[n - 1 - i] = &again[i];
        }
        uint64_t before = round / 2;
        const struct fab_prior_owners past = {liar_holder, &before, NULL};
        must(fab_join(NULL,
                      &(struct fab_join_input){&inv, list, NULL, n, planes, 3, &past, count_line, &lines},
                      &joined, &err),
             &err);
        assert_int_equal(
            fab_join(NULL, &(struct fab_join_input){&inv, mixed, NULL, n, planes, 3, &past, NULL, NULL},
                     &other, &err),
            0);
        same_joined(&joined, &other);
        check_swept(&inv, &joined, list, n);
        check_names(&inv, &joined);
        assert_int_equal(fab_inventory_finish(&joined.inv, &err), 0);
        SCOPED(fab_planes) cut = planes_of(&joined.inv);
        refused += joined.n_refused;
        added += joined.inv.n_nodes - inv.n_nodes;
        for (uint32_t s = 0; s < joined.inv.n_subnets; s++)
            ethernet += fab_prefix_is_ethernet(joined.inv.subnets[s].prefix);
        for (uint32_t i = 0; i < n; i++) {
            fab_report_destroy(&reports[i]);
            fab_report_destroy(&again[i]);
        }
    }
    assert_true(lines > 1000 && refused > 1000 && added > 1000 && ethernet > 1000);
}

static double join_seconds(const struct fab_report *report, struct fab_joined *joined)
{
    SCOPED(fab_inventory) inv = {0};
    struct fab_ethernet_plane plane = {"net", "10.0.0.0/8"};
    struct timespec before, after;
    hand_finish(&inv);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    assert_int_equal(fab_join(NULL,
                              &(struct fab_join_input){&inv, &report, NULL, 1, &plane, 1, NULL, NULL, NULL},
                              joined, NULL),
                     0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    return (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

/* As large as a report can be, each made for another part to be slow at. */
TEST(test_large_reports_cost_little)
{
    for (unsigned kind = 0; kind < 5; kind++) {
        SCOPED(fab_report) r;
        SCOPED(fab_joined) joined;
        SCOPED(fab_inventory) nothing = {0};
        hand_finish(&nothing);
        world_begin(&r, "h");
        for (unsigned i = 0; i < MANY; i++) {
            bool base = i < MANY / 2;
            uint32_t item = world_item(&r, base ? FAB_FROM_VERBS : FAB_FROM_HWLOC);
            if (kind == 0) { /* ports of one name, and items for all of them */
                fab_report_fact(&r, item, FAB_FACT_NAME, "x");
                if (base)
                    fab_report_printf(&r, item, FAB_FACT_PORT_GUID, "0x%016x", i + 1);
                fab_report_printf(&r, item, FAB_FACT_PROVIDER, "p%u", i);
            } else if (kind == 1) { /* one port of which everybody says something else */
                fab_report_fact(&r, item, FAB_FACT_NAME, "x");
                fab_report_fact(&r, item, FAB_FACT_PORT, "1");
                fab_report_printf(&r, item, FAB_FACT_FIRMWARE, "%u", i);
            } else if (kind == 2) { /* names that fall back on what others want */
                fab_report_printf(&r, item, FAB_FACT_NODE_GUID, "0x%016x", i + 1);
                fab_report_printf(&r, item, FAB_FACT_PORT_GUID, "0x%016x", i + 1);
                fab_report_printf(&r, item, FAB_FACT_NAME, "0x%016x", i == 1 ? 3 : i);
            } else if (kind == 3) { /* interfaces of one MAC on one port of one switch */
                fab_report_printf(&r, item, FAB_FACT_INTERFACE, "e%u", i);
                fab_report_fact(&r, item, FAB_FACT_MAC, "02:00:00:00:00:01");
                fab_report_fact(&r, item, FAB_FACT_ADDRESS, "10.0.0.1/8");
                fab_report_fact(&r, item, FAB_FACT_SWITCH_ID, "02:00:00:00:00:01");
                fab_report_fact(&r, item, FAB_FACT_SWITCH_PORT, "7");
            } else { /* ports of one node, far more than it can have, at one address */
                fab_report_fact(&r, item, FAB_FACT_NODE_GUID, "0x0000000000000009");
                fab_report_printf(&r, item, FAB_FACT_PORT_GUID, "0x%016x", i + 1);
                fab_report_fact(&r, item, FAB_FACT_PCI, "0000:01:00:00");
            }
        }
        world_finish(&r);
        double seconds = join_seconds(&r, &joined);
        if (seconds > 1)
            fail_msg("report %u: %.3f s", kind, seconds);
        if (kind == 1)
            assert_int_equal(joined.inv.n_nodes, 1);
        if (kind == 3)
            assert_true(joined.inv.n_nodes > MANY);
        if (kind == 4)
            assert_int_equal(joined.inv.n_ports, 254);
        check_names(&nothing, &joined);
    }
}
