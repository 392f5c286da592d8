/* Null pointers and impossible numbers: every public call that needs no PMIx says no. And programs that were
 * built with an earlier or a later pmixfab.h: their structs are of another size than ours. */
#include "test/unit/snapshot_world.h"

TEST(test_null_and_out_of_range)
{
    WORLD(world, "fattree2:2,2,2");
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    struct pmixfab *out = fab;
    struct pmixfab_plane plane;
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    struct pmixfab_link cable;
    const char *name;
    char *text, **names, buf[32];
    const uint32_t *coords;
    const void *bytes;
    uint16_t cells[16], *own;
    uint32_t a, b;
    size_t n;

    assert_int_equal(pmixfab_plane(fab, &plane), 0);
#define REFUSED(call) assert_int_equal(call, PMIXFAB_ERR_INVAL)
    REFUSED(pmixfab_open_rundir("x", "ib0", NULL));
    REFUSED(pmixfab_open_rundir("", "ib0", &out));
    assert_null(out);
    REFUSED(pmixfab_open_file("x", NULL));
    REFUSED(pmixfab_open_file(NULL, &out));
    REFUSED(pmixfab_open_file("", &out));
    REFUSED(pmixfab_open_memory("x", 1, NULL));
    REFUSED(pmixfab_open_memory(NULL, 0, &out));
    REFUSED(pmixfab_open_memory(NULL, 99, &out));
    assert_int_equal(pmixfab_open_memory("x", 0, &out), PMIXFAB_ERR_TRUNCATED);
    REFUSED(fab_snapshot_borrow(NULL, 0, &out, NULL));
    REFUSED(fab_snapshot_borrow(world.layers[0].bytes, world.layers[0].size, NULL, NULL));
    REFUSED(pmixfab_list_rundir("x", NULL, &n));
    REFUSED(pmixfab_list_rundir("x", &names, NULL));
    REFUSED(pmixfab_list_rundir("", &names, &n));
    pmixfab_list_free(NULL, 7);
    pmixfab_close(NULL);
    REFUSED(pmixfab_plane(NULL, &plane));
    REFUSED(pmixfab_plane(fab, NULL));
    REFUSED(pmixfab_cost(NULL, 0, 0, cells));
    REFUSED(pmixfab_cost(fab, 0, 0, NULL));
    REFUSED(pmixfab_cost(fab, 4, 0, cells));
    REFUSED(pmixfab_cost(fab, 0, UINT32_MAX, cells));
    REFUSED(pmixfab_row(NULL, 0, cells, 4));
    REFUSED(pmixfab_row(fab, 0, NULL, 4));
    REFUSED(pmixfab_row(fab, 4, cells, 4));
    REFUSED(pmixfab_row(fab, 0, cells, 3));
    REFUSED(pmixfab_row(fab, 0, cells, 5));
    REFUSED(pmixfab_matrix(NULL, cells, 16, 1));
    REFUSED(pmixfab_matrix(fab, NULL, 16, 1));
    REFUSED(pmixfab_matrix(fab, cells, 15, 1));
    REFUSED(pmixfab_matrix(fab, cells, 0, 1));
    REFUSED(pmixfab_matrix_alloc(NULL, 1, &own));
    REFUSED(pmixfab_matrix_alloc(fab, 1, NULL));
    assert_int_equal(pmixfab_matrix(fab, cells, 16, UINT32_MAX), 0); /* more threads than there can be */
    pmixfab_matrix_free(NULL, 4);
    pmixfab_matrix_free(NULL, UINT32_MAX);
    REFUSED(pmixfab_device(NULL, 0, &device));
    REFUSED(pmixfab_device(fab, 0, NULL));
    REFUSED(pmixfab_device(fab, 4, &device));
    REFUSED(pmixfab_device(fab, UINT32_MAX, &device));
    REFUSED(pmixfab_find(NULL, "x", &a));
    REFUSED(pmixfab_find(fab, NULL, &a));
    REFUSED(pmixfab_find(fab, "node0001", NULL));
    REFUSED(pmixfab_host(NULL, 0, &name, &a, &b));
    REFUSED(pmixfab_host(fab, 0, NULL, &a, &b));
    REFUSED(pmixfab_host(fab, 0, &name, NULL, &b));
    REFUSED(pmixfab_host(fab, 0, &name, &a, NULL));
    REFUSED(pmixfab_host(fab, 4, &name, &a, &b));
    REFUSED(pmixfab_coords(NULL, 0, PMIXFAB_LOGICAL, &coords, &a));
    REFUSED(pmixfab_coords(fab, 0, PMIXFAB_LOGICAL, NULL, &a));
    REFUSED(pmixfab_coords(fab, 0, PMIXFAB_LOGICAL, &coords, NULL));
    REFUSED(pmixfab_coords(fab, 4, PMIXFAB_LOGICAL, &coords, &a));
    REFUSED(pmixfab_coords(fab, 0, (enum pmixfab_view)0, &coords, &a));
    REFUSED(pmixfab_coords(fab, 0, (enum pmixfab_view)3, &coords, &a));
    REFUSED(pmixfab_switch(NULL, 0, &sw));
    REFUSED(pmixfab_switch(fab, 0, NULL));
    REFUSED(pmixfab_switch(fab, plane.n_switches, &sw));
    REFUSED(pmixfab_link(NULL, 0, &cable));
    REFUSED(pmixfab_link(fab, 0, NULL));
    REFUSED(pmixfab_link(fab, plane.n_links, &cable));
    REFUSED(pmixfab_group(NULL, 0, &coords, &a));
    REFUSED(pmixfab_group(fab, 0, NULL, &a));
    REFUSED(pmixfab_group(fab, 0, &coords, NULL));
    REFUSED(pmixfab_group(fab, plane.n_groups, &coords, &a));
    REFUSED(pmixfab_group_switch(NULL, 0, &a));
    REFUSED(pmixfab_group_switch(fab, 0, NULL));
    REFUSED(pmixfab_group_switch(fab, plane.n_groups, &a));
    REFUSED(pmixfab_groups_string(NULL, &text));
    REFUSED(pmixfab_groups_string(fab, NULL));
    REFUSED(pmixfab_shape_string(NULL, PMIXFAB_LOGICAL, buf, sizeof(buf)));
    REFUSED(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, NULL, sizeof(buf)));
    REFUSED(pmixfab_shape_string(fab, (enum pmixfab_view)9, buf, sizeof(buf)));
    REFUSED(pmixfab_shape_string(fab, PMIXFAB_LOGICAL, buf, 0));
    REFUSED(pmixfab_bytes(NULL, &bytes, &n));
    REFUSED(pmixfab_bytes(fab, NULL, &n));
    REFUSED(pmixfab_bytes(fab, &bytes, NULL));
}

