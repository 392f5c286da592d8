/*
 * repair_versions.h - the versions of the library that each part of the repairs is compiled for: those that
 * it was read and tried with. Private structures differ between versions, so the running library must then be
 * the one that the repairs were compiled with (fab_repair_known()).
 */
#ifndef FAB_MCA_REPAIRS_REPAIR_VERSIONS_H
#define FAB_MCA_REPAIRS_REPAIR_VERSIONS_H

#include <pmix_version.h>

/* Debian 12's. */
#if defined(HAVE_PMIX_PRIVATE) && PMIX_VERSION_MAJOR == 4 && PMIX_VERSION_MINOR == 2 &&                      \
    PMIX_VERSION_RELEASE == 2
#define REPAIRS_CONNECTIONS 1
#else
#define REPAIRS_CONNECTIONS 0
#endif

#define REPAIRS_REQUESTS REPAIRS_CONNECTIONS

#endif
