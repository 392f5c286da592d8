#include "test/unit/test.h"

#include <errno.h>
#include <stdlib.h>

static void ends_here(void)
{
    abort();
}

static int play_crash(__attribute__((unused)) int argc, __attribute__((unused)) char **argv)
{
    test_print_crashes();
    ends_here();
    return 0;
}

TEST_CHILD("--crash", play_crash)

TEST(a_crash_prints_the_calls_that_it_was_in)
{
    char line[1000];
    bool found = false;
    if (system("command -v gdb >/dev/null") != 0)
        skip();
    FILE *said = popen(printed("exec '%s' --crash 2>&1", program_invocation_name), "r");
    assert_non_null(said);
    while (fgets(line, sizeof(line), said) != NULL)
        found |= strstr(line, "ends_here (") != NULL;
    pclose(said);
    assert_true(found);
}
