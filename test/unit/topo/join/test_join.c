/* Joining what the sweep saw with what hosts report: grouping, choosing, matching, names, places. */
#include "test/unit/handmade.h"
#include "test/unit/report_world.h"
#include "topo/join/state.h"

#define MAX_ITEMS 40

/* The rules of join_group.c once more, each taken by its word, for one report. of[item][device]. */
struct plain {
    const struct fab_report *report;
    uint32_t n_items, n_devs;
    bool of[MAX_ITEMS][MAX_ITEMS], base[MAX_ITEMS][MAX_ITEMS], placed[MAX_ITEMS];
    bool rdma[MAX_ITEMS];
};

static const char *text_of(const struct plain *p, uint32_t item, enum fab_fact kind)
{
    return fab_report_text(p->report, item, kind);
}

static bool same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Does the device have this fact from an item placed before `stage` began? shared ones do not count if own.
 */
static bool plain_has(const struct plain *p, const struct plain *before, uint32_t dev, enum fab_fact kind,
                      const char *text, bool own)
{
    for (uint32_t i = 0; i < p->n_items; i++) {
        unsigned n = 0;
        for (uint32_t d = 0; d < p->n_devs; d++)
            n += before->of[i][d];
        if (before->of[i][dev] && (!own || n == 1) &&
            (text == NULL ? text_of(p, i, kind) != NULL : same(text_of(p, i, kind), text)))
            return true;
    }
    return false;
}

static void plain_base(struct plain *p)
{
    uint32_t guid_dev[MAX_ITEMS];
    for (uint32_t i = 0; i < p->n_items; i++) {
        guid_dev[i] = FAB_NONE;
        for (uint32_t k = 0; k < i && guid_dev[i] == FAB_NONE; k++)
            if (same(text_of(p, i, FAB_FACT_PORT_GUID), text_of(p, k, FAB_FACT_PORT_GUID)))
                guid_dev[i] = guid_dev[k];
        if (guid_dev[i] == FAB_NONE && text_of(p, i, FAB_FACT_PORT_GUID) != NULL)
            guid_dev[i] = p->n_devs++;
        if (guid_dev[i] != FAB_NONE)
            p->of[i][guid_dev[i]] = p->base[i][guid_dev[i]] = p->placed[i] = p->rdma[guid_dev[i]] = true;
    }
    for (uint32_t i = 0; i < p->n_items; i++) {
        const char *name = text_of(p, i, FAB_FACT_NAME), *port = text_of(p, i, FAB_FACT_PORT), *best = NULL;
        uint32_t dev = FAB_NONE;
        if (p->placed[i] || name == NULL || port == NULL)
            continue;
        for (uint32_t k = 0; k < p->n_items; k++) {
            const char *guid = text_of(p, k, FAB_FACT_PORT_GUID);
            if (guid != NULL && same(name, text_of(p, k, FAB_FACT_NAME)) &&
                same(port, text_of(p, k, FAB_FACT_PORT)) && (best == NULL || strcmp(guid, best) < 0)) {
                best = guid;
                dev = guid_dev[k];
            }
        }
        for (uint32_t k = 0; k < i && dev == FAB_NONE; k++)
            if (text_of(p, k, FAB_FACT_PORT_GUID) == NULL && same(name, text_of(p, k, FAB_FACT_NAME)) &&
                same(port, text_of(p, k, FAB_FACT_PORT)))
                for (uint32_t d = 0; d < p->n_devs; d++)
                    dev = p->of[k][d] ? d : dev;
        if (dev == FAB_NONE)
            dev = p->n_devs++;
        p->of[i][dev] = p->base[i][dev] = p->placed[i] = p->rdma[dev] = true;
    }
}

/* Attach what is left by one key to devices [from, to). Only items that have the key. */
static void plain_attach(struct plain *p, enum fab_fact kind, uint32_t from, uint32_t to)
{
    struct plain *before = malloc(sizeof(*before));
    *before = *p;
    for (uint32_t i = 0; i < p->n_items; i++) {
        const char *key = text_of(p, i, kind), *port = text_of(p, i, FAB_FACT_PORT);
        const char *interface = text_of(p, i, FAB_FACT_INTERFACE);
        bool fits[MAX_ITEMS] = {false}, some = false;
        uint32_t n = 0, known = 0;
        if (p->placed[i] || key == NULL)
            continue;
        for (uint32_t d = from; d < to; d++) {
            if (kind == FAB_FACT_NAME) { /* names are those of base items */
                for (uint32_t k = 0; k < p->n_items; k++)
                    fits[d] = fits[d] || (p->base[k][d] && same(text_of(p, k, FAB_FACT_NAME), key));
            } else {
                fits[d] = plain_has(p, before, d, kind, key, kind == FAB_FACT_INTERFACE);
            }
            n += fits[d];
        }
        if (n > JOIN_MAX_SHARED)
            continue;
        for (uint32_t d = from; d < to && kind == FAB_FACT_PCI && port != NULL; d++) {
            bool number = false;
            for (uint32_t k = 0; k < p->n_items; k++)
                number = number || (p->base[k][d] && same(text_of(p, k, FAB_FACT_PORT), port));
            fits[d] = fits[d] && number;
        }
        for (uint32_t d = from; d < to && kind == FAB_FACT_PCI && interface != NULL; d++)
            known += plain_has(p, before, d, FAB_FACT_INTERFACE, interface, true);
        for (uint32_t d = from; d < to && known > 0 && known <= JOIN_MAX_SHARED; d++)
            some = some || (fits[d] && plain_has(p, before, d, FAB_FACT_INTERFACE, interface, true));
        for (uint32_t d = from; d < to && kind == FAB_FACT_PCI && interface != NULL; d++)
            fits[d] =
                fits[d] && plain_has(p, before, d, FAB_FACT_INTERFACE, some ? interface : NULL, true) == some;
        for (uint32_t d = from; d < to; d++)
            if (fits[d])
                p->of[i][d] = p->placed[i] = true;
    }
    free(before);
}

static void plain_group(struct plain *p, const struct fab_report *report)
{
    memset(p, 0, sizeof(*p));
    p->report = report;
    p->n_items = report->n_items;
    plain_base(p);
    uint32_t ports = p->n_devs;
    plain_attach(p, FAB_FACT_NAME, 0, ports);
    plain_attach(p, FAB_FACT_PCI, 0, ports);
    plain_attach(p, FAB_FACT_INTERFACE, 0, ports);
    for (uint32_t i = 0; i < p->n_items; i++) {
        const char *interface = text_of(p, i, FAB_FACT_INTERFACE);
        uint32_t dev = FAB_NONE;
        if (p->placed[i] || interface == NULL)
            continue;
        for (uint32_t k = 0; k < i; k++)
            for (uint32_t d = ports; d < p->n_devs; d++)
                if (p->of[k][d] && same(text_of(p, k, FAB_FACT_INTERFACE), interface))
                    dev = d;
        if (dev == FAB_NONE)
            dev = p->n_devs++;
        p->of[i][dev] = p->placed[i] = true;
    }
    plain_attach(p, FAB_FACT_PCI, ports, p->n_devs);
}

static const char *maybe(uint64_t *seed, const char *prefix, unsigned of, unsigned chance, char buf[24])
{
    uint64_t r = fabric_random_next(seed) >> 8;
    if (r % 100 >= chance)
        return NULL;
    snprintf(buf, 24, "%s%x", prefix, (unsigned)(r / 100 % of) + 1);
    return buf;
}

