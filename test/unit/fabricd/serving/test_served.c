/* What is served: sets are counted, and two daemons in one process do not meet. */
#include "test/unit/served_small.h"
#include "test/unit/test.h"

static struct served *fresh(void)
{
    struct served *served = served_new();
    assert_non_null(served);
    return served;
}

TEST(nothing_at_the_start)
{
    struct served *served = fresh();
    assert_null(served_get(served));
    assert_false(served_is_stale(served));
    served_free(served);
    served_free(NULL);
}

TEST(two_do_not_meet)
{
    struct served *one = fresh(), *other = fresh();
    assert_true(small_serve(one));
    assert_null(served_get(other));
    served_set_stale(one, true);
    assert_true(served_is_stale(one));
    assert_false(served_is_stale(other));
    struct served_set *empty = served_set_new(NULL, 0, 3, 4);
    assert_non_null(empty);
    served_swap(other, empty);
    struct served_set *first = served_get(one), *second = served_get(other);
    assert_int_equal(first->generation, 7);
    assert_int_equal(second->generation, 3);
    served_set_put(second);
    served_free(other);
    assert_int_equal(first->n, 2);
    served_free(one);
    assert_string_equal(first->planes[0]->info.name, "ib1"); /* it lives on with its reference */
    served_set_put(first);
}
