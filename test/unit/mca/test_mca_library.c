/* The running library against the one that a component was built for: this program calls it what each row
 * says. */
#include "mca/library/library.h"

#include <pmix.h>

#include "pmix/answers/version.h"
#include "test/unit/test.h"

static const char *running;

/* The library's own one is not reached: this one is found first. */
const char *PMIx_Get_version(void)
{
    return running;
}

TEST(whether_a_component_works)
{
    static const struct row {
        const char *says;
        long major, minor, release; /* built for */
        bool same, serves;
    } rows[] = {
        {"OpenPMIx 4.2.2, repo rev: none", 4, 2, 2, true, true},
        {"OpenPMIx 4.2.3, repo rev: none", 4, 2, 2, false, false},
        {"OpenPMIx 4.9.9, repo rev: none", 4, 9, 9, true, true},
        {"OpenPMIx 5.0.0, repo rev: none", 5, 0, 0, true, false},
        {"OpenPMIx 5.0.3, repo rev: none", 5, 0, 3, true, false},
        {"OpenPMIx 5.0.6, repo rev: none", 5, 0, 6, true, false},
        {"OpenPMIx 5.0.7, repo rev: none", 5, 0, 7, true, true},
        {"OpenPMIx 5.0.7, repo rev: none", 5, 0, 6, false, false},
        {"OpenPMIx 5.0.6, repo rev: none", 5, 0, 7, false, false},
        {"OpenPMIx 6.1.0, repo rev: none", 6, 1, 0, true, true},
        {"OpenPMIx 6.1.0, repo rev: none", 5, 1, 0, false, false},
        {"OpenPMIx 6.1", 6, 1, 0, false, false},
        {NULL, 4, 2, 2, false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *r = &rows[i];
        running = r->says;
        assert_int_equal(mca_library_is(r->major, r->minor, r->release), r->same);
        assert_int_equal(mca_same_library("pnet", r->major, r->minor, r->release), r->serves);
    }
}
