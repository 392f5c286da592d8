/* Reports that say anything, through chains of changes: a join never fails for it, the sweep's part stays
 * what it was, the order of reports means nothing, and joining with what the last join left is the same as
 * joining anew.
 */
#include "test/unit/handmade.h"
#include "test/unit/report_liar.h"
#include "topo/join/join_state.h"
#include "topo/model/host_name.h"

OWNER(fab_join_cache_free, struct fab_join_cache)

#define MAX_HOSTS 8
#define MANY      3000 /* items, as many as fit a report's bytes */

static const struct fab_ethernet_plane planes[] = {
    {"b", "10.0.0.0/16"}, {"a", "10.1.0.0/16"}, {"a", "10.2.0.0/16"}};

/* Equal, wherever texts stand. */
static void same_details(const struct fab_details *a, const struct fab_details *b)
{
    uint32_t n = a->n_ports;
    assert_int_equal(n, b->n_ports);
    assert_memory_equal(a->first, b->first, (n + 1) * sizeof(*a->first));
    for (uint32_t f = 0; f < a->first[n]; f++) {
        const struct fab_detail *x = &a->facts[f], *y = &b->facts[f];
        assert_true(x->sources == y->sources && x->kind == y->kind && x->flags == y->flags);
        assert_true(x->text < a->pool_size && y->text < b->pool_size);
        assert_string_equal(a->pool + x->text, b->pool + y->text);
    }
    assert_true(n == 0 || memcmp(a->places, b->places, n * sizeof(*a->places)) == 0);
    assert_true(n == 0 || memcmp(a->seen, b->seen, n) == 0);
}

static int cmp_offset(const void *va, const void *vb)
{
    const uint32_t *a = va, *b = vb;
    return (*a > *b) - (*a < *b);
}

static int cmp_text(const void *va, const void *vb)
{
    return strcmp(*(const char *const *)va, *(const char *const *)vb);
}

/* Equal texts of facts stand in one place. */
static void texts_stand_once(const struct fab_details *d)
{
    uint32_t n = d->first[d->n_ports], kept = 0;
    OWNED(free) uint32_t *at = calloc(n + 1u, sizeof(*at));
    const char **texts = calloc(n + 1u, sizeof(*texts));
    for (uint32_t f = 0; f < n; f++)
        at[f] = d->facts[f].text;
    qsort(at, n, sizeof(*at), cmp_offset);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || at[i] != at[i - 1])
            texts[kept++] = d->pool + at[i];
    qsort(texts, kept, sizeof(*texts), cmp_text);
    for (uint32_t i = 1; i < kept; i++)
        assert_string_not_equal(texts[i], texts[i - 1]);
    free(texts);
}

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

struct lines {
    char text[16384];
    size_t n;
};

static void add_line(const char *line, void *cbdata)
{
    struct lines *lines = cbdata;
    size_t room = sizeof(lines->text) - lines->n;
    int n = snprintf(lines->text + lines->n, room, "%s\n", line);
    assert_true(n > 0 && (size_t)n < room);
    lines->n += (size_t)n;
}

static uint64_t before; /* who had what: changes now and then */