/* A report that says little and that often. */
static void random_report(struct fab_report *report, uint64_t *seed)
{
    char buf[24];
    unsigned n = 1 + (unsigned)(fabric_random_next(seed) >> 20) % (MAX_ITEMS - 2);
    unsigned of = 1 + (unsigned)(fabric_random_next(seed) >> 20) % 14;
    unsigned chance = 20 + (unsigned)(fabric_random_next(seed) >> 20) % 60;
    world_begin(report, "h");
    for (unsigned i = 0; i < n; i++) {
        uint32_t item = world_item(report, (enum fab_source)(1 + (fabric_random_next(seed) >> 9) % 6));
        fab_report_fact(report, item, FAB_FACT_NAME, maybe(seed, "m", 1 + of / 3, chance, buf));
        fab_report_fact(report, item, FAB_FACT_PORT, maybe(seed, "", of < 9 ? of : 9, chance, buf));
        fab_report_fact(report, item, FAB_FACT_INTERFACE, maybe(seed, "ib", 1 + of / 2, chance / 2, buf));
        fab_report_fact(report, item, FAB_FACT_PORT_GUID,
                        maybe(seed, "0x000000000000000", of, chance / 3, buf));
        fab_report_fact(report, item, FAB_FACT_PCI, maybe(seed, "0000:c1:00:0", 1 + of / 3, chance, buf));
        fab_report_fact(report, item, FAB_FACT_FIRMWARE, maybe(seed, "fw", 5, 50, buf));
    }
    world_finish(report);
}

TEST(test_grouping_against_a_plain_one)
{
    struct join_scratch *scratch = NULL;
    struct plain *plain = malloc(sizeof(*plain));
    uint64_t seed = 20;
    unsigned n_shared = 0, n_plain = 0, n_lost = 0;
    for (unsigned round = 0; round < 20000; round++) {
        struct fab_report report;
        struct join_groups groups = {0};
        random_report(&report, &seed);
        plain_group(plain, &report);
        assert_int_equal(join_group_report(&report, 7, &groups, &scratch), 0);
        if (groups.n != plain->n_devs)
            fail_msg("round %u: %u devices, plainly %u", round, groups.n, plain->n_devs);
        for (uint32_t d = 0; d < groups.n; d++) {
            bool of[MAX_ITEMS] = {false};
            const struct join_group *group = &groups.groups[d];
            assert_int_equal(group->report, 7);
            assert_int_equal(group->rdma, plain->rdma[d]);
            n_plain += !group->rdma;
            for (uint32_t l = 0; l < group->n; l++) {
                const struct join_link *link = &groups.links[group->first + l];
                unsigned n = 0;
                assert_false(of[link->item]);
                of[link->item] = true;
                for (uint32_t k = 0; k < plain->n_devs; k++)
                    n += plain->of[link->item][k];
                assert_int_equal(link->shared, n > 1);
                n_shared += n > 1;
            }
            for (uint32_t i = 0; i < report.n_items; i++)
                if (of[i] != plain->of[i][d])
                    fail_msg("round %u: item %u, device %u: %d, plainly %d", round, i, d, of[i],
                             plain->of[i][d]);
        }
        for (uint32_t i = 0; i < report.n_items; i++)
            n_lost += !plain->placed[i];
        join_groups_free(&groups);
        fab_report_destroy(&report);
    }
    assert_true(n_shared > 1000 && n_plain > 1000 && n_lost > 1000); /* all of it happens */
    join_scratch_free(scratch);
    free(plain);
}

TEST(test_orders_are_whole)
{
    for (int kind = 1; kind < FAB_FACTS; kind++) {
        const enum fab_source *order = fab_join_order((enum fab_fact)kind);
        unsigned seen = 0, n = 0;
        for (; order[n] != FAB_SOURCES; n++)
            seen |= 1u << order[n];
        assert_int_equal(n, FAB_SOURCES);
        assert_int_equal(seen, (1u << FAB_SOURCES) - 1);
    }
    assert_int_equal(fab_join_order((enum fab_fact)0)[0], FAB_SOURCES);
    assert_int_equal(fab_join_order(FAB_FACTS)[0], FAB_SOURCES);
    assert_int_equal(fab_join_order(FAB_FACT_STATE)[0], FAB_FROM_SUBNET);
    assert_int_equal(fab_join_order(FAB_FACT_STATE)[1], FAB_FROM_VERBS);
    assert_int_equal(fab_join_order(FAB_FACT_LID)[0], FAB_FROM_SUBNET);
    assert_int_equal(fab_join_order(FAB_FACT_MTU)[0], FAB_FROM_VERBS);
    assert_int_equal(fab_join_order(FAB_FACT_FIRMWARE)[1], FAB_FROM_LIBFABRIC);
    assert_int_equal(fab_join_order(FAB_FACT_PCI)[0], FAB_FROM_HWLOC);
    assert_int_equal(fab_join_order(FAB_FACT_DRIVER)[1], FAB_FROM_ETHERNET);
    assert_int_equal(fab_join_order(FAB_FACT_ADDRESS)[0], FAB_FROM_ETHERNET);
    assert_int_equal(fab_join_order(FAB_FACT_NAME)[0], FAB_FROM_VERBS);
}

static unsigned plain_rank(unsigned kind, unsigned source)
{
    const enum fab_source *order = fab_join_order((enum fab_fact)kind);
    unsigned rank = 0;
    while (order[rank] != source)
        rank++;
    return rank;
}

/* Is fact a to be believed before b? */
static bool plain_before(const struct join_fact *a, const struct join_fact *b)
{
    unsigned x = a->estimate * 100u + plain_rank(a->kind, a->source);
    unsigned y = b->estimate * 100u + plain_rank(b->kind, b->source);
    int order = fab_natural_cmp(a->text, b->text);
    return x != y ? x < y : a->kind == FAB_FACT_BANDWIDTH ? order > 0 : order < 0;
}

