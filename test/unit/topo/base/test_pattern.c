/* Which names a list of patterns has. */
#include <string.h>

#include "test/unit/test.h"
#include "topo/base/pattern.h"

static bool has(const char *list, const char *a, const char *b)
{
    const char *const names[] = {a, NULL, b};
    return fab_pattern_has(list, names, 3);
}

TEST(one_of_the_names_matches_one_of_the_patterns)
{
    assert_true(has("mlx5_0", "mlx5_0", "leaf1"));
    assert_true(has("mlx4_*, leaf1", "mlx5_0", "leaf1"));
    assert_true(has("  mlx5_?\t", "mlx5_0", "leaf1"));
    assert_false(has("mlx5_", "mlx5_0", "leaf1"));
    assert_false(has("mlx5_[1-9],leaf", "mlx5_0", "leaf1"));
}

TEST(nothing_behind_a_mark_matches)
{
    assert_true(has("!leaf2", "mlx5_0", "leaf1"));
    assert_false(has("!leaf1", "mlx5_0", "leaf1"));
    assert_false(has("mlx5_0,!leaf*", "mlx5_0", "leaf1"));
    assert_false(has("!leaf2,mlx5_1", "mlx5_0", "leaf1"));
}

TEST(lists_without_a_pattern_are_refused)
{
    char huge[1000];

    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    assert_true(fab_pattern_ok("a,b !c"));
    assert_false(fab_pattern_ok(""));
    assert_false(fab_pattern_ok(" , ,"));
    assert_false(fab_pattern_ok("a,!"));
    assert_false(fab_pattern_ok(huge));
    assert_false(has(huge, huge, huge));
}
