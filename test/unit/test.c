#include "test/unit/test.h"

enum { MAX_TESTS = 128 };

static struct CMUnitTest tests[MAX_TESTS];
static size_t n_tests;
static CMFixtureFunction group_set_up, group_tear_down;
static const char *child_option;
static int (*child_play)(int argc, char **argv);

void test_register(struct CMUnitTest test)
{
    if (n_tests == MAX_TESTS)
        abort();
    tests[n_tests++] = test;
}

void test_register_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    group_set_up = set_up;
    group_tear_down = tear_down;
}

void test_register_child(const char *option, int (*play)(int argc, char **argv))
{
    child_option = option;
    child_play = play;
}

int main(int argc, char **argv)
{
    size_t n = 0;
    if (argc > 1 && child_option != NULL && strcmp(argv[1], child_option) == 0)
        return child_play(argc, argv);
    for (size_t i = 0; i < n_tests; i++)
        if (argc < 2 || strstr(tests[i].name, argv[1]) != NULL)
            tests[n++] = tests[i];
    if (n == 0) {
        fprintf(stderr, "no test has %s in its name\n", argc > 1 ? argv[1] : "anything");
        return EXIT_FAILURE;
    }
    return _cmocka_run_group_tests(argv[0], tests, n, group_set_up, group_tear_down);
}
