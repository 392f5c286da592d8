#include "mca/library/library.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix/answers/version.h"

static bool library_talks(const char *framework)
{
    char name[64];
    snprintf(name, sizeof(name), "PMIX_MCA_%s_base_verbose", framework);
    const char *verbosity = getenv(name);
    return verbosity != NULL && strtol(verbosity, NULL, 10) > 0;
}

/* In "OpenPMIx 7.0.0rc1, repo rev: ..." or "OpenPMIx 7.0.0rc1 (PMIx Standard: ...": */
static bool library_is(const char *text, const char *built_for)
{
    const char *number = text == NULL ? NULL : strpbrk(text, "0123456789");
    const size_t n = number == NULL ? 0 : strcspn(number, ", (");
    return n == strlen(built_for) && strncmp(number, built_for, n) == 0;
}

bool mca_same_library(const char *framework, const char *built_for)
{
    const char *text = PMIx_Get_version();
    const bool same = library_is(text, built_for);
    if (same && !fab_running_refuses_arrays())
        return true;
    if (library_talks(framework))
        fprintf(stderr, "%s:fabricd: built for PMIx %s, this is %s%s: declined\n", framework, built_for,
                text == NULL ? "unknown" : text,
                same ? ", which cannot pass launch information to jobs" : "");
    return false;
}
