#include "mca/repairs/repair.h"

#include <dlfcn.h>
#include <pmix.h>
#include <pmix_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Debian 12's. The holes are in all of 4.2 up to 6.1, but a repair that is compiled against the private
 * headers of one version may only meet that one: their structures change.
 */
#define REPAIRED "4.2.2"
#if defined(HAVE_PMIX_PRIVATE) && PMIX_VERSION_MAJOR == 4 && PMIX_VERSION_MINOR == 2 &&                      \
    PMIX_VERSION_RELEASE == 2
#define BUILT_FOR_REPAIRED true
#else
#define BUILT_FOR_REPAIRED false
#endif

bool fab_repair_known(void)
{
    const char *version = PMIx_Get_version(); /* "OpenPMIx 4.2.2, repo rev: ..." */
    const char *number = version == NULL ? NULL : strpbrk(version, "0123456789");
    size_t n = strlen(REPAIRED);
    return BUILT_FOR_REPAIRED && number != NULL && strncmp(number, REPAIRED, n) == 0 &&
           (number[n] < '0' || number[n] > '9');
}

bool fab_repair_wanted(void)
{
    const char *off = getenv("FABRICD_NO_REPAIR");
    return fab_repair_known() && (off == NULL || strcmp(off, "1") != 0);
}

#ifndef HAVE_PMIX_PRIVATE
void fab_repair_job_forgotten(const char *nspace)
{
    (void)nspace;
}
#endif

void *fab_repair_original(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}