TEST(test_choosing_against_a_plain_one)
{
    static const char *const texts[] = {"a", "b", "c", "a1", "a10", "a2", "0x1", "up"};
    static const uint8_t kinds[] = {FAB_FACT_NAME, FAB_FACT_STATE,  FAB_FACT_PCI,       FAB_FACT_GID,
                                    FAB_FACT_MTU,  FAB_FACT_DRIVER, FAB_FACT_BANDWIDTH, FAB_FACT_ADDRESS};
    struct join_heap heap = {0};
    uint64_t seed = 9;
    for (unsigned round = 0; round < 20000; round++) {
        struct join_fact said[300];
        uint32_t n = (uint32_t)(fabric_random_next(&seed) >> 20) % (round % 50 == 0 ? 300 : 24), at = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t r = fabric_random_next(&seed) >> 8;
            said[i] = (struct join_fact){texts[r % 8], (uint8_t)(r / 8 % FAB_SOURCES), kinds[r / 64 % 8],
                                         r / 512 % 3 == 0, r / 1536 % 3 == 0};
            join_heap_add(&heap, &said[i]);
        }
        assert_int_equal(join_choose(&heap), 0);
        for (unsigned kind = 0; kind < FAB_FACTS; kind++) {
            const struct join_fact *best = NULL, *disputed = NULL;
            bool conflict = false, many = fab_fact_many((enum fab_fact)kind);
            uint32_t n_texts = 0, first = at;
            for (uint32_t i = 0; i < n; i++) {
                if (said[i].kind != kind)
                    continue;
                if (best == NULL || plain_before(&said[i], best))
                    best = &said[i];
                if (said[i].estimate || (kind == FAB_FACT_NAME && said[i].source == FAB_FROM_SUBNET))
                    continue;
                conflict = conflict || (disputed != NULL && strcmp(disputed->text, said[i].text) != 0);
                disputed = &said[i];
            }
            for (unsigned t = 0; t < 8; t++) {
                unsigned sources = 0;
                bool estimate = true, disputes = false, software = true;
                for (uint32_t i = 0; i < n; i++) {
                    if (said[i].kind != kind || strcmp(said[i].text, texts[t]) != 0)
                        continue;
                    sources |= 1u << said[i].source;
                    estimate = estimate && said[i].estimate;
                    software = software && said[i].software;
                    disputes = disputes || (!said[i].estimate &&
                                            !(kind == FAB_FACT_NAME && said[i].source == FAB_FROM_SUBNET));
                }
                if (sources == 0)
                    continue;
                n_texts++;
                const struct join_said *found = NULL;
                for (uint32_t k = 0; k < heap.n_said; k++)
                    if (heap.said[k].fact.kind == kind && strcmp(heap.said[k].fact.text, texts[t]) == 0) {
                        assert_null(found);
                        found = &heap.said[k];
                    }
                assert_non_null(found);
                assert_int_equal(found->sources, sources);
                assert_int_equal((found->flags & FAB_DETAIL_ESTIMATE) != 0, estimate);
                assert_int_equal((found->flags & FAB_DETAIL_SOFTWARE) != 0, software);
                assert_int_equal((found->flags & FAB_DETAIL_CHOSEN) != 0,
                                 many || strcmp(best->text, texts[t]) == 0);
                assert_int_equal((found->flags & FAB_DETAIL_CONFLICT) != 0, !many && conflict && disputes);
            }
            at += n_texts;
            for (uint32_t k = first; k < at; k++) { /* kinds in order, the chosen one first, then by text */
                assert_int_equal(heap.said[k].fact.kind, kind);
                if (k == first && !many)
                    assert_true((heap.said[k].flags & FAB_DETAIL_CHOSEN) != 0);
                if (k > first + !many)
                    assert_true(fab_natural_cmp(heap.said[k - 1].fact.text, heap.said[k].fact.text) < 0);
            }
        }
        assert_int_equal(at, heap.n_said);
    }
    join_heap_free(&heap);
}

TEST(test_same_host)
{
    assert_true(fab_same_host("node1", "node1"));
    assert_true(fab_same_host("node1", "node1.cluster.example"));
    assert_true(fab_same_host("node1.cluster", "node1"));
    assert_true(fab_same_host("node1.a", "node1.a"));
    assert_false(fab_same_host("node1.a", "node1.b"));
    assert_false(fab_same_host("node1", "node10"));
    assert_false(fab_same_host("node1", "node2.node1"));
    assert_false(fab_same_host("", ".a"));
    assert_false(fab_same_host("", "node1"));
}

/* In any order, some twice, against the rule said in another way. */
TEST(test_which_host_a_name_means)
{
    static const char *const names[] = {"node1", "node1.a", "node1.b", "node1.a.b", "node10", "node1.", ""};
    enum { N = sizeof(names) / sizeof(names[0]) };
    uint64_t seed = 21;
    for (unsigned round = 0; round < 5000; round++) {
        struct fab_host_choice choice = {0};
        const char *name = names[fabric_random_next(&seed) % N], *first = NULL;
        bool offered[N] = {false}, exact = false;
        unsigned same = 0;
        for (unsigned i = (unsigned)(fabric_random_next(&seed) % 10); i > 0; i--) {
            size_t which = fabric_random_next(&seed) % N;
            offered[which] = true;
            fab_choose_host(&choice, name, names[which]);
        }
        for (unsigned i = 0; i < N; i++) {
            if (!offered[i] || !fab_same_host(names[i], name))
                continue;
            same++;
            exact = exact || names[i] == name;
            if (first == NULL || fab_natural_cmp(names[i], first) < 0)
                first = names[i];
        }
        assert_ptr_equal(choice.host, exact ? name : first);
        assert_int_equal(choice.exact, exact);
        assert_int_equal(choice.several, !exact && same > 1);
    }
}

/* Lines that a join says. */
struct lines {
    unsigned n;
    char all[8192];
};

static void keep_line(const char *line, void *cbdata)
{
    struct lines *lines = cbdata;
    size_t len = strlen(lines->all);
    lines->n++;
    snprintf(lines->all + len, sizeof(lines->all) - len, "%s\n", line);
    assert_null(strchr(line, '\n'));
}

static void check_joined(const struct fab_joined *joined)
{
    const struct fab_details *d = &joined->details;
    struct fab_planes planes;
    assert_true(joined->inv.finished);
    assert_int_equal(d->n_ports, joined->inv.n_ports);
    assert_int_equal(fab_planes_build(&joined->inv, FAB_COST_RATE, &planes, NULL), 0);
    fab_planes_destroy(&planes);
    assert_int_equal(d->first[0], 0);
    for (uint32_t p = 0; p < d->n_ports; p++) {
        bool hca = joined->inv.nodes[joined->inv.ports[p].node].kind == FAB_HCA;
        assert_true(d->first[p] <= d->first[p + 1]);
        assert_true(d->seen[p] != 0);
        if (!hca)
            assert_int_equal(d->first[p], d->first[p + 1]);
        for (uint32_t f = d->first[p]; f < d->first[p + 1]; f++) {
            const struct fab_detail *fact = &d->facts[f];
            assert_true(fact->kind > 0 && fact->kind < FAB_FACTS && fact->sources != 0);
            assert_true(fact->text > 0 && fact->text < d->pool_size);
            assert_int_equal(fab_fact_check((enum fab_fact)fact->kind, d->pool + fact->text, NULL), 0);
            if (f == d->first[p] || fact[-1].kind != fact->kind)
                assert_true((fact->flags & FAB_DETAIL_CHOSEN) != 0);
            else
                assert_true(fact[-1].kind < fact->kind + 1);
        }
    }
}

static void join_n(const struct fab_inventory *swept, const struct fab_report *const *reports, uint32_t n,
                   struct lines *lines, struct fab_joined *out)
{
    struct fab_err err = {{0}};
    if (lines != NULL)
        memset(lines, 0, sizeof(*lines));
    int rc = fab_join(swept, reports, n, NULL, 0, NULL, lines == NULL ? NULL : keep_line, lines, out, &err);
    if (rc != 0)
        fail_msg("%d: %s", rc, err.text);
    check_joined(out);
}

static uint32_t port_at(const struct fab_joined *joined, uint64_t guid, unsigned num)
{
    return fab_inventory_port(&joined->inv, fab_inventory_find(&joined->inv, guid), num);
}

static const char *name_at(const struct fab_joined *joined, uint64_t guid)
{
    return fab_str(&joined->inv, joined->inv.nodes[fab_inventory_find(&joined->inv, guid)].name);
}

static const char *host_at(const struct fab_joined *joined, uint64_t guid)
{
    return fab_str(&joined->inv, joined->inv.nodes[fab_inventory_find(&joined->inv, guid)].host);
}

