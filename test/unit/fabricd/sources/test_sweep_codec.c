/* What the daemon and its sweeping child tell each other comes back, whole or not at all. */

#include "fabricd/sources/sweep.h"
#include "test/fabrics/fabrics.h"
#include "test/unit/test.h"
#include "topo/model/inventory_wire.h"

/* Bytes of which something is missing, or too much, from memory of its own, so that a reader past it shows */
static void refuses_parts_of(const void *bytes, size_t size, int (*decode)(void *bytes, size_t size))
{
    for (size_t cut = 0; cut < size; cut += 1 + cut / 7) {
        OWNED(free) void *part = malloc(cut + 1);
        memcpy(part, bytes, cut);
        assert_int_not_equal(decode(part, cut), PMIXFAB_OK);
    }
    OWNED(free) char *more = calloc(1, size + 1);
    memcpy(more, bytes, size);
    assert_int_not_equal(decode(more, size + 1), PMIXFAB_OK);
    assert_int_equal(decode(more, size), PMIXFAB_OK);
}

static struct sweep_parts two_parts(void)
{
    struct sweep_parts parts = {.n = 2};
    fab_inventory_init(&parts.inv[0]);
    fab_inventory_init(&parts.inv[1]);
    assert_int_equal(fabric_parse("fattree2:4,2,4", &parts.inv[0]), PMIXFAB_OK);
    assert_int_equal(fabric_parse("torus:3,3:1", &parts.inv[1]), PMIXFAB_OK);
    for (uint32_t i = 0; i < parts.inv[1].n_nodes; i++) /* generated ones have the same */
        parts.inv[1].nodes[i].guid |= 1ull << 60;
    for (uint32_t i = 0; i < parts.inv[1].n_ports; i++)
        if (parts.inv[1].ports[i].guid != 0)
            parts.inv[1].ports[i].guid |= 1ull << 60;
    return parts;
}

static int decode_order(void *bytes, size_t size)
{
    SCOPED_BY(dirty_switches_free) struct dirty_switches got;
    SCOPED(sweep_parts) back;
    int rc = sweep_order_decode(bytes, size, &got, &back, fresh_err());
    return rc;
}

TEST(an_order_comes_back)
{
    struct sweep_parts parts = two_parts(), back;
    struct dirty_switches dirty = {.probes = 5}, got;
    void *wires[2], *order;
    size_t sizes[2], size;
    for (uint64_t guid = 1; guid < 40; guid++)
        must_do(dirty_switches_add(&dirty, guid % 20, fresh_err()));
    assert_int_equal(dirty.n, 20);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(fab_wire_encode(&parts.inv[i], &wires[i], &sizes[i]), PMIXFAB_OK);
    for (unsigned n = 1; n <= 2; n++) {
        char *both = malloc(sizes[0] + sizes[1]);
        memcpy(both, wires[0], sizes[0]);
        memcpy(both + sizes[0], wires[1], sizes[1]);
        const struct switch_sweep again = {
            .dirty = &dirty, .parts = both, .size = n == 1 ? sizes[0] : sizes[0] + sizes[1]};
        assert_int_equal(sweep_order_encode(&again, &order, &size), PMIXFAB_OK);
        must_do(sweep_order_decode(order, size, &got, &back, fresh_err()));
        assert_int_equal(got.n, 20);
        assert_int_equal(got.probes, 5);
        assert_memory_equal(got.guids, dirty.guids, 20 * sizeof(uint64_t));
        assert_int_equal(back.n, n);
        for (unsigned i = 0; i < n; i++)
            assert_true(fab_inventory_equal(&parts.inv[i], &back.inv[i]));
        sweep_parts_destroy(&back);
        dirty_switches_free(&got);
        refuses_parts_of(order, size, decode_order);
        memset((char *)order + 4, 0xff, 4); /* so many changes */
        assert_int_not_equal(decode_order(order, size), PMIXFAB_OK);
        free(order);
        free(both);
    }
    free(wires[0]);
    free(wires[1]);
    dirty_switches_free(&dirty);
    sweep_parts_destroy(&parts);
}

static int decode_answer(void *bytes, size_t size)
{
    struct sweep_answer answer;
    int rc = sweep_answer_decode(bytes, &size, &answer, fresh_err());
    fab_inventory_destroy(&answer.inv);
    return rc;
}

/* What the daemon keeps of it is what it gives to the next sweep of a part. */
TEST(an_answer_comes_back)
{
    for (unsigned n = 1; n <= 2; n++) {
        SCOPED(sweep_parts) parts = two_parts(), back;
        struct sweep_answer said = {.whole = n == 1, .why = {"so it was"}}, heard;
        struct fab_err err;
        OWNED(free) void *bytes, *copy;
        size_t size;
        fab_inventory_init(&said.inv);
        if (n == 1)
            fab_inventory_destroy(&parts.inv[1]);
        parts.n = n;
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(fab_inventory_merge(&said.inv, &parts.inv[i], &err), PMIXFAB_OK);
        assert_int_equal(fab_inventory_finish(&said.inv, &err), PMIXFAB_OK);
        assert_int_equal(sweep_answer_encode(&said, &parts, &bytes, &size), PMIXFAB_OK);
        assert_int_equal(sweep_answer_total(bytes, 7), 0);
        assert_int_equal(sweep_answer_total(bytes, 8), size);
        assert_true(sweep_answer_total("what else may come", 16) == SIZE_MAX);
        copy = malloc(size);
        memcpy(copy, bytes, size);
        refuses_parts_of(bytes, size, decode_answer);
        for (size_t at = 0; at < 24; at++) { /* of its head */
            ((unsigned char *)copy)[at] ^= 0x81;
            void *part = malloc(size);
            memcpy(part, copy, size);
            int rc = decode_answer(part, size);
            assert_true(rc != PMIXFAB_OK || at >= 20); /* a flag is what it is */
            free(part);
            ((unsigned char *)copy)[at] ^= 0x81;
        }
        assert_int_equal(sweep_answer_decode(bytes, &size, &heard, &err), PMIXFAB_OK);
        assert_true(fab_inventory_equal(&said.inv, &heard.inv));
        assert_int_equal(heard.whole, said.whole);
        assert_string_equal(heard.why.text, "so it was");
        assert_int_equal(sweep_parts_decode(bytes, size, &back, &err), PMIXFAB_OK);
        assert_int_equal(back.n, n);
        for (unsigned i = 0; i < n; i++)
            assert_true(fab_inventory_equal(&parts.inv[i], &back.inv[i]));
        fab_inventory_destroy(&said.inv);
        fab_inventory_destroy(&heard.inv);
    }
}

/* As many nodes as a fabric may have, of all probes together, and one more. */
TEST(a_fabric_has_a_bound)
{
    struct sweep_parts parts = {.n = 2};
    struct fab_err err;
    parts.inv[0].n_nodes = SWEEP_NODES_MAX - 5;
    parts.inv[1].n_nodes = 5;
    assert_int_equal(sweep_parts_check(&parts, &err), PMIXFAB_OK);
    parts.inv[1].n_nodes = 6;
    assert_int_equal(sweep_parts_check(&parts, &err), PMIXFAB_ERR_RANGE);
    assert_non_null(strstr(err.text, "250001 HCAs and switches"));
    parts.inv[0].n_nodes = parts.inv[1].n_nodes = UINT32_MAX;
    assert_int_equal(sweep_parts_check(&parts, &err), PMIXFAB_ERR_RANGE);
}
