/* Random losses on every kind of fabric are held against what is said of keeping, written here once more from
 * the cables alone, and against the costs of the fabric as it is seen. */
#include "test/unit/retain_world.h"
#include "topo/plane/geometry.h"

static uint32_t there(const struct fab_inventory *swept, const struct fab_node *node)
{
    return fab_inventory_find(swept, node->guid);
}

/* Has the node of swept a cable? */
static bool cabled(const struct fab_inventory *swept, uint32_t node)
{
    for (uint32_t p = 0; node != FAB_NONE && p < swept->n_ports; p++)
        if (swept->ports[p].node == node && swept->ports[p].peer != FAB_NONE)
            return true;
    return false;
}

/* Is the port of `before` there, and free? */
static bool is_free(const struct fab_inventory *before, const struct fab_inventory *swept, uint32_t port)
{
    uint32_t node = there(swept, &before->nodes[before->ports[port].node]);
    uint32_t same = node == FAB_NONE ? FAB_NONE : fab_inventory_port(swept, node, before->ports[port].num);
    return node != FAB_NONE && (same == FAB_NONE || swept->ports[same].peer == FAB_NONE);
}

/* Does a switch that is not there lead to one that is, through others that are not? */
static bool leads_back(const struct fab_inventory *before, const struct fab_inventory *swept, uint32_t sw,
                       uint8_t *been)
{
    been[sw] = 1;
    for (uint32_t p = 0; p < before->n_ports; p++) {
        uint32_t peer = before->ports[p].peer;
        if (before->ports[p].node != sw || peer == FAB_NONE)
            continue;
        uint32_t to = before->ports[peer].node;
        if (before->nodes[to].kind != FAB_SWITCH || been[to])
            continue;
        if (there(swept, &before->nodes[to]) != FAB_NONE ? is_free(before, swept, peer)
                                                         : leads_back(before, swept, to, been))
            return true;
    }
    return false;
}

/* Should this port of an HCA, with its cable to a switch, stay without being seen? */
static bool should_stay(const struct fab_inventory *before, const struct fab_inventory *swept, uint32_t p)
{
    const struct fab_port *port = &before->ports[p];
    if (port->peer == FAB_NONE || before->nodes[port->node].kind != FAB_HCA ||
        before->nodes[before->ports[port->peer].node].kind != FAB_SWITCH)
        return false;
    if (there(swept, &before->nodes[port->node]) != FAB_NONE && !is_free(before, swept, p))
        return false;
    uint32_t sw = before->ports[port->peer].node;
    if (there(swept, &before->nodes[sw]) != FAB_NONE)
        return is_free(before, swept, port->peer);
    OWNED(free) uint8_t *been = must_have(before->n_nodes + 1u);
    return leads_back(before, swept, sw, been);
}

/* The switch of swept where this one's port can be: it, or the one that more than half of its cables lead to.
 */
static uint32_t switch_now(const struct fab_inventory *before, const struct fab_inventory *swept, uint32_t sw)
{
    const struct fab_node *node = &before->nodes[sw];
    uint32_t *votes = must_have(((size_t)swept->n_nodes + 1) * sizeof(*votes)), all = 0,
             now = there(swept, node);
    for (uint32_t p = node->first_port; now == FAB_NONE && p < node->first_port + node->n_ports; p++) {
        uint32_t far = before->ports[p].peer;
        uint32_t same = far == FAB_NONE ? FAB_NONE : there(swept, &before->nodes[before->ports[far].node]);
        same = same == FAB_NONE ? FAB_NONE : fab_inventory_port(swept, same, before->ports[far].num);
        if (same == FAB_NONE || swept->ports[same].peer == FAB_NONE)
            continue;
        votes[swept->ports[swept->ports[same].peer].node]++;
        all++;
    }
    for (uint32_t i = 0; now == FAB_NONE && i < swept->n_nodes; i++)
        if (2 * votes[i] > all)
            now = i;
    free(votes);
    return now == FAB_NONE || swept->nodes[now].kind != FAB_SWITCH ? FAB_NONE : now;
}

