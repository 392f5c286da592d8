/* landlock.h - which files this process may touch from now on; a matter of the kernel (Linux 5.13). */
#ifndef FABRICD_FRONT_SIDE_LANDLOCK_H
#define FABRICD_FRONT_SIDE_LANDLOCK_H

#include <stdbool.h>

/* As sandbox_enter(), before it filters system calls. False: this kernel does not do it. */
bool landlock_enter(const char *rundir, const char *own);

#endif
