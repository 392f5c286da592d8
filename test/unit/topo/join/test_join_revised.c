/* Joining with what the last join left: the same as joining anew, through chains of changes. */
#include "test/unit/handmade.h"
#include "test/unit/report_liar.h"
#include "topo/inventory/host_name.h"
#include "topo/join/state.h"

OWNER(fab_join_cache_free, struct fab_join_cache)

#define MAX_HOSTS 8

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
    SCOPED(fab_joined) plain, again;
    struct fab_err one = {{0}}, other = {{0}};
    uint64_t digests[MAX_HOSTS] = {0};
    for (uint32_t i = 0; i < n; i++)
        digests[i] = fab_report_digest(reports[i]);
    const struct fab_prior_owners past = {liar_holder, &before, NULL};
    int rc = fab_join(
        NULL, &(struct fab_join_input){swept, reports, NULL, n, list, n_planes, &past, add_line, &was},
        &plain, &one);
    assert_int_equal(
        fab_join(cache,
                 &(struct fab_join_input){swept, reports, digests, n, list, n_planes, &past, add_line, &is},
                 &again, &other),
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
