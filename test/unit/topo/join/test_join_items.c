/* Before the join: grouping a report's items, choosing among facts, and which host a name means. */
#include "test/unit/join_hosts.h"
#include "topo/base/natural.h"
#include "topo/join/join_state.h"
#include "topo/model/host_name.h"

OWNER(join_scratch_free, struct join_scratch)

#define MAX_ITEMS 40

/* The rules of join_items.c once more, each taken by its word, for one report. of[item][device]. */
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

/* Does the device have this fact from an item placed before `stage` began? shared ones do not count if own */
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
    OWNED(free) struct plain *before = malloc(sizeof(*before));
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
    OWNED(join_scratch_free) struct join_scratch *scratch = NULL;
    OWNED(free) struct plain *plain = malloc(sizeof(*plain));
    uint64_t seed = 20;
    unsigned n_shared = 0, n_plain = 0, n_lost = 0;
    for (unsigned round = 0; round < 5000; round++) {
        SCOPED(fab_report) report;
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
    }
    assert_true(n_shared > 500 && n_plain > 500 && n_lost > 500); /* all of it happens */
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
    SCOPED_BY(join_heap_free) struct join_heap heap = {0};
    uint64_t seed = 9;
    for (unsigned round = 0; round < 5000; round++) {
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
    assert_false(fab_same_host("node1", "NODE1"));
    assert_true(fab_host_differs_by_case("node1", "Node1"));
    assert_true(fab_host_differs_by_case("node1.cluster", "NODE1"));
    assert_true(fab_host_differs_by_case("node1.cluster", "node1.Cluster"));
    assert_false(fab_host_differs_by_case("node1", "node1"));
    assert_false(fab_host_differs_by_case("node1", "node1.cluster"));
    assert_false(fab_host_differs_by_case("node1.a", "NODE1.b"));
    assert_false(fab_host_differs_by_case("node1", "NODE2"));
    assert_false(fab_host_differs_by_case("", ".a"));
    assert_true(fab_host_is_address("10.0.0.7"));
    assert_true(fab_host_is_address("167772167"));
    assert_true(fab_host_is_address("0xa.7"));
    assert_false(fab_host_is_address("10.0.0.7.cluster"));
    assert_false(fab_host_is_address("node1"));
    assert_false(fab_host_is_address(""));
}

/* In any order, some twice, against the rule said in another way. */
TEST(test_which_host_a_name_means)
{
    static const char *const names[] = {"node1", "node1.a", "node1.b", "node1.a.b", "node10", "node1.", ""};
    enum { N = sizeof(names) / sizeof(names[0]) };
    uint64_t seed = 21;
    for (unsigned round = 0; round < 2000; round++) {
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
