#include "mca/repairs/repair.h"

#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Debian 12's. The holes are in all of 4.2 up to 6.1, but a repair that is compiled against the private
 * headers of one version may only meet that one: their structures change.
 */
#define REPAIRED "4.2.2"

bool fab_repair_wanted(void)
{
    const char *version = PMIx_Get_version(); /* "OpenPMIx 4.2.2, repo rev: ..." */
    const char *number = version == NULL ? NULL : strpbrk(version, "0123456789");
    const char *off = getenv("FABRICD_NO_REPAIR");
    size_t n = strlen(REPAIRED);
    return number != NULL && strncmp(number, REPAIRED, n) == 0 && (number[n] < '0' || number[n] > '9') &&
           (off == NULL || strcmp(off, "1") != 0);
}

void *fab_repair_original(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}
