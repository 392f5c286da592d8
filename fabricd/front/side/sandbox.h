/*
 * sandbox.h - what the front forbids itself before a stranger can reach it: whoever takes it over has what is
 * left. Memory beyond a bound, system calls that it has no use for (seccomp), files that are none of its own
 * (Landlock), other processes.
 */
#ifndef FABRICD_FRONT_SIDE_SANDBOX_H
#define FABRICD_FRONT_SIDE_SANDBOX_H

#include "fabricd/front/front.h"

/*
 * Before there is a second thread, and for good. It may go on reading what is beside the run directory, and
 * what programs read that look users up; it may write below `own`, which has to be there. Returns which of
 * FRONT_FILTERED, FRONT_CONFINED and FRONT_BOUNDED hold: what this kernel does not have is left out.
 */
unsigned sandbox_enter(const char *rundir, const char *own);

/* It serves: from now on no thread opens a file for writing, makes one, or listens anywhere else. False: the
 * kernel does not do that. */
bool sandbox_close(void);

#endif
