/* prior_owner.h: reports joined, published and joined again. Who is published with a GUID keeps it whatever
 * another host says of its own devices, and what the past answers is what was published. */
#include "fabricd/engine/publisher.h"
#include "test/fabrics/snapshot.h"
#include "test/unit/handmade.h"
#include "test/unit/report_liar.h"

#define MAX  4
#define ODD  UINT64_C(0x9e3779b97f4a7c15)
#define NODE UINT64_C(0x0200000000000500)
#define SYS  UINT64_C(0x0200000000000599)

struct hosts {
    struct fab_report reports[MAX];
    const struct fab_report *list[MAX];
    uint32_t n;
    struct fab_inventory swept;
    struct fab_joined joined;
};

static struct fab_report *host(struct hosts *h, const char *name)
{
    world_begin(&h->reports[h->n], name);
    h->list[h->n] = &h->reports[h->n];
    return &h->reports[h->n++];
}

static void card(struct fab_report *report, const char *name, uint64_t node, uint64_t system)
{
    uint32_t item = world_item(report, FAB_FROM_VERBS);
    fab_report_fact(report, item, FAB_FACT_NAME, name);
    fab_report_fact(report, item, FAB_FACT_PORT, "1");
    fab_report_printf(report, item, FAB_FACT_NODE_GUID, "0x%016" PRIx64, node);
    fab_report_printf(report, item, FAB_FACT_SYSTEM_GUID, "0x%016" PRIx64, system);
}

static struct served *published;

FIXTURE(serve)
{
    published = served_new();
    assert_non_null(published);
    return 0;
}

FIXTURE(stop)
{
    served_free(published);
    return 0;
}

/* Beside what is published. */
static void join(struct hosts *h)
{
    struct prior_owner prior;
    struct fab_err err = {{0}};
    const struct fab_prior_owners past = {prior_owner_of, &prior, NULL, NULL};
    for (uint32_t i = 0; i < h->n; i++)
        world_finish(&h->reports[i]);
    hand_finish(&h->swept);
    prior_owner_open(&prior, published);
    int rc =
        fab_join(NULL, &(struct fab_join_input){&h->swept, h->list, NULL, h->n, NULL, 0, &past, NULL, NULL},
                 &h->joined, &err);
    prior_owner_close(&prior);
    if (rc != 0)
        fail_msg("%d: %s", rc, err.text);
}

static struct served_plane *publish_plane(const struct fab_plane *plane, const struct fab_details *details)
{
    const struct fab_snapshot_meta meta = {.generation = 1, .name = "unattached", .is_default = true};
    struct served_plane *out = NULL;
    void *bytes;
    size_t size;
    must_do(fabric_plane_snapshot(plane, details, &meta, &bytes, &size));
    assert_int_equal(served_plane_new(bytes, size, "/nowhere", &out, NULL), 0);
    return out;
}

static void publish(struct hosts *h)
{
    SCOPED(fab_planes) planes = {0};
    struct served_plane *plane = NULL;
    planes = planes_of(&h->joined.inv);
    assert_true(planes.n <= 1);
    if (planes.n == 1)
        plane = publish_plane(planes.planes, &h->joined.details);
    struct served_set *set = served_set_new(&plane, planes.n, 1, 1);
    assert_non_null(set);
    served_swap(published, set);
}

static void end(struct hosts *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        fab_report_destroy(&h->reports[i]);
    fab_inventory_destroy(&h->swept);
    fab_joined_destroy(&h->joined);
    *h = (struct hosts){.n = 0};
}

/* The node GUID that a device goes by; *yields: does another host's go by what it says? */
static uint64_t goes_by(const struct hosts *h, const char *name, const char *device, bool *yields)
{
    const struct fab_inventory *inv = &h->joined.inv;
    for (uint32_t i = 0; i < inv->n_nodes; i++)
        if (strcmp(fab_str(inv, inv->nodes[i].host), name) == 0 &&
            strcmp(fab_str(inv, inv->nodes[i].name), device) == 0) {
            const struct fab_detail *said =
                world_detail(&h->joined, inv->nodes[i].first_port, FAB_FACT_NODE_GUID);
            assert_non_null(said);
            *yields = (said->flags & FAB_DETAIL_OUTRANKED) != 0;
            return inv->nodes[i].guid;
        }
    fail_msg("%s has no %s", name, device);
    return 0;
}

static void check_keeps(const struct hosts *h, const char *name, const char *device, uint64_t guid,
                        unsigned round)
{
    bool yields = false;
    uint64_t now = goes_by(h, name, device, &yields);
    if (yields || (guid != 0 ? now != guid : !FAB_GUID_IS_MADE_UP(now)))
        fail_msg("round %u: %s of %s goes by %016" PRIx64 "%s", round, device, name, now,
                 yields ? ", yields" : "");
}