/* A port whose place is not free: it stays elsewhere, if there is any room at its switch. */
static bool should_stay_elsewhere(const struct fab_inventory *before, const struct fab_inventory *swept,
                                  uint32_t p)
{
    const struct fab_port *port = &before->ports[p];
    if (port->peer == FAB_NONE || before->nodes[port->node].kind != FAB_HCA ||
        before->nodes[before->ports[port->peer].node].kind != FAB_SWITCH || should_stay(before, swept, p))
        return false;
    return switch_now(before, swept, before->ports[port->peer].node) != FAB_NONE &&
           (there(swept, &before->nodes[port->node]) == FAB_NONE || is_free(before, swept, p));
}

/* Are all of the ports used where this port's switch is now? */
static bool is_full(const struct fab_inventory *before, const struct fab_inventory *swept,
                    const struct fab_inventory *inv, uint32_t port)
{
    uint32_t now = switch_now(before, swept, before->ports[before->ports[port].peer].node);
    uint32_t node = fab_inventory_find(inv, swept->nodes[now].guid);
    return inv->nodes[node].n_ports == inv->nodes[node].num_ports;
}

/* Of two ports of out, the HCA's one stays elsewhere. */
static bool is_elsewhere(const struct fab_inventory *before, const struct fab_inventory *swept,
                         const struct fab_inventory *out, uint32_t p)
{
    const struct fab_port *port = &out->ports[p];
    if (out->nodes[port->node].kind != FAB_HCA)
        port = &out->ports[port->peer];
    uint32_t node = fab_inventory_find(before, out->nodes[port->node].guid);
    uint32_t was = node == FAB_NONE ? FAB_NONE : fab_inventory_port(before, node, port->num);
    return was != FAB_NONE && should_stay_elsewhere(before, swept, was);
}

static void compare_with_plain(const char *what, const struct fab_inventory *before,
                               const struct fab_inventory *swept, const struct fab_inventory *out)
{
    for (uint32_t i = 0; i < before->n_nodes; i++) {
        const struct fab_node *node = &before->nodes[i];
        const bool seen = cabled(swept, there(swept, node));
        uint32_t now = fab_inventory_find(out, node->guid), stay = 0;
        if (node->kind != FAB_HCA)
            continue;
        for (uint32_t p = node->first_port; p < node->first_port + node->n_ports; p++) {
            bool stays = should_stay(before, swept, p);
            uint32_t same = now == FAB_NONE ? FAB_NONE : fab_inventory_port(out, now, before->ports[p].num);
            const struct fab_port *port = same == FAB_NONE ? NULL : &out->ports[same];
            bool stayed = port != NULL && port->peer != FAB_NONE && port->state == FAB_PORT_DOWN;
            if (should_stay_elsewhere(before, swept, p)) {
                stays = stayed;
                if (!stayed && !is_full(before, swept, out, p))
                    fail_msg("%s: there was room for port %u of HCA %llx", what, before->ports[p].num,
                             (unsigned long long)node->guid);
            }
            stay += stays;
            if (stayed != stays || (port != NULL && port->missing != (seen && stays)))
                fail_msg("%s: port %u of HCA %llx %s", what, before->ports[p].num,
                         (unsigned long long)node->guid, stays ? "went" : "stayed");
        }
        if (is_missing(out, node->guid) != (!seen && stay > 0))
            fail_msg("%s: HCA %llx %s", what, (unsigned long long)node->guid, stay > 0 ? "went" : "stayed");
    }
    for (uint32_t i = 0; i < swept->n_nodes; i++) {
        uint32_t same = fab_inventory_find(out, swept->nodes[i].guid);
        assert_int_not_equal(same, FAB_NONE);
        assert_true(!out->nodes[same].missing || !cabled(swept, i));
    }
    for (uint32_t p = 0; p < out->n_ports; p++) { /* a cable is one of before's, or is seen */
        const struct fab_port *port = &out->ports[p];
        if (port->peer == FAB_NONE)
            continue;
        const struct fab_port *peer = &out->ports[port->peer];
        bool kept = out->nodes[port->node].missing || out->nodes[peer->node].missing || port->missing ||
                    peer->missing;
        assert_int_equal(kept, fab_port_is_missing(out, port));
        if (kept && is_elsewhere(before, swept, out, p))
            continue;
        const struct fab_inventory *of = kept ? before : swept;
        uint32_t node = fab_inventory_find(of, out->nodes[port->node].guid);
        uint32_t same = fab_inventory_port(of, node, port->num);
        assert_int_not_equal(same, FAB_NONE);
        const struct fab_port *other = &of->ports[of->ports[same].peer];
        assert_true(of->nodes[other->node].guid == out->nodes[peer->node].guid && other->num == peer->num);
        assert_int_equal(port->state, kept ? FAB_PORT_DOWN : of->ports[same].state);
    }
}