/* Join both ways. Returns how many ports were taken over. */
static uint32_t join_both(struct fab_join_cache *cache, const struct fab_inventory *swept,
                          const struct fab_report *const *reports, uint32_t n,
                          const struct fab_ethernet_plane *list, uint32_t n_planes)
{
    struct lines was = {{0}, 0}, is = {{0}, 0};
    SCOPED(fab_joined) plain, again, turned;
    const struct fab_report *round[MAX_HOSTS];
    struct fab_err one = {{0}}, other = {{0}};
    uint64_t digests[MAX_HOSTS] = {0};
    for (uint32_t i = 0; i < n; i++) {
        digests[i] = fab_report_digest(reports[i]);
        round[n - 1 - i] = reports[i];
    }
    const struct fab_prior_owners past = {liar_holder, &before, NULL, NULL};
    int rc = fab_join(
        NULL, &(struct fab_join_input){swept, reports, NULL, n, list, n_planes, &past, add_line, &was},
        &plain, &one);
    assert_int_equal(
        fab_join(cache,
                 &(struct fab_join_input){swept, reports, digests, n, list, n_planes, &past, add_line, &is},
                 &again, &other),
        rc);
    assert_int_equal(
        fab_join(NULL, &(struct fab_join_input){swept, round, NULL, n, list, n_planes, &past, NULL, NULL},
                 &turned, NULL),
        rc);
    assert_string_equal(one.text, other.text);
    if (rc == 0) {
        assert_string_equal(was.text, is.text);
        assert_int_equal(plain.n_refused, again.n_refused);
        assert_true(fab_inventory_equal(&plain.inv, &again.inv));
        same_details(&plain.details, &again.details);
        assert_true(plain.n_hosts == n && again.n_hosts == n);
        assert_memory_equal(plain.hosts, again.hosts, n * sizeof(*plain.hosts));
        texts_stand_once(&again.details);
        assert_true(fab_inventory_equal(&plain.inv, &turned.inv));
        same_details(&plain.details, &turned.details);
        check_swept(swept, &plain, reports, n);
        check_names(swept, &plain);
    }
    return rc == 0 ? cache->taken : 0;
}

/* ---- fabrics and hosts that change -------------------------------------------------------------------- */

struct chain {
    uint64_t seed;
    struct fab_inventory inv;
    struct fab_report reports[MAX_HOSTS];
    bool there[MAX_HOSTS];
    struct fab_join_cache *cache;
};

static uint32_t below(struct chain *c, uint32_t n)
{
    return liar_below(&c->seed, n);
}

static const char *const hosts[MAX_HOSTS] = {"node0001", "node0001.x", "node0002", "node0003",
                                             "n9",       "localhost",  "node2",    "node0004.y"};

/* What a host that tells the truth says, or one that says anything. */
static void new_report(struct chain *c, uint32_t h)
{
    if (c->there[h])
        fab_report_destroy(&c->reports[h]);
    c->there[h] = true;
    if (below(c, 3) == 0) {
        liar_report(&c->reports[h], hosts[h], &c->inv, &c->seed);
        return;
    }
    unsigned nth = 0;
    world_begin(&c->reports[h], hosts[h]);
    for (uint32_t i = 0; i < c->inv.n_nodes; i++)
        if (c->inv.nodes[i].kind == FAB_HCA &&
            fab_same_host(fab_str(&c->inv, c->inv.nodes[i].host), hosts[h]))
            world_hca(&c->reports[h], &c->inv, &c->inv.nodes[i], nth++);
    report_say(&c->reports[h], "hwloc: interface e7, part %s", below(c, 2) == 0 ? "one" : "another");
    world_finish(&c->reports[h]);
}

/* The same report, read anew: texts stand elsewhere in it. */
static void read_anew(struct chain *c, uint32_t h)
{
    OWNED(free) void *bytes;
    size_t size;
    struct fab_report copy;
    assert_int_equal(fab_report_encode(&c->reports[h], &bytes, &size), 0);
    assert_int_equal(fab_report_decode(bytes, size, &copy, NULL), 0);
    fab_report_destroy(&c->reports[h]);
    c->reports[h] = copy;
}

static void change_node(struct chain *c)
{
    char text[80];
    struct fab_node *node = &c->inv.nodes[below(c, c->inv.n_nodes)];
    if (node->kind != FAB_HCA)
        return;
    switch (below(c, 6)) {
    case 0:
        node->unnamed = !node->unnamed;
        break;
    case 1:
        snprintf(text, sizeof(text), "HCA-%u", below(c, 3));
        node->name = fab_inventory_string(&c->inv, text, strlen(text));
        break;
    case 2: /* longer than a fact's name can be, or none */
        memset(text, 'x', sizeof(text));
        node->name = below(c, 2) == 0 ? 0 : fab_inventory_string(&c->inv, text, 64);
        break;
    case 3:
        node->system_guid = below(c, 3);
        break;
    case 4:
        node->missing = !node->missing;
        break;
    default:
        node->host = fab_inventory_string(&c->inv, hosts[below(c, MAX_HOSTS)], 20);
    }
}

