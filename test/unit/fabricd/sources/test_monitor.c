/* The decisions of the light sweep: when changes lead to a sweep, what is asked, what is new. */

#include "fabricd/base/rate.h"
#include "fabricd/sources/manager.h"
#include "fabricd/sources/monitor.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"

/* ---- when ---------------------------------------------------------------------------------------- */

/* Against the rule said in another way, on random changes. */
TEST(gathering_keeps_its_promises)
{
    uint64_t random = 7;
    for (unsigned round = 0; round < 300; round++) {
        struct debounce debounce;
        const int64_t settle = (int64_t)(fabric_random_next(&random) >> 32) % 3000;
        const int64_t longest = settle + (int64_t)(fabric_random_next(&random) >> 32) % 20000;
        int64_t oldest = -1, newest = -1, before = -1;
        debounce_init(&debounce, settle, longest);
        for (int64_t now = 50000; now < 90000;
             now += 1 + (int64_t)(fabric_random_next(&random) >> 32) % 700) {
            const int64_t when = debounce_when(&debounce);
            assert_int_equal(when >= 0, oldest >= 0);
            assert_int_equal(debounce_since(&debounce), oldest);
            if (when >= 0 && when <= now) { /* whatever is due was due for one of three reasons */
                const bool first = before < 0 || oldest - before > settle;
                assert_true(first || when == newest + settle || when == oldest + longest);
                assert_true(when <= oldest + longest && when <= newest + settle);
                assert_true(!first || when == oldest || when <= newest);
                debounce_covered(&debounce);
                assert_int_equal(debounce_covered_since(&debounce), oldest);
                assert_int_equal(debounce_since(&debounce), -1);
                before = newest;
                oldest = newest = -1;
            } else if (fabric_random_next(&random) >> 63) {
                if (oldest < 0)
                    oldest = now;
                newest = now;
                debounce_changed(&debounce, now);
            }
        }
    }
}

/* ---- what the child says --------------------------------------------------------------------------- */

