/* test_numbers.c - planes keep their numbers over splits, joins, restarts and unreadable snapshots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/build.h"
#include "test/fabrics/fabrics.h"

static struct config config;

static int setup(void **state)
{
    (void)state;
    config_init(&config);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    config_destroy(&config);
    return 0;
}

/* Two leaves with 4 hosts each and one spine: pulling a leaf's only cable makes two planes. */
static void make(struct fab_inventory *inv)
{
    fab_inventory_init(inv);
    assert_int_equal(fabric_fattree2(inv, 3, 1, 4, 1), PMIXFAB_OK);
}

static void build(const struct fab_inventory *inv, const struct store_plane *known, uint32_t n,
                  struct built *out)
{
    struct fab_err err = {""};
    const struct fab_joined joined = {.inv = *inv}; /* borrowed, and nothing is said of its ports */
    assert_int_equal(build_planes(&joined, &config, known, n, out, &err), PMIXFAB_OK);
}

/* What a store would know after publishing this. */
static struct store_plane known_of(const struct built_plane *plane, bool retired)
{
    struct store_plane known = {
        .index = plane->index, .retired = retired, .snapshot = plane->bytes, .size = plane->size};
    strcpy(known.name, plane->name);
    return known;
}

static void first_numbers_by_size(void **state)
{
    struct fab_inventory inv;
    struct built built;
    (void)state;
    make(&inv);
    assert_int_equal(fabric_unlink(&inv, "leaf3", 5), PMIXFAB_OK);
    build(&inv, NULL, 0, &built);
    assert_int_equal(built.n, 2);
    assert_int_equal(built.planes[0].index, 0);
    assert_string_equal(built.planes[0].name, "ib0");
    assert_int_equal(built.planes[1].index, 1);
    assert_string_equal(built.planes[1].name, "ib1");
    assert_true(built.planes[0].is_new && built.planes[1].is_new);
    built_destroy(&built);
    fab_inventory_destroy(&inv);
}

static void split_and_join(void **state)
{
    struct fab_inventory whole, cut;
    struct built before, split, joined, again;
    (void)state;
    make(&whole);
    make(&cut);
    assert_int_equal(fabric_unlink(&cut, "leaf3", 5), PMIXFAB_OK);

    build(&whole, NULL, 0, &before);
    assert_int_equal(before.n, 1);
    struct store_plane one = known_of(&before.planes[0], false);

    build(&cut, &one, 1, &split);
    assert_int_equal(split.n, 2);
    assert_int_equal(split.planes[0].index, 0); /* the larger part keeps the number */
    assert_false(split.planes[0].is_new);
    assert_int_equal(split.planes[1].index, 1);
    assert_true(split.planes[1].is_new);

    struct store_plane both[] = {known_of(&split.planes[0], false), known_of(&split.planes[1], false)};
    build(&whole, both, 2, &joined);
    assert_int_equal(joined.n, 1);
    assert_int_equal(joined.planes[0].index, 0);

    /* The cut-off part retired; cut off again it finds its number. */
    struct store_plane later[] = {known_of(&joined.planes[0], false), known_of(&split.planes[1], true)};
    build(&cut, later, 2, &again);
    assert_int_equal(again.planes[0].index, 0);
    assert_int_equal(again.planes[1].index, 1);
    assert_false(again.planes[1].is_new);

    built_destroy(&before);
    built_destroy(&split);
    built_destroy(&joined);
    built_destroy(&again);
    fab_inventory_destroy(&whole);
    fab_inventory_destroy(&cut);
}

static void numbers_of_strangers_stay_taken(void **state)
{
    struct fab_inventory inv;
    struct built built, other;
    (void)state;
    make(&inv);
    build(&inv, NULL, 0, &built);
    /* Known under 7, of which nothing is left, and unreadable as it is retired. */
    struct store_plane gone = {.index = 7, .retired = true};
    strcpy(gone.name, "ib7");
    build(&inv, &gone, 1, &other);
    assert_int_equal(other.planes[0].index, 8);
    assert_true(other.planes[0].is_new);
    built_destroy(&built);
    built_destroy(&other);
    fab_inventory_destroy(&inv);
}

static void an_unreadable_snapshot_keeps_its_number(void **state)
{
    struct fab_inventory inv;
    struct built built;
    struct store_plane known = {.index = 4, .retired = false}; /* served until now, of another format */
    (void)state;
    strcpy(known.name, "rail-a");
    make(&inv);
    build(&inv, &known, 1, &built);
    assert_int_equal(built.planes[0].index, 4);
    assert_string_equal(built.planes[0].name, "rail-a");
    built_destroy(&built);
    fab_inventory_destroy(&inv);
}

static void most_shared_members_win(void **state)
{
    struct fab_inventory whole, cut;
    struct built split, swapped;
    (void)state;
    make(&whole);
    make(&cut);
    assert_int_equal(fabric_unlink(&cut, "leaf3", 5), PMIXFAB_OK);
    build(&cut, NULL, 0, &split);
    /* The known numbers the other way round: the small part is 0. */
    struct store_plane known[] = {known_of(&split.planes[1], false), known_of(&split.planes[0], false)};
    known[0].index = 0;
    known[1].index = 1;
    build(&cut, known, 2, &swapped);
    assert_int_equal(swapped.planes[0].index, 1);
    assert_int_equal(swapped.planes[1].index, 0);
    built_destroy(&swapped);
    /* Joined again: of the two numbers, that of the larger part. */
    build(&whole, known, 2, &swapped);
    assert_int_equal(swapped.planes[0].index, 1);
    built_destroy(&swapped);
    built_destroy(&split);
    fab_inventory_destroy(&whole);
    fab_inventory_destroy(&cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_numbers_by_size),
        cmocka_unit_test(split_and_join),
        cmocka_unit_test(numbers_of_strangers_stay_taken),
        cmocka_unit_test(an_unreadable_snapshot_keeps_its_number),
        cmocka_unit_test(most_shared_members_win),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
