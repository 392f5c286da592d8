#include "mca/repairs/repair.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "mca/library/library.h"
#include "mca/repairs/repair_versions.h"

bool fab_repair_known(enum fab_repair_part part)
{
    static const bool built[] = {[FAB_REPAIR_REQUESTS] = REPAIRS_REQUESTS,
                                 [FAB_REPAIR_CONNECTIONS] = REPAIRS_CONNECTIONS,
                                 [FAB_REPAIR_JOBS] = REPAIRS_JOBS};
    return built[part] && mca_library_is(PMIX_VERSION_MAJOR, PMIX_VERSION_MINOR, PMIX_VERSION_RELEASE);
}

bool fab_repair_is_off(void)
{
    const char *off = getenv("FABRICD_NO_REPAIR");
    return off != NULL && strcmp(off, "1") == 0;
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