/* Two hosts on a switch: 0x100 (two ports, the second not cabled, no GUID known), 0x110 of "a", 0x120 of "b".
 */
static void small_fabric(struct fab_inventory *inv)
{
    fab_inventory_init(inv);
    uint32_t sw = hand_node(inv, FAB_SWITCH, 0x200, "leaf", 36, 0);
    uint32_t a1 = hand_node(inv, FAB_HCA, 0x100, "a HCA-1", 2, 0);
    uint32_t a2 = hand_node(inv, FAB_HCA, 0x110, "a HCA-2", 1, 0);
    uint32_t b = hand_node(inv, FAB_HCA, 0x120, "b", 1, 0);
    inv->n_subnets = 1;
    inv->subnets[0].prefix = FAB_DEFAULT_PREFIX;
    hand_cable(inv, sw, 1, a1, 1);
    hand_cable(inv, sw, 2, a2, 1);
    hand_cable(inv, sw, 3, b, 1);
    uint32_t second = hand_port(inv, a1, 2, 0, 0);
    inv->ports[second].state = 0;
    inv->ports[second].width = inv->ports[second].speed = 0;
    hand_finish(inv);
    hand_names(inv, NULL);
}

TEST(test_a_whole_fabric)
{
    static const char *const fabrics[] = {"fattree2:4,2,3", "fattree3:4", "torus:3,3,3:1",
                                          "random:12,40,20:7"};
    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        struct fab_inventory inv;
        struct report_world world;
        struct fab_joined joined;
        struct lines lines;
        assert_int_equal(fabric_parse(fabrics[i], &inv), 0);
        world_reports(&world, &inv);
        join_n(&inv, world.list, world.n, &lines, &joined);
        assert_string_equal(lines.all, "");
        assert_int_equal(joined.n_refused, 0);
        assert_int_equal(joined.inv.n_nodes, inv.n_nodes);
        assert_int_equal(joined.inv.n_ports, inv.n_ports);
        for (uint32_t p = 0; p < inv.n_ports; p++) {
            const struct fab_port *port = &inv.ports[p];
            const struct fab_node *node = &inv.nodes[port->node];
            char text[24];
            if (node->kind != FAB_HCA)
                continue;
            assert_int_equal(joined.inv.ports[p].peer, port->peer);
            assert_true(strncmp(fab_str(&joined.inv, joined.inv.nodes[port->node].name), "mlx5_", 5) == 0);
            assert_string_equal(fab_str(&joined.inv, joined.inv.nodes[port->node].host),
                                fab_str(&inv, node->host));
            assert_int_equal(joined.details.places[p].card, joined.details.places[p].numa);
            assert_string_equal(world_text(&joined, p, FAB_FACT_FIRMWARE), "20.31.1014");
            assert_string_equal(world_text(&joined, p, FAB_FACT_VENDOR), "Mellanox Technologies");
            assert_string_equal(world_text(&joined, p, FAB_FACT_TRANSPORT), "rc_mlx5");
            assert_string_equal(world_text(&joined, p, FAB_FACT_PROVIDER), "verbs;ofi_rxm");
            assert_true((world_detail(&joined, p, FAB_FACT_LATENCY)->flags & FAB_DETAIL_ESTIMATE) != 0);
            snprintf(text, sizeof(text), "0x%016" PRIx64, port->guid);
            assert_string_equal(world_text(&joined, p, FAB_FACT_PORT_GUID), text);
            assert_int_equal(world_detail(&joined, p, FAB_FACT_PORT_GUID)->sources,
                             1u << FAB_FROM_SUBNET | 1u << FAB_FROM_VERBS);
            assert_int_equal(joined.details.seen[p],
                             port->peer == FAB_NONE ? FAB_SEEN_NODE : FAB_SEEN_NODE | FAB_SEEN_SUBNET);
            for (uint32_t f = joined.details.first[p]; f < joined.details.first[p + 1]; f++)
                assert_int_equal(joined.details.facts[f].flags & FAB_DETAIL_CONFLICT, 0);
        }
        fab_joined_destroy(&joined);
        world_reports_free(&world);
        fab_inventory_destroy(&inv);
    }
}

TEST(test_without_reports_the_sweep_is_what_it_was)
{
    struct fab_inventory inv;
    struct fab_joined joined;
    assert_int_equal(fabric_parse("random:12,40,20:7", &inv), 0);
    join_n(&inv, NULL, 0, NULL, &joined);
    assert_true(fab_inventory_equal(&inv, &joined.inv));
    for (uint32_t p = 0; p < inv.n_ports; p++) {
        assert_int_equal(joined.details.seen[p], FAB_SEEN_SUBNET);
        assert_int_equal(joined.details.places[p].card, 0);
        if (inv.nodes[inv.ports[p].node].kind == FAB_HCA)
            assert_string_equal(world_text(&joined, p, FAB_FACT_TYPE), "InfiniBand");
    }
    fab_joined_destroy(&joined);
    fab_inventory_destroy(&inv);
    fab_inventory_init(&inv); /* an empty sweep is a sweep */
    hand_finish(&inv);
    join_n(&inv, NULL, 0, NULL, &joined);
    assert_int_equal(joined.inv.n_nodes, 0);
    fab_joined_destroy(&joined);
    fab_inventory_destroy(&inv);
}

TEST(test_conflicts_are_kept)
{
    struct fab_inventory inv;
    struct fab_report a;
    struct fab_joined joined;
    const struct fab_report *list[] = {&a};
    small_fabric(&inv);
    world_begin(&a, "a");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PORT, "1", FAB_FACT_PORT_GUID,
              "0x0000000000000101", FAB_FACT_STATE, "down", FAB_FACT_FIRMWARE, "20.1", FAB_FACT_PCI,
              "0000:c1:00:00", FAB_FACT_LID, "77");
    world_say(&a, FAB_FROM_HWLOC, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PCI, "0000:c2:00:00", FAB_FACT_NUMA, "3");
    world_say(&a, FAB_FROM_LIBFABRIC, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PORT, "1", FAB_FACT_FIRMWARE, "20.2");
    world_say(&a, FAB_FROM_LIBFABRIC, FAB_FACT_NAME, "mlx5_0", FAB_FACT_FIRMWARE, "9.2");
    world_finish(&a);
    join_n(&inv, list, 1, NULL, &joined);
    uint32_t p = port_at(&joined, 0x100, 1);
    assert_string_equal(world_text(&joined, p, FAB_FACT_STATE), "up"); /* the subnet knows better */
    assert_true((world_detail(&joined, p, FAB_FACT_STATE)->flags & FAB_DETAIL_CONFLICT) != 0);
    assert_string_equal(world_text(&joined, p, FAB_FACT_LID), "77"); /* the sweep has none here */
    assert_string_equal(world_text(&joined, p, FAB_FACT_FIRMWARE), "20.1");
    assert_string_equal(world_text(&joined, p, FAB_FACT_PCI), "0000:c2:00:00");
    assert_string_equal(world_text(&joined, p, FAB_FACT_NAME), "mlx5_0");
    assert_int_equal(world_detail(&joined, p, FAB_FACT_NAME)->flags,
                     FAB_DETAIL_CHOSEN); /* HCA-1 is no conflict */
    assert_int_equal(world_detail(&joined, p, FAB_FACT_NAME)[1].sources, 1u << FAB_FROM_SUBNET);
    const struct fab_detail *firmware = world_detail(&joined, p, FAB_FACT_FIRMWARE);
    assert_string_equal(joined.details.pool + firmware[1].text, "9.2");
    assert_string_equal(joined.details.pool + firmware[2].text, "20.2");
    assert_int_equal(firmware[2].flags, FAB_DETAIL_CONFLICT);
    assert_int_equal(joined.inv.ports[p].state, FAB_PORT_ACTIVE); /* the sweep's part is as it was */
    assert_int_equal(joined.inv.ports[p].lid, 0);
    assert_int_equal(joined.details.places[p].numa, 1);
    assert_int_equal(joined.details.places[p].package, 0);
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    fab_inventory_destroy(&inv);
}

