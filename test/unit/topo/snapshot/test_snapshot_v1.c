/* A snapshot of version 1, written by the last program that wrote it: it says what one of today's of the same
 * fabric says. test/data/snapshot_v1.snap is world_odd(). */
#include "test/unit/snapshot_walk.h"
#include "test/unit/snapshot_world.h"

#define V1 TEST_DATA "/snapshot_v1.snap"

static void compare_planes(const struct pmixfab *old, const struct pmixfab *new)
{
    OWNED(free) char *groups_a, *groups_b;
    struct pmixfab_plane a = plane_at(old), b = plane_at(new);
    assert_int_equal(a.n_devices, 6);
    assert_int_equal(a.generation, b.generation);
    assert_int_equal(a.published, b.published);
    assert_int_equal(a.is_default, b.is_default);
    assert_string_equal(a.name, b.name);
    assert_string_equal(a.vendor, b.vendor);
    assert_string_equal(a.identifier, b.identifier);
    assert_string_equal(a.kind, b.kind);
    assert_int_equal(a.n_devices, b.n_devices);
    assert_int_equal(a.n_hosts, b.n_hosts);
    assert_int_equal(a.n_switches, b.n_switches);
    assert_int_equal(a.n_links, b.n_links);
    assert_int_equal(a.n_unnamed, b.n_unnamed);
    assert_int_equal(a.fastest_mbps, b.fastest_mbps);
    assert_memory_equal(a.shape, b.shape, sizeof(a.shape));
    assert_memory_equal(a.physical_shape, b.physical_shape, sizeof(a.physical_shape));
    assert_int_equal(pmixfab_groups_string(old, &groups_a), 0);
    assert_int_equal(pmixfab_groups_string(new, &groups_b), 0);
    assert_string_equal(groups_a, groups_b);
}

static void compare_devices(const struct pmixfab *old, const struct pmixfab *new, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct pmixfab_fact fact;
        struct pmixfab_device a = device_at(old, i), b = device_at(new, i);
        assert_string_equal(a.id, b.id);
        assert_string_equal(a.host, b.host);
        assert_string_equal(a.name, b.name);
        assert_true(a.port_guid == b.port_guid && a.mbps == b.mbps);
        assert_int_equal(a.port, b.port);
        assert_int_equal(a.switch_index, b.switch_index);
        assert_int_equal(a.switch_port, b.switch_port);
        assert_int_equal(a.state, b.state);
        assert_int_equal(a.seen, PMIXFAB_SEEN_SUBNET);
        assert_int_equal(pmixfab_fact(old, i, 0, &fact), PMIXFAB_ERR_NOTFOUND);
        assert_null(pmixfab_fact_text(old, i, "name"));
        for (uint32_t k = 0; k < n; k++) {
            uint16_t one, other;
            assert_int_equal(pmixfab_cost(old, i, k, &one), 0);
            assert_int_equal(pmixfab_cost(new, i, k, &other), 0);
            assert_int_equal(one, other);
        }
    }
}

static void compare_wiring(const struct pmixfab *old, const struct pmixfab *new)
{
    struct pmixfab_plane plane = plane_at(old);
    for (uint32_t i = 0; i < plane.n_switches; i++) {
        struct pmixfab_switch a = switch_at(old, i), b = switch_at(new, i);
        assert_string_equal(a.name, b.name);
        assert_string_equal(a.id, b.id);
        assert_int_equal(a.n_hosts, b.n_hosts);
        assert_int_equal(a.level, b.level);
        assert_int_equal(a.n_ports, b.n_ports);
        assert_true(a.missing == 0 && b.missing == 0);
    }
    for (uint32_t i = 0; i < plane.n_links; i++) {
        struct pmixfab_link a = link_at(old, i), b = link_at(new, i);
        assert_true(a.a.guid == b.a.guid && a.b.guid == b.b.guid && a.mbps == b.mbps);
        assert_int_equal(a.cost, b.cost);
    }
}

TEST(test_same_facts)
{
    SCOPED(world) world;
    OWNED(pmixfab_close) struct pmixfab *old;
    size_t size;
    OWNED(free) char *bytes = read_file(V1, &size);
    assert_int_equal(snap_head(bytes)->version, 1);
    world_odd(&world);
    OWNED(pmixfab_close) struct pmixfab *new = layer_open(&world.layers[0]);
    assert_int_equal(pmixfab_open_file(V1, &old), 0);
    compare_planes(old, new);
    compare_devices(old, new, 6);
    compare_wiring(old, new);
    walk_everything(old);
    /* a stamp leaves the version: what the store kept from then can be put in place again */
    const uint64_t content = fab_snapshot_content(bytes);
    fab_snapshot_stamp(bytes, 99, 5);
    OWNED(pmixfab_close) struct pmixfab *stamped;
    assert_int_equal(fab_snapshot_borrow(bytes, size, &stamped, NULL), 0);
    assert_int_equal(plane_at(stamped).generation, 99);
    assert_true(fab_snapshot_content(bytes) == content);
}

