/* Planes keep their numbers over splits, joins, restarts and unreadable snapshots. */

#include "fabricd/engine/publisher.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/own_config.h"
#include "topo/snapshot/snapshot.h"

/* Two leaves with 4 hosts each and one spine: pulling a leaf's only cable makes two planes. */
static void make(struct fab_inventory *inv)
{
    fab_inventory_init(inv);
    assert_int_equal(fabric_fattree2(inv, 3, 1, 4, 1), PMIXFAB_OK);
}

static void build(const struct fab_inventory *inv, const struct store_plane *known, uint32_t n,
                  struct built *out)
{
    const struct fab_joined joined = {.inv = *inv}; /* borrowed, and nothing is said of its ports */
    must_do(compute_planes(&joined, &config, known, n, out, fresh_err()));
}

/* What a store would know after publishing this. */
static struct store_plane known_of(const struct built_plane *plane, bool retired)
{
    struct store_plane known = {
        .index = plane->index, .retired = retired, .snapshot = plane->bytes, .size = plane->size};
    strcpy(known.name, plane->name);
    return known;
}

TEST(split_and_join)
{
    struct fab_inventory whole, cut;
    SCOPED(built) before, split, joined, again;
    make(&whole);
    make(&cut);
    assert_int_equal(fabric_unlink(&cut, "leaf3", 5), PMIXFAB_OK);

    build(&whole, NULL, 0, &before);
    assert_int_equal(before.n, 1);
    struct store_plane one = known_of(&before.planes[0], false);

    build(&cut, &one, 1, &split);
    assert_int_equal(split.n, 2);
    assert_int_equal(split.planes[0].index, 1); /* the larger part keeps the number */
    assert_false(split.planes[0].is_new);
    assert_int_equal(split.planes[1].index, 2);
    assert_true(split.planes[1].is_new);

    struct store_plane both[] = {known_of(&split.planes[0], false), known_of(&split.planes[1], false)};
    build(&whole, both, 2, &joined);
    assert_int_equal(joined.n, 1);
    assert_int_equal(joined.planes[0].index, 1);

    /* The cut-off part retired; cut off again it finds its number. */
    struct store_plane later[] = {known_of(&joined.planes[0], false), known_of(&split.planes[1], true)};
    build(&cut, later, 2, &again);
    assert_int_equal(again.planes[0].index, 1);
    assert_int_equal(again.planes[1].index, 2);
    assert_false(again.planes[1].is_new);

    fab_inventory_destroy(&whole);
    fab_inventory_destroy(&cut);
}

TEST(an_unreadable_snapshot_keeps_its_number)
{
    SCOPED(fab_inventory) inv;
    SCOPED(built) built;
    struct store_plane known = {.index = 4, .retired = false}; /* served until now, of another format */
    strcpy(known.name, "rail-a");
    make(&inv);
    build(&inv, &known, 1, &built);
    assert_int_equal(built.planes[0].index, 4);
    assert_string_equal(built.planes[0].name, "rail-a");
}

TEST(most_shared_members_win)
{
    SCOPED(fab_inventory) whole, cut;
    SCOPED(built) split, swapped;
    make(&whole);
    make(&cut);
    assert_int_equal(fabric_unlink(&cut, "leaf3", 5), PMIXFAB_OK);
    build(&cut, NULL, 0, &split);
    /* The known numbers the other way round: the small part is 1. */
    struct store_plane known[] = {known_of(&split.planes[1], false), known_of(&split.planes[0], false)};
    known[0].index = 1;
    known[1].index = 2;
    build(&cut, known, 2, &swapped);
    assert_int_equal(swapped.planes[0].index, 2);
    assert_int_equal(swapped.planes[1].index, 1);
    built_destroy(&swapped);
    /* Joined again: of the two numbers, that of the larger part. */
    build(&whole, known, 2, &swapped);
    assert_int_equal(swapped.planes[0].index, 2);
}

/* ---- planes that go by their names ---- */

