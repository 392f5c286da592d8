/* search.h - binary search. */
#ifndef FAB_TOPO_BASE_SEARCH_H
#define FAB_TOPO_BASE_SEARCH_H

#include <stdint.h>

/*
 * Return the first position in [from, end) of a sorted list that is not before the value searched; `end` if
 * there is none. `is_before` is an expression that tests the position named `at`.
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