/* TCP can use any card: that does not make it one of software alone. What verbs calls software is. */
TEST(test_software_of_those_who_use_it)
{
    struct fab_inventory inv;
    struct fab_report a;
    struct fab_joined joined;
    const struct fab_report *list[] = {&a};
    small_fabric(&inv);
    world_begin(&a, "a");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PORT, "1", FAB_FACT_PORT_GUID,
              "0x0000000000000101", FAB_FACT_INTERFACE, "ib0");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "rxe0", FAB_FACT_PORT, "1", FAB_FACT_PORT_GUID,
              "0x0000000000000111", FAB_FACT_SOFTWARE, "yes");
    world_say(&a, FAB_FROM_LIBFABRIC, FAB_FACT_INTERFACE, "ib0", FAB_FACT_PROVIDER, "tcp", FAB_FACT_SOFTWARE,
              "yes");
    world_say(&a, FAB_FROM_UCX, FAB_FACT_INTERFACE, "ib0", FAB_FACT_TRANSPORT, "tcp", FAB_FACT_SOFTWARE,
              "yes");
    world_say(&a, FAB_FROM_LIBFABRIC, FAB_FACT_INTERFACE, "ib0", FAB_FACT_PROTOCOL, "x", FAB_FACT_MTU, "9000",
              FAB_FACT_SOFTWARE, "yes"); /* what another says without is not software */
    world_say(&a, FAB_FROM_LIBFABRIC, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PROTOCOL, "x");
    world_finish(&a);
    join_n(&inv, list, 1, NULL, &joined);
    uint32_t card = port_at(&joined, 0x100, 1), soft = port_at(&joined, 0x110, 1);
    assert_string_equal(world_text(&joined, card, FAB_FACT_PROVIDER), "tcp");
    assert_string_equal(world_text(&joined, card, FAB_FACT_TRANSPORT), "tcp");
    assert_null(world_detail(&joined, card, FAB_FACT_SOFTWARE));
    static const struct {
        enum fab_fact kind;
        unsigned flag;
    } ways[] = {{FAB_FACT_PROVIDER, FAB_DETAIL_SOFTWARE},
                {FAB_FACT_TRANSPORT, FAB_DETAIL_SOFTWARE},
                {FAB_FACT_PROTOCOL, 0},
                {FAB_FACT_MTU, 0},
                {FAB_FACT_NAME, 0}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        assert_int_equal(world_detail(&joined, card, ways[i].kind)->flags & FAB_DETAIL_SOFTWARE,
                         ways[i].flag);
    assert_string_equal(world_text(&joined, soft, FAB_FACT_SOFTWARE), "yes");
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    fab_inventory_destroy(&inv);
}

TEST(test_another_hosts_devices_are_not_joined)
{
    struct fab_inventory inv;
    struct fab_report a, b;
    struct fab_joined joined;
    struct lines lines;
    const struct fab_report *list[] = {&a, &b};
    small_fabric(&inv);
    world_begin(&a, "a");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "x", FAB_FACT_PORT, "1", FAB_FACT_PORT_GUID,
              "0x0000000000000121");
    world_say(&a, FAB_FROM_HWLOC, FAB_FACT_NAME, "x", FAB_FACT_NUMA, "1");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "y", FAB_FACT_PORT, "1", FAB_FACT_NODE_GUID,
              "0x0000000000000200"); /* the switch */
    world_finish(&a);
    world_begin(&b, "b.cluster");
    world_say(&b, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PORT, "1", FAB_FACT_NODE_GUID,
              "0x0000000000000120");
    world_say(&b, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_9", FAB_FACT_PORT, "1", FAB_FACT_PORT_GUID,
              "0x0000000000000999");
    world_finish(&b);
    join_n(&inv, list, 2, &lines, &joined);
    assert_int_equal(joined.n_refused, 3);
    assert_int_equal(lines.n, 1);
    assert_non_null(strstr(lines.all, "a: 3 items"));
    assert_non_null(strstr(lines.all, "of b"));
    assert_string_equal(name_at(&joined, 0x120), "mlx5_0");
    assert_string_equal(host_at(&joined, 0x120), "b"); /* the operator's name for it */
    uint32_t p = port_at(&joined, 0x120, 1);
    assert_null(world_text(&joined, p, FAB_FACT_NUMA));
    assert_int_equal(joined.details.seen[p], FAB_SEEN_SUBNET | FAB_SEEN_NODE);
    for (uint32_t i = 0; i < joined.inv.n_nodes; i++) /* what only b.cluster knows is of the same host b */
        assert_true(strcmp(fab_str(&joined.inv, joined.inv.nodes[i].host), "b.cluster") != 0);
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    fab_report_destroy(&b);
    fab_inventory_destroy(&inv);
}

TEST(test_who_names_the_unnamed)
{
    struct fab_inventory inv;
    struct fab_report hosts[3];
    struct fab_joined joined;
    struct lines lines;
    const struct fab_report *list[] = {&hosts[2], &hosts[0], &hosts[1]}; /* order means nothing */
    fab_inventory_init(&inv);
    uint32_t sw = hand_node(&inv, FAB_SWITCH, 0x200, "leaf", 36, 0);
    uint32_t x = hand_node(&inv, FAB_HCA, 0x100, "MT4123", 1, 0);
    uint32_t y = hand_node(&inv, FAB_HCA, 0x110, "localhost mlx5_0", 1, 0);
    uint32_t z = hand_node(&inv, FAB_HCA, 0x120, "localhost mlx5_0", 1, 0);
    hand_cable(&inv, sw, 1, x, 1);
    hand_cable(&inv, sw, 2, y, 1);
    hand_cable(&inv, sw, 3, z, 1);
    inv.n_subnets = 1;
    inv.subnets[0].prefix = FAB_DEFAULT_PREFIX;
    hand_finish(&inv);
    hand_names(&inv, NULL);
    static const char *const names[] = {"n2", "n10", "n10.x"};
    static const char *const guids[] = {"0x0000000000000101", "0x0000000000000111", "0x0000000000000101"};
    for (unsigned i = 0; i < 3; i++) {
        world_begin(&hosts[i], names[i]);
        world_say(&hosts[i], FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_3", FAB_FACT_PORT, "1", FAB_FACT_PORT_GUID,
                  guids[i]);
        world_finish(&hosts[i]);
    }
    join_n(&inv, list, 3, &lines, &joined);
    assert_string_equal(host_at(&joined, 0x100), "n2"); /* n2 is before n10 */
    assert_string_equal(name_at(&joined, 0x100), "mlx5_3");
    assert_int_equal(joined.inv.nodes[fab_inventory_find(&joined.inv, 0x100)].unnamed, 0);
    assert_string_equal(host_at(&joined, 0x110), "n10");
    assert_string_equal(host_at(&joined, 0x120), "localhost");
    assert_string_equal(name_at(&joined, 0x120), "mlx5_0");
    assert_int_equal(joined.n_refused, 0);
    assert_string_equal(lines.all,
                        "n2: the node GUID of mlx5_3 is claimed by n10.x, too\n"
                        "n10.x: the node GUID of mlx5_3 is that of a device of n2, too, which keeps it\n");
    assert_int_equal(joined.inv.n_nodes, inv.n_nodes + 1); /* it has a device all the same */
    assert_int_equal(joined.hosts[2].devices, 1);
    fab_joined_destroy(&joined);
    for (unsigned i = 0; i < 3; i++)
        fab_report_destroy(&hosts[i]);
    fab_inventory_destroy(&inv);
}

