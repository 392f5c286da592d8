/*
 * host.h - the role host: fabricd as a PMIx host of one user, for his own clients and tools. The room host/
 * starts programs, keeps what they publish, and answers for the fabric from another fabricd's run directory.
 *
 * Two threads: the loop has the jobs and their processes, the PMIx library's thread has what is published.
 * Each tells the other by posting, never by waiting; only the loop waits for the library.
 */
#ifndef FABRICD_HOST_HOST_H
#define FABRICD_HOST_HOST_H

#include "fabricd/config/config.h"

/* The whole program in this role, after the options; its exit status. */
int host_run(struct config *config);

#endif
