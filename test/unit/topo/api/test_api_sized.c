/* Programs that were built with an earlier or a later pmixfab.h: their structs are of another size than ours.
 */
#include "test/unit/snapshot_world.h"

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