#define MORE 40 /* bytes that a later version has */

/* `made`, in the bytes of which no hole is until the end of `last`, is what is right; `call` fills `out`. */
#define SIZED(made, last, call)                                                                              \
    do {                                                                                                     \
        const size_t whole = offsetof(__typeof__(made), last) + sizeof((made).last);                         \
        unsigned char out[sizeof(made) + MORE + 1];                                                          \
        for (size_t size = 0; size <= sizeof(made) + MORE; size += size < sizeof(made) ? 4 : MORE) {         \
            memset(out, 0xbe, sizeof(out));                                                                  \
            assert_int_equal(call, size == 0 ? PMIXFAB_ERR_INVAL : 0);                                       \
            assert_memory_equal(out, &(made), size < whole ? size : whole);                                  \
            for (size_t i = size < sizeof(made) ? size : sizeof(made); i < sizeof(out); i++)                 \
                assert_int_equal(out[i], i < size ? 0 : 0xbe);                                               \
        }                                                                                                    \
    } while (0)

TEST(test_each_struct)
{
    WORLD(world, "fattree2:2,2,2");
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    struct pmixfab_plane plane;
    struct pmixfab_device device;
    struct pmixfab_switch sw;
    struct pmixfab_link cable;

    assert_int_equal(pmixfab_plane(fab, &plane), 0);
    SIZED(plane, fastest_mbps, pmixfab_plane_sized(fab, (void *)out, size));
    assert_int_equal(pmixfab_device(fab, 2, &device), 0);
    SIZED(device, id, pmixfab_device_sized(fab, 2, (void *)out, size));
    assert_int_equal(pmixfab_switch(fab, 1, &sw), 0);
    SIZED(sw, reserved, pmixfab_switch_sized(fab, 1, (void *)out, size));
    assert_int_equal(pmixfab_link(fab, 1, &cable), 0);
    SIZED(cable, a.port, pmixfab_link_sized(fab, 1, (void *)out, size));
}

TEST(test_each_struct_of_an_array)
{
    WORLD(world, "fattree2:2,2,2");
    OWNED(pmixfab_close) struct pmixfab *fab = layer_open(&world.layers[0]);
    struct pmixfab_nearest ours[3];
    struct {
        struct pmixfab_nearest known;
        uint64_t later;
    } later[4];

    memset(later, 0xbe, sizeof(later));
    assert_int_equal(pmixfab_nearest(fab, 1, 5, NULL, 3, ours), 0);
    assert_int_equal(pmixfab_nearest_sized(fab, 1, 5, NULL, 3, (void *)later, sizeof(later[0])), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_memory_equal(&later[i].known, &ours[i], sizeof(ours[i]));
        assert_true(later[i].later == 0);
    }
    assert_true(later[3].later == 0xbebebebebebebebe);
    assert_int_equal(pmixfab_nearest_sized(fab, 1, 5, NULL, 3, (void *)later, 0), PMIXFAB_ERR_INVAL);
}