/* A node of one port that only its host knows, without a cable or on a switch that is made up. */
static void add_host(struct fab_inventory *inv, const char *host, uint64_t guid, uint8_t subnet, uint32_t sw,
                     uint8_t sw_port)
{
    struct fab_node node = {.guid = guid, .kind = FAB_HCA, .num_ports = 1};
    struct fab_port port = {.guid = guid + 1, .num = 1, .state = FAB_PORT_ACTIVE, .subnet = subnet};
    uint32_t own, other;
    node.host = fab_inventory_string(inv, host, strlen(host));
    node.name = fab_inventory_string(inv, "eth0", 4);
    assert_int_equal(fab_inventory_add_node(inv, &node, &port.node), PMIXFAB_OK);
    assert_int_equal(fab_inventory_add_port(inv, &port, &own), PMIXFAB_OK);
    if (sw == FAB_NONE)
        return;
    port = (struct fab_port){.node = sw, .num = sw_port, .state = FAB_PORT_ACTIVE, .subnet = subnet};
    assert_int_equal(fab_inventory_add_port(inv, &port, &other), PMIXFAB_OK);
    assert_int_equal(fab_inventory_link(inv, own, other), PMIXFAB_OK);
}

/* `hosts` hosts in the plane "storage", on `switches` switches that do not reach each other, and `loose`
 * ports without a cable; beside an InfiniBand fabric where wanted. */
static void make_named(struct fab_inventory *inv, bool fabric, unsigned hosts, unsigned switches,
                       unsigned loose)
{
    char host[32];
    uint32_t sw[4];
    fab_inventory_init(inv);
    if (fabric)
        assert_int_equal(fabric_fattree2(inv, 3, 1, 4, 1), PMIXFAB_OK);
    else
        inv->n_subnets = 1;
    inv->finished = false; /* more is added, and it is finished again */
    inv->subnets[inv->n_subnets].prefix = fab_ethernet_prefix("storage");
    inv->subnets[inv->n_subnets + 1].prefix = FAB_UNATTACHED;
    uint8_t ethernet = (uint8_t)inv->n_subnets, unattached = (uint8_t)(inv->n_subnets + 1);
    inv->n_subnets += 2;
    for (unsigned i = 0; i < switches; i++) {
        const struct fab_node node = {
            .guid = FAB_ETHERNET_GUID + 1 + i, .kind = FAB_SWITCH, .num_ports = 200};
        assert_int_equal(fab_inventory_add_node(inv, &node, &sw[i]), PMIXFAB_OK);
    }
    for (unsigned i = 0; i < hosts; i++) {
        snprintf(host, sizeof(host), "host%u", i);
        /* the first switch has the most */
        unsigned on = i < switches ? i : 0;
        add_host(inv, host, FAB_ETHERNET_GUID + 0x1000 + 16 * i, ethernet, sw[on], (uint8_t)(1 + i));
    }
    for (unsigned i = 0; i < loose; i++) {
        snprintf(host, sizeof(host), "loose%u", i);
        add_host(inv, host, 0x900000 + 16 * i, unattached, FAB_NONE, 0);
    }
    must_do(fab_inventory_finish(inv, fresh_err()));
}

static const struct built_plane *named(const struct built *built, const char *name)
{
    for (uint32_t i = 0; i < built->n; i++)
        if (strcmp(built->planes[i].name, name) == 0)
            return &built->planes[i];
    fail_msg("there is no plane %s", name);
    return NULL;
}

static struct pmixfab_plane about(const struct built_plane *plane, char identifier[80])
{
    OWNED(pmixfab_close) struct pmixfab *fab;
    struct pmixfab_plane info;
    assert_int_equal(fab_snapshot_borrow(plane->bytes, plane->size, &fab, NULL), PMIXFAB_OK);
    assert_int_equal(pmixfab_plane(fab, &info), PMIXFAB_OK);
    snprintf(identifier, 80, "%s", info.identifier);
    return info;
}

FIXTURE(setup_storage)
{
    return config_append(&config.ethernet, "storage=10.91.0.0/16");
}

FIXTURE(teardown_storage)
{
    config_clear(&config.ethernet);
    return 0;
}