static void must_be_corrupt(char *bytes, size_t size)
{
    fab_snapshot_seal(bytes);
    assert_int_equal(fab_snapshot_check(bytes, size, NULL), PMIXFAB_ERR_CORRUPT);
}

/* Nothing of version 2 is believed of it, and the other way round. */
TEST(test_lies)
{
    size_t size;
    OWNED(free) char *bytes = read_file(V1, &size);
    struct snap_head *head = (struct snap_head *)bytes;
    struct snap_meta *meta = (struct snap_meta *)(bytes + sizeof(*head));
    struct snap_device *device = (struct snap_device *)(bytes + snap_table(bytes)[SNAP_DEVICES].offset);

    meta->n_places = meta->n_devices;
    must_be_corrupt(bytes, size);
    meta->n_places = 0;
    meta->n_facts = 1;
    must_be_corrupt(bytes, size);
    meta->n_facts = 0;
    device->seen = PMIXFAB_SEEN_SUBNET;
    must_be_corrupt(bytes, size);
    device->seen = 0;
    head->version = 2;
    must_be_corrupt(bytes, size);
    head->version = 1;
    fab_snapshot_seal(bytes);
    assert_int_equal(fab_snapshot_check(bytes, size, NULL), 0);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(fab_snapshot_check(bytes, cut, NULL), PMIXFAB_ERR_TRUNCATED);

    SCOPED(world) world;
    world_odd(&world);
    head = world.layers[0].bytes;
    head->version = 1;
    must_be_corrupt(world.layers[0].bytes, world.layers[0].size);
}

/* A snapshot as an older version wrote it: without what that does not know. */
static char *as_version(const char *bytes, uint32_t version, size_t *size)
{
    struct snap_entry table[SNAP_SECTIONS];
    uint64_t total;
    assert_int_equal(fab_snapshot_layout(snap_meta(bytes), version, table, &total), 0);
    char *old = must_have(total);
    memcpy(old, bytes, SNAP_TABLE);
    memcpy(old + SNAP_TABLE, table, snap_sections(version) * sizeof(*table));
    for (unsigned s = 0; s < snap_sections(version); s++)
        memcpy(old + table[s].offset, snap_section(bytes, (enum snap_section)s),
               table[s].count * table[s].element);
    struct snap_head *head = (struct snap_head *)old;
    head->version = version;
    head->size = total;
    fab_snapshot_seal(old);
    *size = total;
    return old;
}

/* Version 2 has the number of switches that are missing and does not say which; the bytes are the same else.
 */
TEST(test_version_2)
{
    SCOPED(world) world;
    size_t size, size_3;
    world_odd(&world);
    OWNED(pmixfab_close) struct pmixfab *old, *new = layer_open(&world.layers[0]);
    OWNED(free) char *bytes = as_version(world.layers[0].bytes, 2, &size);
    OWNED(free) char *bytes_3 = as_version(world.layers[0].bytes, 3, &size_3);
    struct snap_head *head = (struct snap_head *)bytes;
    struct snap_meta *meta = (struct snap_meta *)(head + 1);
    meta->n_missing = 1;
    fab_snapshot_seal(bytes);
    assert_int_equal(fab_snapshot_borrow(bytes, size, &old, NULL), 0);
    compare_wiring(old, new);
    walk_everything(old);
    struct pmixfab_switch sw = switch_at(old, 0);
    assert_int_equal(sw.missing, 0);
    struct snap_switch *first = (struct snap_switch *)(bytes_3 + snap_table(bytes_3)[SNAP_SWITCHES].offset);
    first->missing = 1;
    must_be_corrupt(bytes_3, size_3);
    ((struct snap_meta *)(bytes_3 + sizeof(*head)))->n_missing = 1;
    fab_snapshot_seal(bytes_3);
    assert_int_equal(fab_snapshot_check(bytes_3, size_3, NULL), 0);
}

/* Versions before 4 have no names of groups and no rails. */
TEST(test_version_3)
{
    SCOPED(world) world;
    size_t size;
    world_odd(&world);
    OWNED(pmixfab_close) struct pmixfab *old, *new = layer_open(&world.layers[0]);
    OWNED(free) char *bytes = as_version(world.layers[0].bytes, 3, &size);
    assert_int_equal(fab_snapshot_borrow(bytes, size, &old, NULL), 0);
    compare_planes(old, new);
    compare_wiring(old, new);
    walk_everything(old);
    assert_string_equal(pmixfab_group_name(old, 0), "");
    assert_true(strlen(pmixfab_group_name(new, 0)) > 0);
    assert_int_equal(switch_at(old, 0).rail, UINT32_MAX);
    ((struct snap_meta *)(bytes + sizeof(struct snap_head)))->n_strays = 1;
    must_be_corrupt(bytes, size);
}
