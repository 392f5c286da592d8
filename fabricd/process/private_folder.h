/* private_folder.h - a folder that nobody else may write to, or put another one in place of. */
#ifndef FABRICD_PROCESS_PRIVATE_FOLDER_H
#define FABRICD_PROCESS_PRIVATE_FOLDER_H

#include "topo/base/error.h"

/*
 * PMIXFAB_ERR_PERM where somebody beside root and this process's user may write to it; or may rename it, or
 * what it is in: a folder above may be written by all only where it is sticky, as /tmp is, and by a group
 * only where that is root's or this process's. `what` is what the message calls it. A link is what it leads
 * to.
 */
int private_folder(const char *what, const char *path, struct fab_err *err);

#endif
