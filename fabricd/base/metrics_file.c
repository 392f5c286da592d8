/* metrics_file.c - the metrics in a file, which is replaced as a whole, and the server that has them, too. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/counts.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/metrics_http.h"
#include "fabricd/base/timer.h"

#define LATER_MS 15000

struct metrics_file {
    struct event_base *base;
    const char *path, *listen; /* NULL: none */
    struct metrics_http *http;
    struct fab_err fault, http_fault; /* "": it is good */
    struct counts *counts;
    metrics_fn tell;
    const void *owner;
    struct timer *arm, *timer;
};

/* On any thread. */
static void on_count(void *arg)
{
    struct metrics_file *file = arg;
    timer_fire(file->arm);
}

static void on_arm(void *arg)
{
    struct metrics_file *file = arg;
    if (!timer_pending(file->timer))
        timer_after(file->timer, LATER_MS);
}

static void metrics_file_on_timeout(void *arg)
{
    metrics_write(arg);
}

/* 0, or why not. A name that the collector does not read, beside the file. */
static int metrics_file_replace(const char *path, const char *text)
{
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
        return ENAMETOOLONG;
    return file_replace(path, beside, text, strlen(text));
}

static void metrics_listen(struct metrics_file *file)
{
    struct fab_err err = {""};
    if (file->listen == NULL || file->http != NULL)
        return;
    const int rc = metrics_http_new(file->base, file->listen, file->tell, file->owner, &file->http, &err);
    if (rc != PMIXFAB_OK && file->http_fault.text[0] == '\0')
        log_error("metrics: cannot listen at %s", err.text);
    file->http_fault = err;
}

const char *metrics_fault(const struct metrics_file *file, unsigned which, const char **where)
{
    const struct fab_err *fault = file == NULL ? NULL : which == 0 ? &file->fault : &file->http_fault;
    if (fault == NULL || fault->text[0] == '\0')
        return NULL;
    *where = which == 0 ? file->path : file->listen;
    return fault->text;
}

void metrics_write(struct metrics_file *file)
{
    struct fab_err err = {""};
    if (file != NULL)
        metrics_listen(file);
    if (file == NULL || file->path == NULL)
        return;
    timer_cancel(file->timer);
    count_seen(file->counts); /* what is counted from here on is for the next time */
    char *text = metrics_text(file->tell, file->owner);
    int rc = text == NULL ? ENOMEM : metrics_file_replace(file->path, text);
    if (rc != 0)
        fab_fail(&err, PMIXFAB_ERR_IO, "cannot be written: %s", strerror(rc));
    if (rc != 0 && file->fault.text[0] == '\0')
        log_error("metrics: %s: %s", file->path, err.text);
    file->fault = err;
    free(text);
}

int metrics_file_new(struct event_base *base, const char *path, const char *listen, struct counts *counts,
                     metrics_fn tell, const void *owner, struct metrics_file **out)
{
    struct metrics_file *file = calloc(1, sizeof(*file));
    *out = file;
    if (file == NULL)
        return PMIXFAB_ERR_NOMEM;
    *file = (struct metrics_file){
        .base = base, .path = path, .listen = listen, .counts = counts, .tell = tell, .owner = owner};
    if (file->path == NULL) {
        metrics_listen(file);
        return PMIXFAB_OK;
    }
    file->arm = timer_new(base, on_arm, file);
    file->timer = timer_new(base, metrics_file_on_timeout, file);
    if (file->arm == NULL || file->timer == NULL)
        return PMIXFAB_ERR_NOMEM;
    count_listen(counts, on_count, file);
    metrics_write(file);
    return PMIXFAB_OK;
}

void metrics_file_free(struct metrics_file *file)
{
    if (file == NULL)
        return;
    metrics_http_free(file->http);
    count_listen(file->counts, NULL, NULL);
    timer_free(file->arm);
    timer_free(file->timer);
    free(file);
}