/* The cost between two ports by their GUIDs. */
static uint16_t cost_by_guid(const struct fab_planes *planes, const struct fab_costs *costs, uint64_t a,
                             uint64_t b)
{
    for (uint32_t k = 0; k < planes->n; k++) {
        const struct fab_plane *plane = &planes->planes[k];
        uint32_t i = FAB_NONE, j = FAB_NONE;
        for (uint32_t d = 0; d < plane->n_devices; d++) {
            uint64_t guid = plane->inv->ports[plane->devices[d].port].guid;
            i = guid == a ? d : i;
            j = guid == b ? d : j;
        }
        if (i != FAB_NONE && j != FAB_NONE)
            return fab_cost_of(&costs[k].view, i, j);
    }
    return FAB_COST_NO_PATH;
}

static struct fab_costs *all_costs(const struct fab_planes *planes)
{
    struct fab_costs *costs = must_have((planes->n + 1) * sizeof(*costs));
    for (uint32_t k = 0; k < planes->n; k++)
        costs[k] = costs_of(&planes->planes[k], 1);
    return costs;
}

static void free_costs(struct fab_planes *planes, struct fab_costs *costs)
{
    for (uint32_t k = 0; k < planes->n; k++)
        fab_costs_destroy(&costs[k]);
    free(costs);
    fab_planes_destroy(planes);
}

/* Between devices that are seen, costs are those of what is seen. */
static void compare_costs(const struct fab_inventory *swept, const struct fab_inventory *out, uint64_t *dice)
{
    struct fab_planes p = planes_of(swept), q = planes_of(out);
    struct fab_costs *c = all_costs(&p), *d = all_costs(&q);
    for (unsigned i = 0; i < 60 && swept->n_ports > 0; i++) {
        uint32_t a = (uint32_t)(fabric_random_next(dice) % swept->n_ports);
        uint32_t b = (uint32_t)(fabric_random_next(dice) % swept->n_ports);
        if (swept->nodes[swept->ports[a].node].kind != FAB_HCA || swept->ports[a].peer == FAB_NONE ||
            swept->nodes[swept->ports[b].node].kind != FAB_HCA || swept->ports[b].peer == FAB_NONE)
            continue;
        assert_int_equal(cost_by_guid(&p, c, swept->ports[a].guid, swept->ports[b].guid),
                         cost_by_guid(&q, d, swept->ports[a].guid, swept->ports[b].guid));
    }
    free_costs(&p, c);
    free_costs(&q, d);
}

/* Lose hosts and switches, pull cables, put a pulled cable elsewhere. */
static void lose_some(struct fab_inventory *swept, unsigned n, uint64_t *dice)
{
    for (; n > 0 && swept->n_nodes > 2 && swept->n_ports > 2; n--) {
        uint32_t node = (uint32_t)(fabric_random_next(dice) % swept->n_nodes);
        uint32_t port = (uint32_t)(fabric_random_next(dice) % swept->n_ports);
        switch (fabric_random_next(dice) % 4) {
        case 0:
            fabric_lose(swept, node_name(swept, node));
            break;
        case 1:
            if (swept->nodes[node].kind == FAB_SWITCH)
                fabric_lose(swept, node_name(swept, node));
            break;
        case 2:
            if (swept->ports[port].peer != FAB_NONE)
                fabric_unlink(swept, node_name(swept, swept->ports[port].node), swept->ports[port].num);
            break;
        default:
            if (swept->ports[port].peer == FAB_NONE || swept->nodes[node].kind != FAB_SWITCH)
                break;
            fabric_move(swept, node_name(swept, swept->ports[port].node), swept->ports[port].num,
                        node_name(swept, node),
                        1 + (unsigned)(fabric_random_next(dice) % swept->nodes[node].num_ports));
        }
    }
}

