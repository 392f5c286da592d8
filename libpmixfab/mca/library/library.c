#include "mca/library/library.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmix/answers/version.h"

static bool library_talks(const char *framework)
{
    char name[64];
    snprintf(name, sizeof(name), "PMIX_MCA_%s_base_verbose", framework);
    const char *verbosity = getenv(name);
    return verbosity != NULL && strtol(verbosity, NULL, 10) > 0;
}

bool mca_library_is(long major, long minor, long release)
{
    return fab_running_version() == FAB_PMIX_VERSION(major, minor, release);
}

bool mca_same_library(const char *framework, long major, long minor, long release)
{
    const char *text = PMIx_Get_version();
    const bool same = mca_library_is(major, minor, release);
    if (same && !fab_running_refuses_arrays())
        return true;
    if (library_talks(framework))
        fprintf(stderr, "%s:fabricd: built for PMIx %ld.%ld.%ld, this is %s%s: declined\n", framework, major,
                minor, release, text == NULL ? "unknown" : text,
                same ? ", which cannot pass launch information to jobs" : "");
    return false;
}
