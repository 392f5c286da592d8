/* Sets of processors: lists are read as they are written, and nothing else is. */
#include "test/unit/test.h"
#include "topo/base/cpus.h"

static const char *text_of(const char *list)
{
    static char text[4096];
    struct fab_cpus cpus;
    assert_true(fab_cpus_parse(list, &cpus));
    assert_true(fab_cpus_text(&cpus, text, sizeof(text)));
    return text;
}

TEST(lists_have_one_form)
{
    assert_string_equal(text_of("3,1,2,2,0"), "0-3");
    assert_string_equal(text_of("0,2,4,6"), "0-6:2");
    assert_string_equal(text_of("0-9:3"), "0-9:3");
    assert_string_equal(text_of("0,24,48,1"), "0-1,24,48");
    assert_string_equal(text_of("5,9"), "5,9");
    assert_string_equal(text_of("4095"), "4095");
    assert_string_equal(text_of("0-4095"), "0-4095");
}

TEST(other_texts_are_no_lists)
{
    static const char *const bad[] = {"",
                                      "x",
                                      "0-",
                                      "-1",
                                      "1-0",
                                      "0,",
                                      ",0",
                                      "0x3",
                                      "0--1",
                                      "4096",
                                      "0-4096",
                                      "0-4:0",
                                      "0-4:",
                                      "0:2",
                                      "1 2",
                                      "0-3;4",
                                      "99999999999999999999"};
    struct fab_cpus cpus;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        fab_cpus_add(&cpus, 7);
        if (fab_cpus_parse(bad[i], &cpus))
            fail_msg("%s is taken for a list", bad[i]);
        assert_int_equal(fab_cpus_next(&cpus, 0), FAB_CPUS_MAX);
    }
    assert_false(fab_cpus_parse(NULL, &cpus));
}

TEST(random_sets_come_back)
{
    uint64_t seed = 1;
    for (unsigned round = 0; round < 2000; round++) {
        struct fab_cpus cpus = {{0}}, again;
        char text[32768];
        const unsigned span = 1 + (unsigned)(seed >> 33) % (round % 2 ? FAB_CPUS_MAX : 20);
        for (unsigned n = 1 + round % 40; n > 0; n--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            fab_cpus_add(&cpus, (unsigned)(seed >> 33) % span);
        }
        assert_true(fab_cpus_text(&cpus, text, sizeof(text)));
        assert_true(fab_cpus_parse(text, &again));
        assert_memory_equal(&cpus, &again, sizeof(cpus));
        assert_true(fab_cpus_meet(&cpus, &again));
        char small[4];
        assert_int_equal(fab_cpus_text(&cpus, small, sizeof(small)), strlen(text) < sizeof(small));
    }
}

TEST(an_empty_set_has_no_text)
{
    struct fab_cpus none = {{0}};
    char text[8];
    assert_false(fab_cpus_text(&none, text, sizeof(text)));
    assert_false(fab_cpus_meet(&none, &none));
}
