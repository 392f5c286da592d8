/*
 * test.h - the frame of a unit test: cmocka, a test that registers itself, and main().
 *
 *     TEST(a_port_without_a_cable_is_down)
 *     {
 *         assert_true(...);
 *     }
 *
 * The tests of a program run in the order in which they stand in its file; with a word as its argument the
 * program runs only those whose names contain it. What a fixture made is *state.
 */
#ifndef TEST_UNIT_TEST_H
#define TEST_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#ifdef assert_uint_in_range /* cmocka 2 deprecates the other name, and takes the word "stop" */
#undef assert_in_range
#define assert_in_range assert_uint_in_range
#undef stop
#endif

#include "test/unit/scoped.h"
#include "topo/model/model.h"

/* A test with a fixture: both may be NULL. */
#define TEST_WITH(name, set_up, tear_down)                                                                   \
    static void name(void **state);                                                                          \
    static void call_##name(void **state)                                                                    \
    {                                                                                                        \
        test_print_crashes();                                                                                \
        name(state);                                                                                         \
    }                                                                                                        \
    __attribute__((constructor)) static void register_##name(void)                                           \
    {                                                                                                        \
        test_register((struct CMUnitTest){#name, call_##name, set_up, tear_down, NULL});                     \
    }                                                                                                        \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* A test of what its fixture makes: TEST_IN(name, struct world *world, set_up, tear_down). */
#define TEST_IN(name, made, set_up, tear_down)                                                               \
    static void name##_in(made);                                                                             \
    TEST_WITH(name, set_up, tear_down)                                                                       \
    {                                                                                                        \
        name##_in(*state);                                                                                   \
    }                                                                                                        \
    static void name##_in(made)

/* What sets up or tears down: static int NAME(void **state). */
#define FIXTURE(name) static int name(__attribute__((unused)) void **state)

/* Texts as two arguments: where they are, and how many. */
#define LINES(...)                                                                                           \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)

/* What is set up once before all tests of the program, and torn down after them: both may be NULL. */
#define TEST_GROUP(set_up, tear_down)                                                                        \
    __attribute__((constructor)) static void register_group(void)                                            \
    {                                                                                                        \
        test_register_group(set_up, tear_down);                                                              \
    }

/* The program may be started as a child of its own test: such a start ends here, with the status. */
#define TEST_CHILD(option, play)                                                                             \
    __attribute__((constructor)) static void register_child(void)                                            \
    {                                                                                                        \
        test_register_child(option, play);                                                                   \
    }

/* Zeroed memory of exactly that size, always. */
static inline void *must_have(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);
    if (memory == NULL)
        abort();
    return memory;
}

/* must(call(..., &err), &err); */
static inline void must(int rc, const struct fab_err *err)
{
    if (rc != 0)
        fail_msg("%d: %s", rc, err->text);
}

/* must_fail(call(..., &err), code, &err, part): with this code, and an error of one line that says this. */
static inline void must_fail(int rc, int code, const struct fab_err *err, const char *part)
{
    if (rc != code || strstr(err->text, part) == NULL)
        fail_msg("%d, not %d: \"%s\" does not say \"%s\"", rc, code, err->text, part);
    assert_null(strchr(err->text, '\n'));
}

/* For a call of which the error is read by nobody, or by these two: must_do(call(..., fresh_err())). */
static _Thread_local struct fab_err test_err;

static inline struct fab_err *fresh_err(void)
{
    test_err.text[0] = '\0';
    return &test_err;
}

static inline void must_do(int rc)
{
    must(rc, &test_err);
}

static inline void must_refuse(int rc, int code, const char *part)
{
    must_fail(rc, code, &test_err, part);
}

/* A text that stands until the program ends; not for millions of them. */
const char *printed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Files: written whole; read whole, with a 0 behind what is in it (size may be NULL, free() it). */
void write_file(const char *path, const void *bytes, size_t size);
char *read_file(const char *path, size_t *size);
void copy_file(const char *from, const char *to);

/* A folder with all that is in it. */
int remove_folder(const char *path);

/* Print a backtrace with gdb before a signal that ends the test is handled. TEST() does it: cmocka has left
 * the stack by then. */
void test_print_crashes(void);

void test_register(struct CMUnitTest test);
void test_register_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);
void test_register_child(const char *option, int (*play)(int argc, char **argv));

#endif
