#include "test/unit/test.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_TESTS = 128 };

static struct CMUnitTest tests[MAX_TESTS];
static size_t n_tests;
static CMFixtureFunction group_set_up, group_tear_down;
static const char *child_option;
static int (*child_play)(int argc, char **argv);
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof(crashes) / sizeof(crashes[0]) };
static pid_t tested;                     /* a child that a test makes to crash is no news */
static struct sigaction others[CRASHES]; /* cmocka's handlers, or a sanitizer's */

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

static void print_calls(void)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t child = fork();
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execlp("gdb", "gdb", "-nx", "-batch", "-p", pid, "-ex", "thread apply all bt 40", (char *)NULL);
        _exit(127); /* without gdb there is no backtrace */
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* When this returns, the signal comes again, to the handler of before. */
static void crashed(__attribute__((unused)) int number)
{
    for (size_t i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &others[i], NULL);
    if (getpid() == tested)
        print_calls();
}

void test_print_crashes(void)
{
    tested = getpid();
    for (size_t i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &(struct sigaction){.sa_handler = crashed}, &others[i]);
}

const char *printed(const char *fmt, ...)
{
    static struct text {
        struct text *next; /* so that none counts as leaked */
        char text[];
    } * _Atomic texts;
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    struct text *text = must_have(sizeof(*text) + (size_t)len + 1);
    va_start(args, fmt);
    vsnprintf(text->text, (size_t)len + 1, fmt, args);
    va_end(args);
    text->next = atomic_exchange(&texts, text);
    return text->text;
}

void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size_t n = (size_t)ftell(file);
    rewind(file);
    char *bytes = must_have(n + 1);
    assert_int_equal(fread(bytes, 1, n, file), n);
    fclose(file);
    if (size != NULL)
        *size = n;
    return bytes;
}

void copy_file(const char *from, const char *to)
{
    size_t size;
    OWNED(free) char *bytes = read_file(from, &size);
    write_file(to, bytes, size);
}

int remove_folder(const char *path)
{
    return system(printed("rm -rf '%s'", path));
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
