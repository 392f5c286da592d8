/*
 * sandbox.h - what the server forbids itself before a client can reach it: whoever takes it over has what is
 * left. Memory beyond a bound, system calls that it has no use for (seccomp), files that are none of its own
 * (Landlock), other processes.
 */
#ifndef FABRICD_PMIX_SANDBOX_H
#define FABRICD_PMIX_SANDBOX_H

#include <stdbool.h>

#define SANDBOX_FILTERED 1u /* system calls that it has no use for */
#define SANDBOX_CONFINED 2u /* files that are none of its own */
#define SANDBOX_BOUNDED  4u /* more memory than a bound */

/*
 * Before there is a second thread, and for good. It may go on reading what is beside the run directory, and
 * what programs read that look users up; it may write below `own`, which has to be there. Returns which of
 * these hold: what this kernel does not have is left out.
 */
unsigned sandbox_enter(const char *rundir, const char *own);

/* It serves: from now on no thread opens a file for writing, makes one, or listens anywhere else. False: the
 * kernel does not do that. */
bool sandbox_close(void);

#endif