TEST(lines_of_a_look)
{
    struct monitor_lines lines = {0};
    assert_false(monitor_line(&lines, "node 0x0000000000200001"));
    assert_false(monitor_line(&lines, "node 0x0000000000200002"));
    assert_false(monitor_line(&lines, "node 0x0000000000200001"));
    assert_true(monitor_line(&lines, "poll 1500 77"));
    assert_int_equal(lines.dirty.n, 2);
    assert_int_equal(lines.dirty.guids[1], 0x200002);
    assert_int_equal(lines.dirty.probes, 0);
    assert_int_equal(lines.status.light_sweeps, 1);
    assert_int_equal(lines.status.dirty, 1);
    assert_int_equal(lines.status.requests, 77);
    assert_true(lines.status.poll_ms > 1.49 && lines.status.poll_ms < 1.51);
    dirty_switches_free(&lines.dirty);
    assert_false(monitor_line(&lines, "all 31"));
    assert_false(monitor_line(&lines, "all 2"));
    assert_true(monitor_line(&lines, "poll 1500 77"));
    assert_int_equal(lines.dirty.probes, 1u << 31 | 1u << 2);
    assert_int_equal(lines.status.dirty, 2);
    monitor_forget(&lines.dirty);
    assert_true(monitor_line(&lines, "poll 1500 77"));
    assert_int_equal(lines.status.dirty, 2);
    lines.status.light_sweeps = 1;
    static const char *const none[] = {
        "",       "look",    "look 1",         "look 1 2 3",   "look x 2",
        "node",   "node 12", "node 0x",        "allright",     "all",
        "all 32", "all 1 2", "all 4294967296", "node 0x1 0x2", "look 1 2 look 3 4"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(monitor_line(&lines, none[i]));
    assert_int_equal(lines.dirty.n, 0);
    assert_int_equal(lines.dirty.probes, 0);
    assert_int_equal(lines.status.light_sweeps, 1);
}

/* ---- what is asked ---------------------------------------------------------------------------------- */

#ifdef HAVE_IBNETDISC
#include "probes/ibnetdisc/ibnetdisc.h"

struct world {
    struct fab_inventory inv;
    struct view view;
};

/* A view from the first HCA of a fabric. */
static void begin(struct world *world, const char *fabric)
{
    uint64_t guid = 0;
    assert_int_equal(fabric_parse(fabric, &world->inv), PMIXFAB_OK);
    for (uint32_t i = 0; i < world->inv.n_ports && guid == 0; i++)
        guid = world->inv.ports[i].guid;
    assert_int_equal(view_new(&world->inv, guid, &world->view, fresh_err()), PMIXFAB_OK);
}

static void world_destroy(struct world *world)
{
    view_free(&world->view);
    fab_inventory_destroy(&world->inv);
}

/* Where a path leads, cable by cable; FAB_NONE: nowhere. */
static uint32_t walk(const struct world *world, const struct smp_path *path)
{
    const struct fab_inventory *inv = &world->inv;
    uint32_t node = inv->ports[world->view.own].node;
    for (unsigned i = 0; i < path->n; i++) {
        const uint32_t port = fab_inventory_port(inv, node, path->p[i]);
        if (port == FAB_NONE || inv->ports[port].peer == FAB_NONE)
            return FAB_NONE;
        node = inv->ports[inv->ports[port].peer].node;
    }
    return node;
}

/* PortInfo as a port of the inventory would answer. port FAB_NONE: one without a link. */
static void answer(const struct world *world, uint32_t port, uint8_t info[ATTRIBUTE_SIZE])
{
    static const uint8_t widths[13] = {[1] = 1, [2] = 16, [4] = 2, [8] = 4, [12] = 8};
    memset(info, 0, ATTRIBUTE_SIZE);
    info[32] = FAB_PORT_DOWN;
    info[33] = 2 << 4;
    if (port == FAB_NONE)
        return;
    const struct fab_port *p = &world->inv.ports[port];
    info[16] = (uint8_t)(p->lid >> 8);
    info[17] = (uint8_t)p->lid;
    info[31] = widths[p->width];
    info[32] = p->state;
    info[33] = 5 << 4;
}

TEST(every_switch_is_reached_by_its_path)
{
    static const char *const fabrics[] = {"fattree2:8,4,6", "fattree3:6", "dragonfly:2,4,2", "torus:4,4,2:1",
                                          "random:40,60,30:3"};
    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        SCOPED(world) world;
        begin(&world, fabrics[f]);
        for (uint32_t i = 0; i < world.view.n_switches; i++) {
            struct smp_path path;
            assert_true(view_path(&world.view, world.view.switches[i].node, &path));
            assert_int_equal(walk(&world, &path), world.view.switches[i].node);
        }
    }
}

TEST(a_port_that_nobody_has_cannot_look)
{
    SCOPED(world) world;
    struct view view;
    begin(&world, "fattree2:4,2,4");
    assert_int_equal(view_new(&world.inv, 0xdead, &view, fresh_err()), PMIXFAB_ERR_UNSUPPORTED);
    assert_int_equal(view_new(&world.inv, 0, &view, fresh_err()), PMIXFAB_ERR_UNSUPPORTED);
}

/* Nothing changes: nothing is new, every port has its turn, and no light sweep costs more than it may. */
static void turns(const char *fabric)
{
    SCOPED(world) world;
    begin(&world, fabric);
    struct view *view = &world.view;
    OWNED(free)
    uint32_t *list = must_have(view->n_switches * sizeof(*list)),
             *read = must_have(view->n_switches * sizeof(*read));
    uint32_t all = 0;
    for (uint32_t i = 0; i < view->n_switches; i++)
        all += world.inv.nodes[view->switches[i].node].num_ports;
    const unsigned looks = all / view->budget + 2;
    for (unsigned look = 0; look < looks; look++) {
        for (uint32_t i = 0; i < view->n_switches; i++)
            assert_false(view_answered(view, i, false));
        const uint32_t n = view_pick(view, true, list);
        uint32_t cost = 0;
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t node = view->switches[list[k]].node;
            read[list[k]]++;
            for (unsigned num = 1; num <= world.inv.nodes[node].num_ports; num++, cost++) {
                uint8_t info[ATTRIBUTE_SIZE];
                answer(&world, fab_inventory_port(&world.inv, node, num), info);
                assert_false(view_port(view, list[k], num, info));
            }
        }
        assert_true(n > 0 && cost < view->budget + 256);
    }
    for (uint32_t i = 0; i < view->n_switches; i++)
        assert_true(read[i] > 0);
    assert_true(view->n_switches + view->budget <= view_sweep_cost(&world.inv) / 10 || view->budget <= 512);
}

