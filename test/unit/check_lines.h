/* check_lines.h - findings as lines "kind|where|what". */
#ifndef FAB_TEST_CHECK_LINES_H
#define FAB_TEST_CHECK_LINES_H

#include <stdio.h>

#include "test/unit/test.h"
#include "topo/changes/check.h"

/* They are these, and no others. lines: NULL for none. */
static inline void assert_findings(const struct fab_findings *found, const char *const *lines, uint32_t n)
{
    for (uint32_t i = 0; i < found->n || i < n; i++) {
        char line[1600] = "(no more)";
        if (i < found->n)
            snprintf(line, sizeof(line), "%s|%s|%s", fab_check_name(found->findings[i].kind),
                     found->findings[i].where, found->findings[i].what);
        assert_string_equal(line, lines != NULL && i < n ? lines[i] : "(no more)");
    }
}

#endif
