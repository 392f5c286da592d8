/*
 * sandbox.h - restrictions that the server sets before a client can reach it, in case a client takes it over.
 * They limit its memory, its system calls (seccomp), its files (Landlock), and its access to other processes.
 */
#ifndef FABRICD_PMIX_SANDBOX_H
#define FABRICD_PMIX_SANDBOX_H

#include <stdbool.h>

#define SANDBOX_FILTERED 1u /* only system calls that it needs */
#define SANDBOX_CONFINED 2u /* only files that it needs */
#define SANDBOX_BOUNDED  4u /* a bound of its memory */

/*
 * Restrict the process, before a second thread exists, and for good. It may still read the folder of the run
 * directory and the files of user look-ups, and write below `own`, which must exist. Returns the restrictions
 * in force. Restrictions that this kernel lacks are skipped.
 */
unsigned sandbox_enter(const char *rundir, const char *own);

/* Restrict the serving process further: from now on no thread can open a file for writing, create one, or
 * listen elsewhere. False: the kernel does not support it. */
bool sandbox_close(void);

#endif