static void change_port(struct chain *c)
{
    struct fab_port *port = &c->inv.ports[below(c, c->inv.n_ports)];
    switch (below(c, 5)) {
    case 0:
        port->lid = (uint16_t)below(c, 3);
        break;
    case 1:
        port->state = (uint8_t)below(c, FAB_PORT_ACTIVE + 1);
        port->missing = (uint8_t)(below(c, 3) == 0);
        break;
    case 2:
        port->width = below(c, 2) == 0 ? 4 : 1;
        break;
    case 3:
        if (port->peer == FAB_NONE)
            port->guid = below(c, 2) == 0 ? 0 : 0x5000 + (uint64_t)(port - c->inv.ports);
        break;
    default:
        if (port->peer == FAB_NONE)
            break;
        c->inv.ports[port->peer].peer = FAB_NONE;
        port->peer = FAB_NONE;
    }
}

static void new_fabric(struct chain *c)
{
    static const char *const specs[] = {"fattree2:2,1,3", "fattree2:2,1,4", "fattree2:3,2,3"};
    fab_inventory_destroy(&c->inv);
    assert_int_equal(fabric_parse(specs[below(c, 3)], &c->inv), 0);
    if (below(c, 3) == 0) /* a real device with a GUID as we make them */
        c->inv.nodes[c->inv.n_nodes - 1].guid = FAB_ETHERNET_GUID | UINT64_C(0x020000000001);
    hand_finish(&c->inv);
}

static void change_something(struct chain *c)
{
    uint32_t h = below(c, MAX_HOSTS), what = below(c, 40);
    if (what < 18) {
        new_report(c, h);
    } else if (what < 21 && c->there[h]) {
        read_anew(c, h);
    } else if (what < 24 && c->there[h]) {
        fab_report_destroy(&c->reports[h]);
        c->there[h] = false;
    } else if (what < 30) {
        change_node(c);
    } else if (what < 37) {
        change_port(c);
    } else if (what == 37) {
        new_fabric(c);
    }
}

/* In any order. */
static uint32_t list_reports(struct chain *c, const struct fab_report **list)
{
    uint32_t n = 0;
    for (uint32_t h = 0; h < MAX_HOSTS; h++) {
        if (!c->there[h])
            continue;
        uint32_t k = below(c, n + 1);
        if (k < n)
            list[n] = list[k];
        list[k] = &c->reports[h];
        n++;
    }
    return n;
}

static void begin(struct chain *c, uint64_t seed)
{
    *c = (struct chain){.seed = seed, .cache = fab_join_cache_new()};
    assert_non_null(c->cache);
    new_fabric(c);
    for (uint32_t h = 0; h < MAX_HOSTS; h++)
        if (below(c, 3) != 0)
            new_report(c, h);
}

static void end(struct chain *c)
{
    for (uint32_t h = 0; h < MAX_HOSTS; h++)
        if (c->there[h])
            fab_report_destroy(&c->reports[h]);
    fab_inventory_destroy(&c->inv);
    fab_join_cache_free(c->cache);
}

TEST(test_chains_of_changes)
{
    static const struct fab_ethernet_plane bad[] = {{"x", "10.0.0.0/99"}};
    uint64_t taken = 0, ports = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct chain c;
        begin(&c, seed);
        for (unsigned step = 0; step < 60; step++) {
            const struct fab_report *list[MAX_HOSTS];
            for (uint32_t k = below(&c, 3); k > 0; k--)
                change_something(&c);
            hand_finish(&c.inv);
            if (below(&c, 8) == 0)
                before = below(&c, 1000);
            uint32_t n = below(&c, 50) == 0 ? 0 : list_reports(&c, list);
            if (below(&c, 50) == 0)
                join_both(c.cache, &c.inv, list, n, bad, 1);
            taken += join_both(c.cache, &c.inv, list, n, planes, below(&c, 10) == 0 ? below(&c, 4) : 3);
            ports += c.inv.n_ports;
        }
        end(&c);
    }
    if (taken < ports / 3 || taken > 3 * ports)
        fail_msg("%llu of %llu ports were taken over", (unsigned long long)taken, (unsigned long long)ports);
}