TEST(all_ports_have_their_turn_within_the_budget)
{
    turns("fattree2:4,2,4");
    turns("fattree2:64,32,32");
    turns("fattree3:24");
    turns("dragonfly:4,8,4");
}

/* A switch whose bit comes is read at this light sweep, wherever the turn is. */
TEST(a_bit_goes_before_the_turn)
{
    SCOPED(world) world;
    begin(&world, "fattree3:24");
    struct view *view = &world.view;
    OWNED(free) uint32_t *list = calloc(view->n_switches, sizeof(*list));
    for (uint32_t i = 0; i < view->n_switches; i++)
        view_answered(view, i, false);
    for (uint32_t i = 0; i < view->n_switches; i += 37) {
        assert_true(view_answered(view, i, true));
        assert_int_equal(view_pick(view, true, list) > 1, true);
        assert_int_equal(list[0], i);
        assert_false(view_answered(view, i, true)); /* it stands: told once */
        assert_int_equal(view_pick(view, false, list), 0);
        assert_false(view_answered(view, i, false));
        assert_true(view_answered(view, i, true)); /* cleared and set again */
        view_pick(view, false, list);
        view_answered(view, i, false);
    }
}

TEST(a_change_is_new_once)
{
    SCOPED(world) world;
    uint8_t info[ATTRIBUTE_SIZE];
    begin(&world, "fattree2:4,2,4");
    struct view *view = &world.view;
    for (uint32_t i = 0; i < world.inv.n_ports; i++) {
        struct fab_port *port = &world.inv.ports[i];
        const uint32_t at = view->at[port->node];
        if (at == FAB_NONE)
            continue;
        answer(&world, FAB_NONE, info); /* pulled */
        assert_true(view_port(view, at, port->num, info));
        assert_false(view_port(view, at, port->num, info));
        answer(&world, i, info); /* back, and not up yet */
        info[32] = FAB_PORT_INIT;
        assert_true(view_port(view, at, port->num, info));
        info[32] = FAB_PORT_ACTIVE;
        assert_true(view_port(view, at, port->num, info));
        info[31] = 1; /* fewer lanes */
        assert_true(view_port(view, at, port->num, info));
        answer(&world, i, info);
        assert_true(view_port(view, at, port->num, info));
        assert_false(view_port(view, at, port->num, info));
    }
    assert_true(view_link_down(view, 1));
    assert_false(view_link_down(view, 1));
    assert_true(view_answered(view, 1, false));
    assert_false(view_answered(view, 1, false));
}

/* The way goes round a cable that is gone; what is cut off has none. */
TEST(routes_avoid_what_is_down)
{
    SCOPED(world) world;
    uint8_t down[ATTRIBUTE_SIZE];
    begin(&world, "fattree2:4,2,4");
    struct view *view = &world.view;
    answer(&world, FAB_NONE, down);
    for (uint32_t i = 0; i < view->n_switches; i++) {
        const uint32_t node = view->switches[i].node;
        struct smp_path path;
        unsigned ways = 0;
        while (view_path(view, node, &path)) {
            /* take the last cable of the path away */
            const uint32_t up = view->up[node];
            const uint32_t from = world.inv.ports[up].node;
            if (view->at[from] == FAB_NONE)
                break; /* this host's own */
            assert_true(view_port(view, view->at[from], world.inv.ports[up].num, down));
            assert_true(view->moved);
            view_route(view);
            ways++;
            assert_true(ways <= 8);
        }
        assert_true(ways >= 1 || view->up[node] == view->own || view->up[node] == FAB_NONE);
    }
}