/* What libibnetdisc gives of an HCA is the ports that it came by: those without a cable are not listed. */
static void unlist_empty(struct fab_inventory *inv)
{
    uint32_t n = 0, *now = must_have(((size_t)inv->n_ports + 1) * sizeof(*now));
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        now[p] = n;
        n += inv->ports[p].peer != FAB_NONE;
    }
    for (uint32_t p = 0; p < inv->n_ports; p++) {
        uint32_t peer = inv->ports[p].peer;
        if (peer == FAB_NONE)
            continue;
        inv->ports[now[p]] = inv->ports[p];
        inv->ports[now[p]].peer = now[peer];
    }
    inv->n_ports = n;
    inv->finished = false;
    free(now);
    assert_int_equal(fab_inventory_finish(inv, NULL), PMIXFAB_OK);
}

/* Nodes without a port, after that. */
static void drop_cableless(struct fab_inventory *inv)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < inv->n_nodes; i++) {
        const struct fab_node node = inv->nodes[i];
        for (uint32_t p = node.first_port; p < node.first_port + node.n_ports; p++)
            inv->ports[p].node = n;
        inv->nodes[n] = node;
        n += node.n_ports > 0;
    }
    inv->n_nodes = n;
    inv->finished = false;
    assert_int_equal(fab_inventory_finish(inv, NULL), PMIXFAB_OK);
}

/* Without what is missing there is the sweep; what of it has no cable need not be the same. */
static void compare_seen(const char *what, const struct fab_inventory *out, const struct fab_inventory *swept)
{
    SCOPED(fab_inventory) seen, plain;
    assert_int_equal(fab_inventory_seen(out, &seen, NULL), PMIXFAB_OK);
    assert_false(fab_inventory_has_missing(&seen));
    copy(swept, &plain);
    unlist_empty(&seen);
    unlist_empty(&plain);
    drop_cableless(&plain);
    drop_cableless(&seen);
    if (!fab_inventory_equal(&seen, &plain))
        fail_msg("%s: what is seen is not what was swept", what);
}

TEST(random_losses)
{
    static const char *const kinds[] = {"fattree2:5,3,4",  "fattree2:4,2,3,2",  "fattree3:4",
                                        "dragonfly:2,4,2", "torus:3,4,2:1",     "mesh:4,3:1",
                                        "mesh:1,12:1",     "random:12,40,10:3", "dual fattree2:5,3,4",
                                        "dual fattree3:4", "dual torus:3,3,3:2"};
    const size_t n_kinds = sizeof(kinds) / sizeof(kinds[0]);
    for (uint64_t seed = 1; seed <= 550; seed++) {
        struct fab_inventory before, out;
        SCOPED(fab_inventory) swept, back;
        uint64_t dice = seed * 77;
        const char *what = printed("%s, %u", kinds[seed % n_kinds], (unsigned)seed);
        make_any(kinds[seed % n_kinds], &before);
        copy(&before, &swept);
        for (unsigned round = 0; round < 3;
             round++) { /* what is kept is kept again, more goes, some returns */
            lose_some(&swept, 1 + (unsigned)(seed % 9), &dice);
            if (seed % 3 == 0)
                unlist_empty(&swept);
            out = keep(&before, &swept);
            compare_with_plain(what, &before, &swept, &out);
            if (seed % 4 == 0)
                compare_costs(&swept, &out, &dice);
            SCOPED(fab_inventory) again;
            again = keep(&out, &swept);
            if (!fab_inventory_equal(&again, &out))
                fail_msg("%s: kept twice is something else", what);
            compare_seen(what, &out, &swept);
            fab_inventory_destroy(&before);
            before = out;
        }
        make_any(kinds[seed % n_kinds], &back);
        out = keep(&before, &back); /* all is as it was */
        assert_true(fab_inventory_equal(&out, &back));
        fab_inventory_destroy(&before);
        fab_inventory_destroy(&out);
    }
}
