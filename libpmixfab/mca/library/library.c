#include "mca/library/library.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool library_talks(const char *framework)
{
    char name[64];
    snprintf(name, sizeof(name), "PMIX_MCA_%s_base_verbose", framework);
    const char *verbosity = getenv(name);
    return verbosity != NULL && strtol(verbosity, NULL, 10) > 0;
}

bool mca_library_is(long major, long minor, long release)
{
    const char *text = PMIx_Get_version(); /* "OpenPMIx 4.2.2, repo rev: ..." */
    const char *number = text == NULL ? NULL : strpbrk(text, "0123456789");
    long a = 0, b = 0, c = 0;
    return number != NULL && sscanf(number, "%ld.%ld.%ld", &a, &b, &c) >= 2 && a == major && b == minor &&
           c == release;
}

bool mca_same_library(const char *framework, long major, long minor, long release)
{
    const char *text = PMIx_Get_version();
    if (mca_library_is(major, minor, release))
        return true;
    if (library_talks(framework))
        fprintf(stderr, "%s:fabricd: built for PMIx %ld.%ld.%ld, this is %s: declined\n", framework, major,
                minor, release, text == NULL ? "unknown" : text);
    return false;
}
