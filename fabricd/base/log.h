/*
 * log.h - the log of fabricd. It is standard error in the foreground, and syslog otherwise.
 *
 * Each event has one line. Any thread may write one. If standard error is the journal, a line begins with its
 * priority instead of time and level, since the journal adds the time.
 */
#ifndef FABRICD_BASE_LOG_H
#define FABRICD_BASE_LOG_H

#include "pmixfab.h"

/* Start logging up to `level`; to syslog or to standard error. Can be called again. */
void log_open(enum pmixfab_level level, int to_syslog);

/* Set the level of the lines that are logged from now on. */
void log_set_level(enum pmixfab_level level);

/* Begin each line on standard error with this name instead of time and level: for a program that another
 * daemon started. */
void log_as(const char *name);

/* Write lines from now on for the daemon that started this process, which reads them from standard error. */
void log_to_daemon(void);

void log_line(enum pmixfab_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_line(PMIXFAB_LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(PMIXFAB_LOG_WARNING, __VA_ARGS__)
#define log_info(...)    log_line(PMIXFAB_LOG_INFO, __VA_ARGS__)
#define log_debug(...)   log_line(PMIXFAB_LOG_DEBUG, __VA_ARGS__)

#endif
