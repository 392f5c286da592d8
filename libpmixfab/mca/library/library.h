/* library.h - check that this process's PMIx library is the one that a component was built for. */
#ifndef FAB_MCA_LIBRARY_LIBRARY_H
#define FAB_MCA_LIBRARY_LIBRARY_H

#include <stdbool.h>

/*
 * Return whether this is the version of the running library: major.minor.release. It uses no other part of
 * it.
 */
bool mca_library_is(long major, long minor, long release);

/*
 * Private structures may differ between any two releases, so this is called before any other use of the
 * library, and itself calls PMIx_Get_version() only. It also returns false for 5.0 before 5.0.7, whose jobs
 * would not start (fab_running_refuses_arrays()). If it returns false, and the framework's verbosity is set
 * in the environment, it writes one line to standard error.
 */
bool mca_same_library(const char *framework, long major, long minor, long release);

#endif
