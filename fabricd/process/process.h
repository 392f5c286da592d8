/* process.h - fabricd as a process among others: its lock, its URI file, the background. */
#ifndef FABRICD_PROCESS_PROCESS_H
#define FABRICD_PROCESS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fabricd/config/config.h"

/* Make the run directory where it is absent, and take its lock. PMIXFAB_ERR_BUSY: another fabricd has it;
 * _PERM: others may write there (process.c). */
struct process_lock;
int process_lock(const struct config *config, struct process_lock **out, struct fab_err *err);
void process_unlock(struct process_lock *lock); /* NULL allowed */

/* Is the run directory that is locked not the one that stands at its path any more (somebody removed it)?
 * lock NULL: false. */
bool process_lost(const struct config *config, const struct process_lock *lock);

/* RUNDIR/fabricd.uri: one line, the URI that tools connect to. */
int process_write_uri(const struct config *config, const char *uri, struct fab_err *err);
void process_remove_uri(const struct config *config, const struct process_lock *lock); /* NULL: it stays */

/*
 * As many descriptors as the system lets us have: each node and each tool that is connected is one, and the
 * usual limit is there for programs that use select(). What we start gets the usual one back
 * (process_descriptors_of_child), but for the PMIx server, which has the connections.
 */
void process_descriptors(void);
void process_descriptors_of_child(pid_t pid);

/*
 * Go into the background, with "/" for a working directory, and no file for others to write. The parent waits
 * for process_ready() of the child and exits with 0 or 1; only the child returns.
 */
int process_daemonize(const struct config *config);
void process_ready(bool ok);

/*
 * Begin anew in this process, with the arguments and the environment of its start: after everything was
 * stopped. Returns only where that fails.
 */
int process_again(void);

/* root becomes the owner of this file (where it is not there: of its folder), and stays so. */
int process_become_owner(const char *path, struct fab_err *err);

/*
 * Signals that would end a process and mean nothing to fabricd: the user's, those of timers, limits and
 * descriptors, and the real-time ones. Ignore them, and in what is started from here on, unless that resets
 * them.
 */
void signals_ignore(void);

/* Those that are ignored here, SIGPIPE included: a program that is started expects the defaults. */
void signals_ignored(sigset_t *out);

#endif
