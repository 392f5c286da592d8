/* What may replace the published inventory, and what is kept where an answer was lost. */

#include "fabricd/engine/publisher.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

OWNER(fab_names_free, struct fab_names)

#define LEAF1 0x200000 /* node GUID */

static struct publisher publisher;

FIXTURE(setup)
{
    memset(&publisher, 0, sizeof(publisher));
    publisher.generation = 7;
    fab_inventory_init(&publisher.current);
    return fabric_fattree2(&publisher.current, 3, 2, 4, 1);
}

FIXTURE(teardown)
{
    fab_inventory_destroy(&publisher.current);
    return 0;
}

/* Would this be published in place of the current one? */
static int judge(const struct fab_inventory *inv, struct sweep_findings *report, struct fab_err *err)
{
    return sweep_judge(&publisher, inv, false, report, err);
}

static void again(struct fab_inventory *inv)
{
    fab_inventory_init(inv);
    assert_int_equal(fab_inventory_copy(inv, &publisher.current), PMIXFAB_OK);
}

/* A switch of the current inventory, alone, with its ports in a state; as a sweep that ended early leaves it.
 */
static void lone_switch(struct fab_inventory *inv, enum fab_port_state state)
{
    struct fab_node node = publisher.current.nodes[fab_inventory_find(&publisher.current, LEAF1)];
    uint32_t index;
    fab_inventory_init(inv);
    node.desc = node.host = node.name = 0;
    assert_int_equal(fab_inventory_add_node(inv, &node, &index), PMIXFAB_OK);
    for (uint8_t num = 1; state != FAB_PORT_DOWN && num <= node.num_ports; num++) {
        const struct fab_port port = {.node = index, .peer = FAB_NONE, .num = num, .state = (uint8_t)state};
        assert_int_equal(fab_inventory_add_port(inv, &port, NULL), PMIXFAB_OK);
    }
    must_do(fab_inventory_finish(inv, fresh_err()));
}

TEST_WITH(a_part_does_not_pass, setup, teardown)
{
    static const enum fab_port_state states[] = {FAB_PORT_ACTIVE, FAB_PORT_UNKNOWN, FAB_PORT_DOWN};
    for (size_t i = 0; i < 3; i++) { /* up and leading nowhere; not answered; nothing cabled at all */
        struct fab_inventory inv;
        struct sweep_findings report;
        struct fab_err err = {""};
        lone_switch(&inv, states[i]);
        assert_int_equal(judge(&inv, &report, &err), PMIXFAB_ERR_PARTIAL);
        assert_non_null(strcasestr(err.text, "still serving generation 7"));
        publisher.generation = 0; /* where nothing was published, nothing shrinks */
        assert_int_equal(judge(&inv, &report, &err), PMIXFAB_OK);
        publisher.generation = 7;
        fab_inventory_destroy(&inv);
    }
}

/* What dangled when it was published is no sign that this sweep is a part. */
TEST_WITH(an_old_loose_end_is_no_sign, setup, teardown)
{
    SCOPED(fab_inventory) inv;
    struct sweep_findings report;
    uint32_t leaf = fab_inventory_find(&publisher.current, LEAF1);
    const struct fab_node *node = &publisher.current.nodes[leaf];
    lone_switch(&inv, FAB_PORT_ACTIVE);
    for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
        uint32_t peer = publisher.current.ports[p].peer;
        if (peer != FAB_NONE)
            publisher.current.ports[peer].peer = FAB_NONE;
        publisher.current.ports[p].peer = FAB_NONE;
    }
    judge(&inv, &report, fresh_err());
    assert_int_equal(report.dangling, 0);
}

/* A host that is missing is not lost with each sweep, so that its port, which is up before it answers, makes
 * no sweep a part. */
TEST_WITH(what_is_missing_is_not_lost_again, setup, teardown)
{
    for (int missing = 0; missing <= 1; missing++) {
        struct sweep_findings report;
        struct fab_err err = {""};
        struct fab_inventory inv;
        uint32_t hca = fabric_find(&publisher.current, "node0001");
        uint32_t port = publisher.current.nodes[hca].first_port, peer = publisher.current.ports[port].peer;
        struct fab_port loose = publisher.current.ports[peer];
        again(&inv);
        assert_int_equal(fabric_lose(&inv, "node0001"), PMIXFAB_OK);
        inv.finished = false;
        loose.node = fabric_find(&inv, "leaf1");
        loose.state = FAB_PORT_INIT;
        assert_int_equal(fab_inventory_add_port(&inv, &loose, NULL), PMIXFAB_OK);
        assert_int_equal(fab_inventory_finish(&inv, &err), PMIXFAB_OK);
        publisher.current.nodes[hca].missing = (uint8_t)missing;
        publisher.current.ports[port].state = publisher.current.ports[peer].state =
            missing ? FAB_PORT_DOWN : FAB_PORT_ACTIVE;
        assert_int_equal(judge(&inv, &report, &err), missing ? PMIXFAB_OK : PMIXFAB_ERR_PARTIAL);
        assert_int_equal(report.dangling, 1);
        fab_inventory_destroy(&inv);
    }
}

TEST_WITH(a_lost_description_renames_nobody, setup, teardown)
{
    SCOPED(fab_inventory) inv;
    OWNED(fab_names_free) struct fab_names *names;
    again(&inv);
    for (uint32_t i = 0; i < inv.n_nodes; i++)
        inv.nodes[i].desc = inv.nodes[i].host = inv.nodes[i].name = 0;
    assert_int_equal(sweep_fill_gaps(&publisher, &inv), PMIXFAB_OK);
    assert_int_equal(fab_names_new(NULL, &names, fresh_err()), PMIXFAB_OK);
    assert_int_equal(fab_names_apply(names, &inv, fresh_err()), PMIXFAB_OK);
    assert_true(fab_inventory_equal(&inv, &publisher.current));
}
