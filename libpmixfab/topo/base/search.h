/* search.h - the one binary search. */
#ifndef FAB_TOPO_BASE_SEARCH_H
#define FAB_TOPO_BASE_SEARCH_H

#include <stdint.h>

/*
 * The first of the places [from, end) of a sorted list that is not before what is looked for; `end`: there is
 * none. `is_before` is an expression that says of place `at` whether it is.
 */
/* NOLINTBEGIN(bugprone-macro-parentheses): `at` is a name */
#define FAB_LOWER_BOUND(from, end, at, is_before)                                                            \
    __extension__({                                                                                          \
        uint32_t low_ = (from), high_ = (end);                                                               \
        while (low_ < high_) {                                                                               \
            const uint32_t at = low_ + (high_ - low_) / 2;                                                   \
            if (is_before)                                                                                   \
                low_ = at + 1;                                                                               \
            else                                                                                             \
                high_ = at;                                                                                  \
        }                                                                                                    \
        low_;                                                                                                \
    })
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
