/* library.h - is the PMIx library of this process the one that a component was built for? */
#ifndef FAB_MCA_LIBRARY_LIBRARY_H
#define FAB_MCA_LIBRARY_LIBRARY_H

#include <stdbool.h>

/* This is the version of the running library: major.minor.release. Nothing else of it is touched. */
bool mca_library_is(long major, long minor, long release);

/*
 * Private structures may differ between any two releases, so this comes before anything else of the library
 * is touched, and itself uses nothing of it but PMIx_Get_version(). No is also the answer for 5.0 before
 * 5.0.7, whose jobs would not start (fab_running_refuses_arrays()). Where the answer is no, and the
 * framework's verbosity is set in the environment, one line on standard error says so.
 */
bool mca_same_library(const char *framework, long major, long minor, long release);

#endif
