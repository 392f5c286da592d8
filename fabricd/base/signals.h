/*
 * signals.h - signals that would end a process and mean nothing to fabricd: the user's, those of timers,
 * limits and descriptors, and the real-time ones.
 */
#ifndef FABRICD_BASE_SIGNALS_H
#define FABRICD_BASE_SIGNALS_H

#include <signal.h>

/* Ignore them, and in what is started from here on, unless that resets them. */
void signals_ignore(void);

/* Those that are ignored here, SIGPIPE included: a program that is started expects the defaults. */
void signals_ignored(sigset_t *out);

#endif
