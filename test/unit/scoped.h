/*
 * scoped.h - variables of tests that are destroyed where their block ends, the last one first.
 *
 *     SCOPED(fab_inventory) inv;                                fab_inventory_destroy(&inv)
 *     SCOPED_BY(hand_without_free) struct hand_without without; hand_without_free(&without)
 *     OWNED(free) char *text = NULL;                            free(text)
 *
 * A block that can be left before the variable has a value starts with one.
 */
#ifndef TEST_UNIT_SCOPED_H
#define TEST_UNIT_SCOPED_H

#include <stdlib.h>

#include "pmixfab.h"

/* unused: clang takes what nobody but the end of the block looks at for a mistake. */
#define SCOPED_BY(destroy) __attribute__((cleanup(destroy), unused))
#define SCOPED(type)       SCOPED_BY(type##_destroy) struct type

/* A pointer and the function that takes it; OWNER(close, struct x) defines what OWNED(close) needs. */
#define OWNED(close) SCOPED_BY(owned_##close)
/* NOLINTBEGIN(bugprone-macro-parentheses): a type */
#define OWNER(close, type)                                                                                   \
    static inline void owned_##close(type **pointer)                                                         \
    {                                                                                                        \
        close(*pointer);                                                                                     \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

static inline void owned_free(void *pointer)
{
    free(*(void **)pointer);
}

OWNER(pmixfab_close, struct pmixfab)

#endif
