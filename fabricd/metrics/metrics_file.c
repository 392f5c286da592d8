/* metrics_file.c - the metrics in a file, which is replaced as a whole. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/timer.h"
#include "fabricd/metrics/counters.h"
#include "fabricd/metrics/metrics.h"
#include "fabricd/util/file.h"
#include "fabricd/util/log.h"
#include "fabricd/util/loop.h"

#define LATER_MS 15000

struct metrics_file {
    const char *path;
    struct counts *counts;
    metrics_fn tell;
    const void *owner;
    struct timer *arm, *timer;
    bool failed; /* told */
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

void metrics_write(struct metrics_file *file)
{
    if (file == NULL || file->path == NULL)
        return;
    timer_cancel(file->timer);
    count_seen(file->counts); /* what is counted from here on is for the next time */
    char *text = metrics_text(file->tell, file->owner);
    int rc = text == NULL ? ENOMEM : metrics_file_replace(file->path, text);
    if (rc != 0 && !file->failed)
        log_error("metrics: %s: cannot be written: %s", file->path, strerror(rc));
    file->failed = rc != 0;
    free(text);
}

int metrics_file_new(struct event_base *base, const char *path, struct counts *counts, metrics_fn tell,
                     const void *owner, struct metrics_file **out)
{
    struct metrics_file *file = calloc(1, sizeof(*file));
    *out = file;
    if (file == NULL)
        return PMIXFAB_ERR_NOMEM;
    *file = (struct metrics_file){.path = path, .counts = counts, .tell = tell, .owner = owner};
    if (file->path == NULL)
        return PMIXFAB_OK;
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
    count_listen(file->counts, NULL, NULL);
    timer_free(file->arm);
    timer_free(file->timer);
    free(file);
}