TEST(test_the_host_that_the_sweep_names_goes_first)
{
    struct fab_inventory inv;
    struct fab_report hosts[2];
    struct fab_joined joined;
    const struct fab_report *list[] = {&hosts[0], &hosts[1]};
    fab_inventory_init(&inv);
    uint32_t sw = hand_node(&inv, FAB_SWITCH, 0x200, "leaf", 36, 0);
    uint32_t x = hand_node(&inv, FAB_HCA, 0x100, "n.b", 1, 0);
    hand_cable(&inv, sw, 1, x, 1);
    hand_finish(&inv);
    hand_names(&inv, NULL);
    for (unsigned i = 0; i < 2; i++) {
        world_begin(&hosts[i], i == 0 ? "n" : "n.b");
        world_say(&hosts[i], FAB_FROM_VERBS, FAB_FACT_NAME, i == 0 ? "wrong" : "right", FAB_FACT_PORT, "1",
                  FAB_FACT_PORT_GUID, "0x0000000000000101");
        world_finish(&hosts[i]);
    }
    join_n(&inv, list, 2, NULL, &joined);
    assert_string_equal(name_at(&joined, 0x100), "right");
    assert_int_equal(joined.n_refused, 1);
    fab_joined_destroy(&joined);
    join_n(&inv, list, 1, NULL, &joined); /* alone, n is n.b */
    assert_string_equal(name_at(&joined, 0x100), "wrong");
    assert_string_equal(host_at(&joined, 0x100), "n.b");
    fab_joined_destroy(&joined);
    fab_report_destroy(&hosts[0]);
    fab_report_destroy(&hosts[1]);
    fab_inventory_destroy(&inv);
}

TEST(test_names_tell_devices_apart)
{
    struct fab_inventory inv;
    struct fab_report a;
    struct fab_joined joined;
    const struct fab_report *list[] = {&a};
    small_fabric(&inv);
    /* both HCAs claim one name: both keep the sweep's */
    world_begin(&a, "a");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "same", FAB_FACT_PORT_GUID, "0x0000000000000101");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "same", FAB_FACT_PORT_GUID, "0x0000000000000111");
    world_finish(&a);
    join_n(&inv, list, 1, NULL, &joined);
    assert_string_equal(name_at(&joined, 0x100), "HCA-1");
    assert_string_equal(name_at(&joined, 0x110), "HCA-2");
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    /* one claims what the other keeps */
    world_begin(&a, "a");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "HCA-2", FAB_FACT_PORT_GUID, "0x0000000000000101");
    world_finish(&a);
    join_n(&inv, list, 1, NULL, &joined);
    assert_string_equal(name_at(&joined, 0x100), "HCA-1");
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    /* changing places is no conflict */
    world_begin(&a, "a");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "HCA-2", FAB_FACT_PORT_GUID, "0x0000000000000101");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "HCA-1", FAB_FACT_PORT_GUID, "0x0000000000000111");
    world_finish(&a);
    join_n(&inv, list, 1, NULL, &joined);
    assert_string_equal(name_at(&joined, 0x100), "HCA-2");
    assert_string_equal(name_at(&joined, 0x110), "HCA-1");
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    fab_inventory_destroy(&inv);
}

TEST(test_what_only_the_host_knows)
{
    struct fab_inventory inv;
    struct fab_report a;
    struct fab_joined joined;
    struct lines lines;
    const struct fab_report *list[] = {&a};
    small_fabric(&inv);
    world_begin(&a, "a");
    /* the second port of an HCA of the sweep, which has no cable */
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PORT, "1", FAB_FACT_PORT_GUID,
              "0x0000000000000101", FAB_FACT_NODE_GUID, "0x0000000000000100");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PORT, "2", FAB_FACT_PORT_GUID,
              "0x0000000000000102", FAB_FACT_STATE, "down", FAB_FACT_SPEED, "10000");
    /* an HCA that is in no sweep: port 3 of it, and one whose number nobody says */
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_7", FAB_FACT_PORT, "3", FAB_FACT_NODE_GUID,
              "0x0000000000000700", FAB_FACT_SYSTEM_GUID, "0x0000000000000777", FAB_FACT_STATE, "up",
              FAB_FACT_SPEED, "100000", FAB_FACT_LID, "12", FAB_FACT_PCI, "0000:01:00:00");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_7", FAB_FACT_PORT_GUID, "0x0000000000000703");
    /* one without any GUID */
    world_say(&a, FAB_FROM_UCX, FAB_FACT_NAME, "irdma0", FAB_FACT_PORT, "1", FAB_FACT_TRANSPORT, "rc_verbs");
    /* contradictions: a port that the HCA has not, another GUID for a port of the sweep */
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "mlx5_0", FAB_FACT_PORT, "9");
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "z", FAB_FACT_PORT, "1", FAB_FACT_NODE_GUID,
              "0x0000000000000110", FAB_FACT_PORT_GUID, "0x0000000000000fff");
    world_finish(&a);
    join_n(&inv, list, 1, &lines, &joined);
    assert_string_equal(lines.all, "a: 2 items are left out: against what the fabric or other items say\n");
    assert_int_equal(joined.n_refused, 0);
    assert_int_equal(joined.inv.n_nodes, inv.n_nodes + 2);

    uint32_t p = port_at(&joined, 0x100, 2);
    const struct fab_port *port = &joined.inv.ports[p];
    assert_true(joined.inv.subnets[port->subnet].prefix == FAB_UNATTACHED);
    assert_true(port->guid == 0x102);
    assert_int_equal(port->state, FAB_PORT_DOWN);
    assert_int_equal(fab_rate_mbps(port->width, (enum fab_speed)port->speed), 10000);
    assert_int_equal(joined.details.seen[p], FAB_SEEN_NODE);
    assert_string_equal(world_text(&joined, p, FAB_FACT_PORT), "2");
    assert_int_equal(joined.details.places[p].card, joined.details.places[port_at(&joined, 0x100, 1)].card);
    assert_int_not_equal(joined.details.places[p].card, 0);

    p = port_at(&joined, 0x700, 3);
    assert_true(p != FAB_NONE);
    assert_int_equal(joined.inv.ports[p].state, FAB_PORT_ACTIVE);
    assert_int_equal(joined.inv.ports[p].lid, 12);
    assert_true(joined.inv.subnets[joined.inv.ports[p].subnet].prefix == FAB_UNATTACHED);
    assert_true(FAB_GUID_IS_MADE_UP(joined.inv.ports[p].guid));
    assert_int_equal(joined.inv.nodes[joined.inv.ports[p].node].num_ports, 3);
    assert_true(joined.inv.nodes[joined.inv.ports[p].node].system_guid == 0x777);
    assert_string_equal(name_at(&joined, 0x700), "mlx5_7");
    assert_string_equal(host_at(&joined, 0x700), "a");
    assert_int_equal(joined.details.places[p].card, joined.details.places[port_at(&joined, 0x700, 1)].card);
    assert_true(joined.inv.ports[port_at(&joined, 0x700, 1)].guid == 0x703);

    uint32_t last = joined.inv.n_nodes - 1; /* made-up GUIDs are above all others */
    assert_true(FAB_GUID_IS_MADE_UP(joined.inv.nodes[last].guid));
    assert_string_equal(fab_str(&joined.inv, joined.inv.nodes[last].name), "irdma0");
    assert_int_equal(joined.details.places[joined.inv.nodes[last].first_port].card, 0);
    assert_int_equal(joined.inv.n_subnets, 2);
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    fab_inventory_destroy(&inv);
}

