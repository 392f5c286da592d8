#include "fabricd/base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "fabricd/base/clock.h"
#include "topo/base/text.h"

static atomic_int log_level = PMIXFAB_LOG_INFO; /* other threads write lines while the level changes */
static int log_to_syslog;
static bool log_to_journal, log_is_child;
static const char *log_name;

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static const int level_priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

/* Log a line of libpmixfab. */
static void library_line(enum pmixfab_level level, const char *line, void *cbdata)
{
    (void)cbdata;
    log_line(level, "%s", line);
}

/* Return whether standard error is the journal. A child inherits the variable, but not that standard error.
 */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;
    struct stat st;
    return stream != NULL && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_set_level(enum pmixfab_level level)
{
    atomic_store(&log_level, (int)level);
}

void log_open(enum pmixfab_level level, int to_syslog)
{
    log_set_level(level);
    log_to_syslog = to_syslog;
    log_to_journal = is_journal();
    if (to_syslog)
        openlog("fabricd", LOG_PID, LOG_DAEMON);
    pmixfab_set_log(library_line, NULL);
}

void log_as(const char *name)
{
    log_name = name;
}

void log_to_daemon(void)
{
    log_is_child = true;
}

void log_line(enum pmixfab_level level, const char *fmt, ...)
{
    if ((int)level > atomic_load(&log_level))
        return;
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fab_text_clean(text, sizeof(text), text, strlen(text), NULL); /* names must not forge lines */
    if (log_is_child) {
        fprintf(stderr, "<%d>%s\n", (int)level, text);
        return;
    }
    if (log_to_syslog) {
        syslog(level_priorities[level], "%s", text);
        return;
    }
    if (log_to_journal) {
        fprintf(stderr, "<%d>%s%s%s\n", level_priorities[level], log_name != NULL ? log_name : "",
                log_name != NULL ? ": " : "", text);
        return;
    }
    if (log_name != NULL) {
        fprintf(stderr, "%s: %s\n", log_name, text);
        return;
    }
    const int64_t now = clock_now(CLOCK_REALTIME);
    const time_t seconds = (time_t)(now / 1000000);
    struct tm tm;
    char stamp[32];
    localtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
    fprintf(stderr, "%s.%03d fabricd %s: %s\n", stamp, (int)(now / 1000 % 1000), level_names[level], text);
}