/* Ports that wait for a subnet manager are asked until they are up. */
TEST(edges_are_asked_until_they_are_up)
{
    SCOPED(world) world;
    SCOPED_BY(view_free) struct view view;
    uint8_t info[ATTRIBUTE_SIZE];
    uint32_t list[64];
    begin(&world, "fattree2:4,2,4");
    const uint64_t own = world.inv.ports[world.view.own].guid;
    const uint32_t usual = world.view.n_edges;
    uint32_t last = world.inv.n_ports - 1;
    while (last > 0 && world.inv.ports[last].guid == 0)
        last--;
    struct fab_port *port = &world.inv.ports[last];
    assert_true(port->guid != 0);
    port->state = FAB_PORT_INIT;
    port->lid = 0;
    assert_int_equal(view_new(&world.inv, own, &view, fresh_err()), PMIXFAB_OK);
    assert_int_equal(view.n_edges, usual == 0 ? 1 : usual);
    assert_true(view_pick_edges(&view, list) >= 1);
    for (uint32_t i = 0; i < view.n_edges; i++) {
        answer(&world, view.edges[i].port, info);
        assert_false(view_edge(&view, i, info));
        info[17] ^= 9; /* a LID */
        assert_true(view_edge(&view, i, info));
        info[32] = FAB_PORT_ARMED;
        assert_true(view_edge(&view, i, info));
        assert_false(view_edge(&view, i, info));
    }
}

/* What it sends for a sweep of its own, seen in `looks` looks; the answer of the last one and of one at rest.
 */
static bool manager_sweeps(struct view *view, uint32_t *count, unsigned looks, unsigned noticed_at)
{
    for (unsigned look = 0; look < looks; look++) {
        *count += 600 / looks;
        assert_false(view_manager(view, *count, look == noticed_at));
    }
    return view_manager(view, ++*count, false);
}

TEST(a_subnet_manager_that_sweeps_for_nothing_that_was_noticed)
{
    SCOPED(world) world;
    uint32_t count = 4000000000u;
    begin(&world, "fattree2:4,2,4");
    struct view *view = &world.view;
    assert_false(view_manager(view, count, false));
    assert_false(manager_sweeps(view, &count, 3, 99)); /* for what was there before the view */
    for (unsigned looks = 1; looks < 6; looks++) {
        assert_true(manager_sweeps(view, &count, looks, 99));
        assert_false(manager_sweeps(view, &count, looks, looks / 2));
        for (unsigned k = 0; k < 30; k++) /* its usual rounds */
            assert_false(view_manager(view, count += k % 10 == 0 ? 28 : 1, false));
        assert_false(view_manager(view, ++count, true));
        assert_false(manager_sweeps(view, &count, looks, 99)); /* for what the light sweep before noticed */
    }
    assert_true(view_manager(view, 17, false)); /* another one */
    assert_false(view_manager(view, 18, false));
}

TEST(the_way_to_the_subnet_manager)
{
    SCOPED(world) world;
    begin(&world, "fattree2:8,4,6");
    for (uint32_t i = 0; i < world.inv.n_ports; i++) {
        struct fab_port *port = &world.inv.ports[i];
        struct smp_path path;
        if (port->guid == 0 || port->peer == FAB_NONE)
            continue;
        const uint16_t lid = port->lid;
        port->lid = 0xbeef;
        assert_true(view_manager_path(&world.view, 0xbeef, &path));
        assert_int_equal(walk(&world, &path), port->node);
        port->lid = lid;
        assert_false(view_manager_path(&world.view, 0xbeef, &path));
    }
}
#endif

