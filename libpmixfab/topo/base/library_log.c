/* library_log.c - the process's log callback. */
#include "topo/base/library_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topo/base/text.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pmixfab_log_fn callback;
static void *callback_data;

void pmixfab_set_log(pmixfab_log_fn fn, void *cbdata)
{
    pthread_mutex_lock(&lock);
    callback = fn;
    callback_data = cbdata;
    pthread_mutex_unlock(&lock);
}

void fab_log(enum pmixfab_level level, const char *fmt, ...)
{
    char line[1001];
    va_list args;

    /* call it without the lock, so that the callback may log or install another one */
    pthread_mutex_lock(&lock);
    pmixfab_log_fn fn = callback;
    void *data = callback_data;
    pthread_mutex_unlock(&lock);
    if (fn == NULL)
        return;

    va_start(args, fmt);
    if (vsnprintf(line, sizeof(line), fmt, args) < 0)
        line[0] = '\0';
    va_end(args);
    fab_text_clean(line, sizeof(line), line, strlen(line), NULL);
    fn(level, line, data);
}