/* Nothing has changed: all ports are taken over, wherever reports are now. */
TEST(test_nothing_changed)
{
    struct chain c;
    const struct fab_report *list[MAX_HOSTS];
    begin(&c, 5);
    join_both(c.cache, &c.inv, list, list_reports(&c, list), planes, 3);
    uint32_t n_ports = c.cache->n_ports;
    for (uint32_t h = 0; h < MAX_HOSTS; h++)
        if (c.there[h])
            read_anew(&c, h);
    assert_int_equal(join_both(c.cache, &c.inv, list, list_reports(&c, list), planes, 3), n_ports);
    assert_true(n_ports >= c.inv.n_ports);
    end(&c);
}

/* Texts that nobody has any more do not pile up. */
TEST(test_the_pool_is_bounded)
{
    OWNED(fab_join_cache_free) struct fab_join_cache *cache = fab_join_cache_new();
    uint32_t largest = 0, smaller = 0, last = 0;
    assert_non_null(cache);
    SCOPED(fab_inventory) inv = generated("fattree2:2,1,3");
    for (unsigned round = 0; round < 600; round++) {
        SCOPED(fab_report) report;
        const struct fab_report *list = &report;
        world_begin(&report, "node0001");
        for (unsigned i = 0; i < 10; i++)
            report_say(&report, "verbs: port-guid #%x, firmware %0100u", 0x700 + i, round * 10 + i);
        world_finish(&report);
        join_both(cache, &inv, &list, 1, NULL, 0);
        smaller += cache->texts.size < last;
        last = cache->texts.size;
        largest = last > largest ? last : largest;
    }
    assert_true(smaller > 2 && largest < 100000);
}

/* As large as a report can be, each made for another part to be slow at. */
TEST(test_large_reports)
{
    for (unsigned kind = 0; kind < 6; kind++) {
        SCOPED(fab_report) r;
        SCOPED(fab_joined) joined;
        SCOPED(fab_inventory) nothing = {0};
        const struct fab_report *list = &r;
        const struct fab_ethernet_plane plane = {"net", "10.0.0.0/8"};
        hand_finish(&nothing);
        world_begin(&r, "h");
        for (unsigned i = 0; i < MANY; i++) {
            const bool base = i < MANY / 2;
            const char *source = base ? "verbs" : "hwloc";
            if (kind == 0) /* ports of one name, and items for all of them */
                report_say(&r, "%s: name x, provider p%u, port-guid%s", source, i,
                           base ? printed(" #%x", i + 1) : "");
            else if (kind == 1) /* one port of which everybody says something else */
                report_say(&r, "%s: name x, port 1, firmware %u", source, i);
            else if (kind == 2) /* names that fall back on what others want */
                report_say(&r, "%s: node-guid #%x, port-guid #%x, name #%x", source, i + 1, i + 1,
                           i == 1 ? 3 : i);
            else if (kind == 3) /* interfaces of one MAC on one port of one switch */
                report_say(&r,
                           "%s: interface e%u, mac 02:00:00:00:00:01, address 10.0.0.1/8, "
                           "switch-id 02:00:00:00:00:01, switch-port 7",
                           source, i);
            else /* ports of one node, far more than it can have, at one PCI address, and in a plane */
                report_say(&r, "%s: node-guid #9, port-guid #%x, pci 0000:01:00:00%s", source, i + 1,
                           kind == 4 ? "" : ", address 10.0.0.1/8");
        }
        world_finish(&r);
        must_do(fab_join(NULL,
                         &(struct fab_join_input){&nothing, &list, NULL, 1, &plane, 1, NULL, NULL, NULL},
                         &joined, fresh_err()));
        if (kind == 1)
            assert_int_equal(joined.inv.n_nodes, 1);
        if (kind == 3)
            assert_true(joined.inv.n_nodes > MANY);
        if (kind == 4)
            assert_int_equal(joined.inv.n_ports, 254);
        if (kind == 5) /* and as many of the plane's switches, which those that are left out do not need */
            assert_true(joined.inv.n_ports >= 2 * 254 && joined.inv.n_ports < 3 * 254);
        check_names(&nothing, &joined);
    }
}