/* ---- the subnet manager --------------------------------------------------------------------------- */

TEST(a_line_about_a_subnet_manager)
{
    static const char *const none[] = {"manager 0 1 0 0x10 1 2",   "manager 32 1 0 0x10 1",
                                       "manager 0 65536 0 0x10 1", "manager 0 1 256 0x10 1",
                                       "manager 0 1 0 0x10",       "poll 1 2"};
    struct probe_manager saw;
    unsigned probe;
    assert_true(monitor_manager_line("manager 3 17 5 0x0000000000100001 1", &probe, &saw));
    assert_int_equal(probe, 3);
    assert_int_equal(saw.lid, 17);
    assert_int_equal(saw.priority, 5);
    assert_int_equal(saw.guid, 0x100001);
    assert_true(saw.asked && saw.master);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(monitor_manager_line(none[i], &probe, &saw));
}

static const struct probe_manager first = {.guid = 1, .lid = 1, .asked = true, .master = true};
static const struct probe_manager second = {.guid = 2, .lid = 2, .asked = true, .master = true};
static const struct probe_manager nobody = {.lid = 1, .asked = true};

TEST(a_manager_that_misses_one_question_is_not_gone)
{
    struct manager manager = {.missed = 0};
    assert_int_equal(manager_seen(&manager, &first, 10), MANAGER_FIRST);
    for (unsigned turn = 0; turn < 5; turn++) {
        for (unsigned i = 1; i < MANAGER_MISSES; i++)
            assert_int_equal(manager_seen(&manager, &nobody, 20), MANAGER_AS_BEFORE);
        assert_int_equal(manager_seen(&manager, &first, 30), MANAGER_AS_BEFORE);
    }
    for (unsigned i = 1; i < MANAGER_MISSES; i++)
        manager_seen(&manager, &nobody, 40 + i);
    assert_false(manager_is_gone(&manager));
    assert_int_equal(manager_seen(&manager, &nobody, 50), MANAGER_GONE);
    assert_true(manager_is_gone(&manager));
    assert_int_equal(manager.missed_since, 41);
    assert_int_equal(manager_seen(&manager, &nobody, 60), MANAGER_AS_BEFORE);
    assert_int_equal(manager_seen(&manager, &first, 70), MANAGER_BACK);
    assert_false(manager_is_gone(&manager) || manager_is_another(&manager));
    assert_int_equal(manager.since, 10);
}

/* One that answers and does not manage is none. */
TEST(a_standby_is_no_manager)
{
    struct manager manager = {.missed = 0};
    struct probe_manager standby = first;
    standby.master = false;
    for (unsigned i = 1; i < MANAGER_MISSES; i++)
        assert_int_equal(manager_seen(&manager, &standby, 1), MANAGER_AS_BEFORE);
    assert_int_equal(manager_seen(&manager, &standby, 1), MANAGER_GONE);
    assert_int_equal(manager.now.guid, 0);
    assert_int_equal(manager.now.lid, 1);
}

TEST(another_manager_is_another_until_the_first_is_back_or_a_day_is_over)
{
    struct manager manager = {.missed = 0};
    manager_seen(&manager, &first, 1);
    assert_int_equal(manager_seen(&manager, &second, 2), MANAGER_ANOTHER);
    assert_true(manager_is_another(&manager));
    assert_int_equal(manager.since, 2);
    assert_int_equal(manager_seen(&manager, &first, 3), MANAGER_ANOTHER);
    assert_false(manager_is_another(&manager));
    manager_seen(&manager, &second, 4);
    manager_seen(&manager, &second, 4 + MANAGER_USUAL);
    assert_true(manager_is_another(&manager));
    assert_int_equal(manager_seen(&manager, &second, 5 + MANAGER_USUAL), MANAGER_AS_BEFORE);
    assert_false(manager_is_another(&manager));
    assert_int_equal(manager_seen(&manager, &first, 6 + MANAGER_USUAL), MANAGER_ANOTHER);
    assert_true(manager_is_another(&manager));
}