/* A port that is up and leads nowhere is the sweep's word; it moves, and the word stays. */
TEST(test_dangling)
{
    struct fab_inventory inv;
    struct report_world world;
    struct fab_joined joined;
    assert_int_equal(fabric_parse("fattree2:2,2,2", &inv), 0);
    assert_int_equal(fabric_unlink(&inv, "node0001", 1), 0);
    uint32_t node = fabric_find(&inv, "node0001"), p = inv.nodes[node].first_port;
    inv.ports[p].state = FAB_PORT_INIT;
    world_reports(&world, &inv);
    join_n(&inv, world.list, world.n, NULL, &joined);
    assert_true(joined.inv.subnets[joined.inv.ports[p].subnet].prefix == FAB_UNATTACHED);
    assert_int_equal(joined.details.seen[p], FAB_SEEN_NODE | FAB_SEEN_SUBNET);
    assert_int_equal(joined.inv.ports[p].state, FAB_PORT_INIT);
    assert_string_equal(world_text(&joined, p, FAB_FACT_STATE), "down");
    fab_joined_destroy(&joined);
    world_reports_free(&world);
    fab_inventory_destroy(&inv);
}

TEST(test_places)
{
    static const struct {
        const char *pci, *sw, *numa, *package;
        struct fab_locality place;
    } devs[] = {
        {"0000:02:00:00", "0000:01:00:00", "10", "1", {1, 1, 2, 2}},
        {"0000:02:00:01", "0000:01:00:00", "10", "1", {1, 1, 2, 2}},
        {"0000:03:00:00", "0000:01:00:00", "9", "0", {2, 1, 1, 1}},
        {"0001:02:00:00", NULL, "10", NULL, {3, 0, 2, 0}},
        {NULL, NULL, NULL, NULL, {0, 0, 0, 0}},
    };
    struct fab_inventory inv;
    struct fab_report a;
    struct fab_joined joined;
    const struct fab_report *list[] = {&a};
    fab_inventory_init(&inv);
    hand_finish(&inv);
    world_begin(&a, "a");
    for (unsigned i = 0; i < 5; i++) {
        uint32_t item = world_item(&a, FAB_FROM_VERBS);
        world_fact(&a, item, FAB_FACT_NODE_GUID, "0x00000000000001%02x", i);
        world_fact(&a, item, FAB_FACT_PORT_GUID, "0x00000000000001%02x", i);
        world_fact(&a, item, FAB_FACT_NAME, "mlx5_%u", i);
        if (devs[i].pci == NULL)
            continue;
        fab_report_fact(&a, item, FAB_FACT_PCI, devs[i].pci);
        fab_report_fact(&a, item, FAB_FACT_SWITCH, devs[i].sw);
        fab_report_fact(&a, item, FAB_FACT_NUMA, devs[i].numa);
        fab_report_fact(&a, item, FAB_FACT_PACKAGE, devs[i].package);
    }
    world_finish(&a);
    join_n(&inv, list, 1, NULL, &joined);
    for (unsigned i = 0; i < 5; i++) {
        uint32_t p = port_at(&joined, 0x100 + i, 1);
        assert_memory_equal(&joined.details.places[p], &devs[i].place, sizeof(devs[i].place));
    }
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    fab_inventory_destroy(&inv);
}

/* What is said of a device, and not of a port of it, is said of all its ports but for what each has itself.
 */
TEST(test_shared_items)
{
    struct fab_inventory inv;
    struct fab_report a;
    struct fab_joined joined;
    const struct fab_report *list[] = {&a};
    fab_inventory_init(&inv);
    hand_finish(&inv);
    world_begin(&a, "a");
    for (unsigned i = 0; i < 4; i++) { /* two devices of two ports, no address known */
        uint32_t item = world_item(&a, FAB_FROM_VERBS);
        world_fact(&a, item, FAB_FACT_NAME, "mlx5_%u", i / 2);
        world_fact(&a, item, FAB_FACT_PORT, "%u", i % 2 + 1);
        world_fact(&a, item, FAB_FACT_NODE_GUID, "0x00000000000001%02x", i / 2);
    }
    world_say(&a, FAB_FROM_HWLOC, FAB_FACT_NAME, "mlx5_0", FAB_FACT_NUMA, "1", FAB_FACT_STATE, "down",
              FAB_FACT_GID, "fe80::1");
    world_finish(&a);
    join_n(&inv, list, 1, NULL, &joined);
    for (unsigned i = 0; i < 4; i++) {
        uint32_t p = port_at(&joined, 0x100 + i / 2, i % 2 + 1);
        assert_int_equal(world_text(&joined, p, FAB_FACT_NUMA) != NULL, i < 2);
        assert_null(world_text(&joined, p, FAB_FACT_STATE));
        assert_null(world_text(&joined, p, FAB_FACT_GID));
        assert_int_equal(joined.details.places[p].card, i / 2 + 1);
        assert_int_equal(joined.details.places[p].numa, i < 2);
        assert_int_equal(joined.inv.ports[p].state, FAB_PORT_UNKNOWN);
    }
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    fab_inventory_destroy(&inv);
}

TEST(test_numbers_and_names_of_new_nodes)
{
    struct fab_inventory inv;
    struct fab_report a;
    struct fab_joined joined;
    const struct fab_report *list[] = {&a};
    fab_inventory_init(&inv);
    hand_finish(&inv);
    world_begin(&a, "a");
    /* who knows its number has it, whoever is first */
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "x", FAB_FACT_NODE_GUID, "0x0000000000000100",
              FAB_FACT_PORT_GUID, "0x0000000000000101");
    world_say(&a, FAB_FROM_HWLOC, FAB_FACT_NAME, "x", FAB_FACT_NODE_GUID, "0x0000000000000100",
              FAB_FACT_PORT_GUID, "0x0000000000000102", FAB_FACT_PORT, "1");
    /* another name is another device, whatever GUID they share */
    world_say(&a, FAB_FROM_VERBS, FAB_FACT_NAME, "first", FAB_FACT_NODE_GUID, "0x0000000000000200",
              FAB_FACT_PORT_GUID, "0x0000000000000201", FAB_FACT_PORT, "1");
    world_say(&a, FAB_FROM_HWLOC, FAB_FACT_NAME, "second", FAB_FACT_NODE_GUID, "0x0000000000000200",
              FAB_FACT_PORT_GUID, "0x0000000000000202", FAB_FACT_PORT, "2");
    world_finish(&a);
    join_n(&inv, list, 1, NULL, &joined);
    assert_true(joined.inv.ports[port_at(&joined, 0x100, 1)].guid == 0x102);
    assert_true(joined.inv.ports[port_at(&joined, 0x100, 2)].guid == 0x101);
    assert_int_equal(fab_inventory_find(&joined.inv, 0x200), FAB_NONE);
    assert_int_equal(joined.inv.n_nodes, 3);
    fab_joined_destroy(&joined);
    fab_report_destroy(&a);
    fab_inventory_destroy(&inv);
}

