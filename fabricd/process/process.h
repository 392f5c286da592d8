/* process.h - fabricd as a process: its lock, its URI file, the background. */
#ifndef FABRICD_PROCESS_PROCESS_H
#define FABRICD_PROCESS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fabricd/config/config.h"

/* Make the run directory if it is absent, and lock it. PMIXFAB_ERR_BUSY: another fabricd holds the lock;
 * _PERM: others may write there (process.c). */
struct process_lock;
int process_lock(const struct config *config, struct process_lock **out, struct fab_err *err);
void process_unlock(struct process_lock *lock); /* NULL allowed */

/* Return whether the locked run directory is no longer the one at its path, because it was removed. lock
 * NULL: false. */
bool process_lost(const struct config *config, const struct process_lock *lock);

/* Write RUNDIR/fabricd.uri: one line, the URI that tools connect to. */
int process_write_uri(const struct config *config, const char *uri, struct fab_err *err);
void process_remove_uri(const struct config *config, const struct process_lock *lock); /* NULL: do nothing */

/*
 * Raise the limit of descriptors as far as the system allows. Each connected node and tool needs a
 * descriptor, and the usual limit exists for programs that use select(). Children get the usual limit
 * (process_descriptors_of_child), except the PMIx server, which has the connections.
 */
void process_descriptors(void);
void process_descriptors_of_child(pid_t pid);

/*
 * Go into the background, with "/" as the working directory and a umask that denies writing to others. The
 * parent waits for process_ready() of the child and exits with 0 or 1; only the child returns.
 */
int process_daemonize(const struct config *config);
void process_ready(bool ok);

/*
 * Execute this program again, with the arguments and the environment of its start. Everything must have been
 * stopped. Returns only on failure.
 */
int process_again(void);

/* As root, become the owner of this file for good, or of its folder if the file does not exist. */
int process_become_owner(const char *path, struct fab_err *err);

/*
 * Ignore signals that would end the process and mean nothing to fabricd: SIGUSR1 and SIGUSR2, those of
 * timers, limits and descriptors, and the real-time signals. Children inherit this, unless they reset it.
 */
void signals_ignore(void);

/* Return the signals that are ignored here, SIGPIPE included: a started program expects the defaults. */
void signals_ignored(sigset_t *out);

#endif