TEST_WITH(names_of_the_configuration, setup_storage, teardown_storage)
{
    SCOPED(fab_inventory) inv;
    SCOPED(built) built;
    char identifier[80];
    make_named(&inv, true, 20, 1, 30);
    build(&inv, NULL, 0, &built);
    assert_int_equal(built.n, 3);
    assert_int_equal(named(&built, "ib0")->index, 1);
    assert_int_equal(named(&built, "storage")->index + named(&built, "unattached")->index, 2 + 3);
    assert_int_equal(about(named(&built, "ib0"), identifier).is_default, 0);
    assert_string_equal(identifier, "InfiniBand-fe80000000000000");
    /* Most devices, but not of those that reach nobody. */
    assert_int_equal(about(named(&built, "storage"), identifier).is_default, 1);
    assert_string_equal(identifier, "Ethernet-10.91.0.0/16");
    struct pmixfab_plane loose = about(named(&built, "unattached"), identifier);
    assert_string_equal(identifier, "unattached");
    assert_int_equal(loose.is_default, 0);
    assert_int_equal(loose.n_devices, 30);
    built_destroy(&built);
    fab_inventory_destroy(&inv);

    make_named(&inv, false, 0, 0, 3); /* the only one there is */
    build(&inv, NULL, 0, &built);
    assert_int_equal(built.n, 1);
    assert_int_equal(named(&built, "unattached")->index, 1);
    assert_int_equal(about(named(&built, "unattached"), identifier).is_default, 1);
}

/* Numbers of such planes: gone for a while, of an unreadable snapshot, and beside planes that would vote. */
TEST_WITH(named_planes_are_found_by_name, setup_storage, teardown_storage)
{
    SCOPED(fab_inventory) inv, moved;
    SCOPED(built) built, again;
    struct store_plane known[4];
    make_named(&inv, true, 5, 1, 3);
    build(&inv, NULL, 0, &built);
    const struct built_plane *ib = named(&built, "ib0"), *storage = named(&built, "storage"),
                             *loose = named(&built, "unattached");
    known[0] = known_of(ib, false);
    known[1] = known_of(storage, true);
    known[2] = known_of(loose, false);
    known[1].index = 40;
    known[2].index = 41;
    known[2].snapshot = NULL; /* cannot be read any more */
    build(&inv, known, 3, &again);
    assert_int_equal(named(&again, "ib0")->index, ib->index);
    assert_int_equal(named(&again, "storage")->index, 40);
    assert_int_equal(named(&again, "unattached")->index, 41);
    assert_false(named(&again, "storage")->is_new || named(&again, "unattached")->is_new);
    built_destroy(&again);

    /* The loose ports have their cables today: they are members of the unattached plane, which does not go
     * with them; and of two of a name the active one is meant. */
    known[2] = known_of(loose, false);
    known[2].index = 41;
    known[3] = known_of(storage, false);
    known[3].index = 42;
    make_named(&moved, false, 5, 1, 0);
    build(&moved, known, 4, &again);
    assert_int_equal(again.n, 1);
    assert_int_equal(named(&again, "storage")->index, 42);
    built_destroy(&again);
    fab_inventory_destroy(&moved);

    /* Known by name only where it has that name: what an InfiniBand plane had stays its own. */
    known[0].index = 7;
    strcpy(known[0].name, "ib7");
    make_named(&moved, true, 0, 0, 0);
    build(&moved, known, 3, &again);
    assert_int_equal(again.n, 1);
    assert_string_equal(again.planes[0].name, "ib7");
}

TEST_WITH(parts_of_a_named_plane, setup_storage, teardown_storage)
{
    SCOPED(fab_inventory) inv;
    SCOPED(built) built, again;
    char identifier[80];
    make_named(&inv, false, 9, 3, 0);
    build(&inv, NULL, 0, &built);
    assert_int_equal(built.n, 3);
    assert_int_equal(about(named(&built, "storage"), identifier).n_devices, 7);
    about(named(&built, "storage.2"), identifier);
    assert_string_equal(identifier, "Ethernet-10.91.0.0/16");
    struct store_plane known[] = {known_of(named(&built, "storage.3"), false),
                                  known_of(named(&built, "storage"), false),
                                  known_of(named(&built, "storage.2"), false)};
    build(&inv, known, 3, &again);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(named(&again, known[i].name)->index, known[i].index);
}

TEST_GROUP(own_config_setup, own_config_teardown)