/* The sweep calls a host n, its report calls it n.x; and the other way round. */
TEST(test_long_and_short_names)
{
    struct fab_inventory inv;
    struct fab_report hosts[3];
    struct fab_joined joined;
    const struct fab_report *list[] = {&hosts[0], &hosts[1], &hosts[2]};
    static const char *const names[] = {"n", "n.x", "m.b"};
    fab_inventory_init(&inv);
    uint32_t sw = hand_node(&inv, FAB_SWITCH, 0x300, "leaf", 36, 0);
    static const char *const descs[] = {"n HCA-1", "n HCA-2", "MT4123", "m", "m.b"};
    for (unsigned i = 0; i < 5; i++)
        hand_cable(&inv, sw, i + 1, hand_node(&inv, FAB_HCA, 0x100 + i * 0x10, descs[i], 2, 0), 1);
    uint32_t lost = hand_port(&inv, 5, 2, 0, 0);
    inv.ports[lost].state = FAB_PORT_DOWN;
    hand_finish(&inv);
    hand_names(&inv, NULL);
    for (unsigned i = 0; i < 3; i++)
        world_begin(&hosts[i], names[i]);
    world_say(&hosts[0], FAB_FROM_VERBS, FAB_FACT_PORT_GUID, "0x0000000000000101", FAB_FACT_PCI,
              "0000:01:00:00");
    world_say(&hosts[1], FAB_FROM_VERBS, FAB_FACT_PORT_GUID, "0x0000000000000111", FAB_FACT_PCI,
              "0000:01:00:00");
    world_say(&hosts[1], FAB_FROM_VERBS, FAB_FACT_PORT_GUID, "0x0000000000000121");
    world_say(&hosts[2], FAB_FROM_VERBS, FAB_FACT_PORT_GUID, "0x0000000000000900", FAB_FACT_NODE_GUID,
              "0x0000000000000900");
    world_say(&hosts[2], FAB_FROM_VERBS, FAB_FACT_NAME, "x", FAB_FACT_PORT, "2", FAB_FACT_NODE_GUID,
              "0x0000000000000140", FAB_FACT_PORT_GUID, "0x0000000000000142");
    for (unsigned i = 0; i < 3; i++)
        world_finish(&hosts[i]);
    join_n(&inv, list, 3, NULL, &joined);
    assert_int_equal(joined.n_refused, 0);
    assert_string_equal(host_at(&joined, 0x120), "n"); /* n.x is n: its unnamed device is n's */
    assert_string_equal(host_at(&joined, 0x900), "m.b");
    /* two reports of one host: their addresses are two machines' */
    assert_int_equal(joined.details.places[port_at(&joined, 0x100, 1)].card, 1);
    assert_int_equal(joined.details.places[port_at(&joined, 0x110, 1)].card, 2);
    const struct fab_port *port = &joined.inv.ports[port_at(&joined, 0x140, 2)];
    assert_int_equal(port->state, FAB_PORT_DOWN); /* its host does not say */
    assert_true(port->guid == 0x142);
    static const struct fab_joined_host counts[] = {{2, 2}, {1, 0}, {2, 0}}; /* m.b, n, n.x */
    assert_int_equal(joined.n_hosts, 3);
    assert_memory_equal(joined.hosts, counts, sizeof(counts));
    fab_joined_destroy(&joined);
    for (unsigned i = 0; i < 3; i++)
        fab_report_destroy(&hosts[i]);
    fab_inventory_destroy(&inv);
}

TEST(test_hosts_of_two_domains_are_two)
{
    struct fab_inventory inv;
    struct fab_report hosts[3];
    struct fab_joined joined;
    const struct fab_report *list[] = {&hosts[2], &hosts[1], &hosts[0]};
    static const char *const names[] = {"n1.a", "n1.b", "n2"};
    fab_inventory_init(&inv);
    uint32_t sw = hand_node(&inv, FAB_SWITCH, 0x300, "leaf", 36, 0);
    for (unsigned i = 0; i < 3; i++) {
        char guid[20];
        hand_cable(&inv, sw, i + 1, hand_node(&inv, FAB_HCA, 0x100 + i * 0x10, names[i], 1, 0), 1);
        world_begin(&hosts[i], names[i]);
        snprintf(guid, sizeof(guid), "0x%016x", 0x101 + i * 0x10);
        world_say(&hosts[i], FAB_FROM_VERBS, FAB_FACT_PORT_GUID, guid, FAB_FACT_DRIVER, "one");
        world_say(&hosts[i], FAB_FROM_UCX, FAB_FACT_PORT_GUID, guid, FAB_FACT_DRIVER,
                  "one"); /* counts once */
        for (unsigned more = 0; more < i; more++) {
            snprintf(guid, sizeof(guid), "0x%016x", 0x900 + i * 0x10 + more);
            world_say(&hosts[i], FAB_FROM_VERBS, FAB_FACT_PORT_GUID, guid, FAB_FACT_NODE_GUID, guid);
        }
        world_finish(&hosts[i]);
    }
    hand_finish(&inv);
    hand_names(&inv, NULL);
    join_n(&inv, list, 3, NULL, &joined);
    static const struct fab_joined_host counts[] = {{1, 0}, {2, 1}, {3, 2}};
    assert_int_equal(joined.n_hosts, 3);
    assert_memory_equal(joined.hosts, counts, sizeof(counts));
    assert_string_equal(host_at(&joined, 0x910), "n1.b");
    fab_joined_destroy(&joined);
    for (unsigned i = 0; i < 3; i++)
        fab_report_destroy(&hosts[i]);
    fab_inventory_destroy(&inv);
}

TEST(test_bad_calls)
{
    struct fab_inventory inv;
    struct fab_report a;
    struct fab_joined joined;
    struct fab_err err = {{0}};
    const struct fab_report *list[] = {&a};
    struct fab_ethernet_plane plane = {"net", "10.0.0.1/8"};
    fab_inventory_init(&inv);
    assert_int_equal(fab_join(&inv, NULL, 0, NULL, 0, NULL, NULL, NULL, &joined, &err), PMIXFAB_ERR_INVAL);
    hand_finish(&inv);
    world_begin(&a, "a");
    assert_int_equal(fab_join(&inv, list, 1, NULL, 0, NULL, NULL, NULL, &joined, &err), PMIXFAB_ERR_INVAL);
    assert_non_null(strstr(err.text, "not finished"));
    world_finish(&a);
    assert_int_equal(fab_join(&inv, list, 1, &plane, 1, NULL, NULL, NULL, &joined, &err), PMIXFAB_ERR_SYNTAX);
    assert_non_null(strstr(err.text, "plane net"));
    assert_null(joined.details.first);
    assert_int_equal(fab_join(&inv, list, 1, NULL, 0, NULL, NULL, NULL, NULL, &err), PMIXFAB_ERR_INVAL);
    fab_joined_destroy(NULL);
    fab_report_destroy(&a);
    fab_inventory_destroy(&inv);
}
