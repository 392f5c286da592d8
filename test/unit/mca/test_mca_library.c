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
        const char *says, *built_for;
        bool serves;
    } rows[] = {
        {"OpenPMIx 4.2.2, repo rev: none", "4.2.2", true},
        {"OpenPMIx 4.2.3, repo rev: none", "4.2.2", false},
        {"OpenPMIx 4.2.22, repo rev: none", "4.2.2", false},
        {"OpenPMIx 4.2.2, repo rev: none", "4.2.22", false},
        {"OpenPMIx 4.9.9, repo rev: none", "4.9.9", true},
        {"OpenPMIx 5.0.0, repo rev: none", "5.0.0", false},
        {"OpenPMIx 5.0.3, repo rev: none", "5.0.3", false},
        {"OpenPMIx 5.0.6a1 (PMIx Standard: 5.1)", "5.0.6a1", false},
        {"OpenPMIx 5.0.7a1 (PMIx Standard: 5.1)", "5.0.7a1", true},
        {"OpenPMIx 5.0.7, repo rev: none", "5.0.6", false},
        {"OpenPMIx 5.0.6, repo rev: none", "5.0.7", false},
        {"OpenPMIx 6.1.0, repo rev: none", "6.1.0", true},
        {"OpenPMIx 6.1.0, repo rev: none", "5.1.0", false},
        {"OpenPMIx 6.1", "6.1.0", false},
        {"OpenPMIx 6.1", "6.1", true},
        {"OpenPMIx 7.0.0rc1 (PMIx Standard: 4.1, Stable ABI: 0.0)", "7.0.0rc1", true},
        {"OpenPMIx 7.0.0rc1 (PMIx Standard: 4.1, Stable ABI: 0.0)", "7.0.0", false},
        {"OpenPMIx 7.0.0 (PMIx Standard: 4.1, Stable ABI: 0.0)", "7.0.0rc1", false},
        {"OpenPMIx", "7.0.0", false},
        {NULL, "4.2.2", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        running = rows[i].says;
        assert_int_equal(mca_same_library("pnet", rows[i].built_for), rows[i].serves);
    }
}