/* h5 comes to have a second device of the one GUID: it goes by neither, and the id stays that of the first */
TEST(test_a_second_device_of_one_guid)
{
    served_swap(published, NULL);
    for (unsigned step = 0; step < 3; step++) {
        struct hosts h = {.n = 0};
        struct fab_report *own = host(&h, "h5"), *liar = host(&h, "h1");
        card(own, "u0", NODE, SYS);
        if (step > 0)
            card(own, "u1", NODE, SYS + 1);
        card(liar, "x0", NODE, SYS);
        card(liar, "x1", NODE, SYS);
        join(&h);
        check_keeps(&h, "h5", "u0", step > 0 ? 0 : NODE, step);
        publish(&h);
        end(&h);
    }
}

/* ---- random ---- */

static const uint64_t nodes[] = {NODE, NODE + 1, NODE + 2,
                                 UINT64_C(0x0300000000000100)}; /* the last: h1's own */
static const uint64_t systems[] = {SYS, SYS + 1, SYS + 2, SYS + 3};

/* Systems of others, and one with which two ids would be one number. */
static void lie(struct fab_report *report, bool own, uint64_t *seed)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4"};
    for (unsigned i = 0; i < 5; i++) {
        uint64_t node = own ? nodes[3] : nodes[liar_below(seed, 4)], system = systems[liar_below(seed, 4)];
        if (liar_below(seed, 3) == 0)
            system ^= node * ODD ^ nodes[liar_below(seed, 3)] * ODD;
        if (liar_below(seed, 4) != 0)
            card(report, names[i], node, system);
    }
}

static uint64_t said(const struct fab_joined *joined, uint32_t port, enum fab_fact kind)
{
    const char *text = world_text(joined, port, kind);
    return text == NULL ? 0 : strtoull(text, NULL, 16);
}

/* Is the device of this host published with that, one at all (host NULL)? Of ids those that go by the node
 * GUID are asked alone, where there are any. */
static bool is_published(const struct fab_joined *joined, enum fab_fact kind, uint64_t value, uint64_t node,
                         const char *name)
{
    const struct fab_inventory *inv = &joined->inv;
    for (unsigned made_up = 0; made_up < 2; made_up++) {
        bool any = false, its = false;
        for (uint32_t p = 0; p < inv->n_ports; p++) {
            const struct fab_node *of = &inv->nodes[inv->ports[p].node];
            bool fits = made_up == 0 && of->guid == (kind == FAB_FACT_NODE_GUID ? value : node) &&
                        (kind == FAB_FACT_NODE_GUID || of->system_guid == value);
            if (made_up == 1 && kind == FAB_FACT_SYSTEM_GUID && FAB_GUID_IS_MADE_UP(of->guid))
                fits = said(joined, p, FAB_FACT_NODE_GUID) == node && said(joined, p, kind) == value &&
                       (world_detail(joined, p, FAB_FACT_NODE_GUID)->flags & FAB_DETAIL_OUTRANKED) == 0;
            any = any || fits;
            its = its || (fits && name != NULL && strcmp(fab_str(inv, of->host), name) == 0);
        }
        if (any)
            return name == NULL || its;
    }
    return false;
}

static unsigned compare(const struct fab_joined *joined)
{
    struct prior_owner past;
    unsigned found = 0;
    prior_owner_open(&past, published);
    for (unsigned n = 0; n < 4; n++)
        for (unsigned s = 0; s < 20; s++) {
            enum fab_fact kind = s == 0 ? FAB_FACT_NODE_GUID : FAB_FACT_SYSTEM_GUID;
            uint64_t node = s == 0 ? 0 : nodes[n], value = s == 0 ? nodes[n] : systems[s % 4];
            if (s >= 4)
                value ^= node * ODD ^ nodes[s / 4 - 1] * ODD;
            const char *name = prior_owner_of(&past, kind, value, node);
            found += name != NULL;
            assert_int_equal(is_published(joined, kind, value, node, name), name != NULL);
        }
    prior_owner_close(&past);
    return found;
}

/* h1 has something of its own published, then the others come, then it says what it likes. */
TEST(test_nobody_loses_a_guid)
{
    uint64_t seed = 7;
    unsigned found = 0;
    for (unsigned round = 0; round < 1500; round++) {
        struct hosts h = {.n = 0};
        uint64_t first = seed;
        served_swap(published, NULL);
        for (unsigned step = 0; step < 5; step++) {
            uint64_t *dice = step == 1 ? &first : &seed; /* h1 says once more what it said */
            lie(host(&h, "h1"), step < 2, dice);
            if (step > 0) {
                card(host(&h, "h5"), "mlx5_0", nodes[0], systems[0]);
                struct fab_report *two = host(&h, "h6");
                card(two, "u0", nodes[1], systems[1]);
                card(two, "u1", nodes[1], systems[2]);
                card(host(&h, "h7"), "mlx5_0", nodes[2], systems[round % 2 == 0 ? 3 : 0]);
            }
            join(&h);
            if (step > 0) {
                check_keeps(&h, "h5", "mlx5_0", nodes[0], round);
                check_keeps(&h, "h6", "u0", 0, round);
                check_keeps(&h, "h6", "u1", 0, round);
                check_keeps(&h, "h7", "mlx5_0", nodes[2], round);
            }
            publish(&h);
            found += compare(&h.joined);
            end(&h);
        }
    }
    served_swap(published, NULL);
    assert_true(found > 10000);
}

TEST_GROUP(serve, stop)
