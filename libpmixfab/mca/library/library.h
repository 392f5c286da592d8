/* library.h - check that this process's PMIx library is the one that a component was built for. */
#ifndef FAB_MCA_LIBRARY_LIBRARY_H
#define FAB_MCA_LIBRARY_LIBRARY_H

#include <stdbool.h>

/*
 * Return whether the running library has this version, for example "4.2.2" or "7.0.0rc1". Private structures
 * may differ between any two releases and release candidates, so this is called before any other use of the
 * library, and itself calls PMIx_Get_version() only. It also returns false for 5.0 before 5.0.7, whose jobs
 * would not start (fab_running_refuses_arrays()). If it returns false, and the framework's verbosity is set
 * in the environment, it writes one line to standard error.
 */
bool mca_same_library(const char *framework, const char *built_for);

#endif
