/*
 * repair_versions.h - the versions of the library that each part of the repairs is compiled for: those that
 * it was read and tried with. Private structures differ between versions, so the running library must then be
 * the one that the repairs were compiled with (fab_repair_known()).
 */
#ifndef FAB_MCA_REPAIRS_REPAIR_VERSIONS_H
#define FAB_MCA_REPAIRS_REPAIR_VERSIONS_H

#include <pmix_version.h>

#define PMIX_IS_4_2_2 (PMIX_VERSION_MAJOR == 4 && PMIX_VERSION_MINOR == 2 && PMIX_VERSION_RELEASE == 2)
#define PMIX_IS_5_0   (PMIX_VERSION_MAJOR == 5 && PMIX_VERSION_MINOR == 0 && PMIX_VERSION_RELEASE >= 3)
#define PMIX_IS_6_1   (PMIX_VERSION_MAJOR == 6 && PMIX_VERSION_MINOR == 1)

/* From here on the library looks for a tool's name among those that it has, and says of a namespace that it
 * is on its list before it puts it there. */
#define PMIX_COUNTS_TOOLS (PMIX_NUMERIC_VERSION >= 0x00050009)

#ifdef HAVE_PMIX_PRIVATE
#define REPAIRS_REQUESTS    (PMIX_IS_4_2_2 || PMIX_IS_5_0 || PMIX_IS_6_1)
#define REPAIRS_CONNECTIONS REPAIRS_REQUESTS
#define REPAIRS_JOBS        PMIX_IS_4_2_2
#else
#define REPAIRS_REQUESTS    false
#define REPAIRS_CONNECTIONS false
#define REPAIRS_JOBS        false
#endif

#endif
