#include "fabricd/jobs/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/base/counts.h"
#include "fabricd/base/file_io.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/work.h"
#include "fabricd/store/store.h"

struct backup {
    const struct config *config;
    struct counts *counts;
    struct timer *tell; /* from the thread to the loop */
    struct backup_order order;
    char file[PATH_MAX], part[PATH_MAX];
    struct event_base *base;
    struct work *running; /* NULL: none */
    atomic_bool stop;
    pthread_mutex_t lock; /* protects the next three */
    const char *doing;
    uint64_t bytes, all;
    int code;
    struct store_history_checked checked;
    struct fab_err err;
};

/* ---- the thread -------------------------------------------------------------------------------------- */

static bool backup_on_progress(const char *doing, uint64_t bytes, uint64_t all, void *arg)
{
    struct backup *b = arg;
    pthread_mutex_lock(&b->lock);
    bool other = b->doing != doing || bytes * 10 / (all + 1) != b->bytes * 10 / (b->all + 1);
    b->doing = doing;
    b->bytes = bytes;
    b->all = all;
    pthread_mutex_unlock(&b->lock);
    if (other)
        timer_fire(b->tell);
    return !atomic_load(&b->stop);
}

static bool backup_on_generation(uint64_t done, void *arg)
{
    struct backup *b = arg;
    return backup_on_progress("compared", done << 20, b->order.newest << 20, b);
}

/* Install the complete copy, without overwriting a file that has appeared meanwhile. */
static int backup_install(struct backup *b)
{
    int rc = b->order.force ? rename(b->part, b->file)
                            : renameat2(AT_FDCWD, b->part, AT_FDCWD, b->file, RENAME_NOREPLACE);
    if (rc != 0 && !b->order.force && errno == EINVAL) { /* some file systems do not support it */
        rc = link(b->part, b->file);
        if (rc == 0)
            unlink(b->part);
    }
    int why = rc == 0 ? file_sync_folder(b->file) : errno;
    if (why == 0)
        return PMIXFAB_OK;
    unlink(b->part);
    return fab_fail(&b->err, PMIXFAB_ERR_IO, "backup: %s: cannot be put in place: %s", b->file,
                    strerror(why));
}

static void backup_run(void *arg)
{
    struct backup *b = arg;
    uint64_t bytes = 0;
    const struct store_copy order = {.from = b->order.restore != 0 ? b->file : b->config->store,
                                     .fd = b->order.restore,
                                     .to = b->part,
                                     .progress = backup_on_progress,
                                     .cbdata = b};
    if (b->order.verify) {
        b->code =
            store_verify(b->config->store, b->order.newest, backup_on_generation, b, &b->checked, &b->err);
        bytes = b->checked.checked;
    } else {
        b->code = store_copy(&order, &bytes, &b->err);
    }
    if (b->code == PMIXFAB_OK && b->order.restore == 0 && !b->order.verify)
        b->code = backup_install(b);
    b->bytes = bytes;
}

/* ---- the loop ---------------------------------------------------------------------------------------- */

static void backup_end(struct backup *b)
{
    b->running = NULL;
    if (b->order.restore != 0)
        close(b->order.restore);
    if (b->code == PMIXFAB_OK && b->order.verify) {
        log_info("store: the history matches its digests: %llu generations compared",
                 (unsigned long long)b->checked.checked);
    } else if (b->code == PMIXFAB_OK && b->order.restore != 0) {
        log_info("restore: %s: %llu bytes, checked", b->file, (unsigned long long)b->bytes);
    } else if (b->code == PMIXFAB_OK) {
        log_info("backup: %s: %llu bytes", b->file, (unsigned long long)b->bytes);
        count(b->counts, COUNT_BACKUPS);
    } else {
        log_error("%s", b->err.text);
    }
}

static void backup_on_done(void *arg)
{
    struct backup *b = arg;
    backup_end(b);
    if (b->order.done != NULL)
        b->order.done(b->code, b->err.text, b->bytes, b->order.cbdata);
}

static void on_tell(void *arg)
{
    struct backup *b = arg;
    char line[128];
    if (b->running == NULL)
        return;
    pthread_mutex_lock(&b->lock);
    if (b->bytes < b->all)
        snprintf(line, sizeof(line), "%s %llu of %llu %s", b->doing, (unsigned long long)b->bytes >> 20,
                 (unsigned long long)b->all >> 20, b->order.verify ? "generations" : "MiB");
    else
        snprintf(line, sizeof(line), "checking the copy");
    pthread_mutex_unlock(&b->lock);
    if (b->order.progress != NULL)
        b->order.progress(line, b->order.cbdata);
}

/* Check that the file may be written. Only a backup may be replaced, whichever administrator asks: the daemon
 * can write more files than they may. */
static int backup_check_target(const struct backup *b, bool force, struct fab_err *err)
{
    struct stat st, store;
    if (lstat(b->file, &st) != 0)
        return errno == ENOENT ? PMIXFAB_OK
                               : fab_fail(err, PMIXFAB_ERR_IO, "backup: %s: %s", b->file, strerror(errno));
    if (stat(b->config->store, &store) == 0 && st.st_ino == store.st_ino && st.st_dev == store.st_dev)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT, "backup: %s: this is the store itself", b->file);
    if (!force)
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "backup: %s: exists already: choose another name, or --force to replace it", b->file);
    if (!S_ISREG(st.st_mode) || !store_is_one(b->file))
        return fab_fail(err, PMIXFAB_ERR_CONFLICT,
                        "backup: %s: is not a backup of fabricd, and is not replaced: choose another name",
                        b->file);
    return PMIXFAB_OK;
}

/* Remove the rest of a backup that was killed. */
static void remove_part(const struct backup *b)
{
    struct stat st;
    if (lstat(b->part, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        store_is_unfinished(b->part))
        unlink(b->part);
}

int backup_start(struct backup *b, const struct backup_order *order, struct fab_err *err)
{
    if (order->file[0] != '/')
        return fab_fail(err, PMIXFAB_ERR_SYNTAX,
                        "backup: %.200s: give the whole path: the daemon may be in another folder",
                        order->file);
    if (b->running != NULL)
        return fab_fail(err, PMIXFAB_ERR_BUSY, "backup: one to %s is running: wait for its end", b->file);
    if (snprintf(b->part, sizeof(b->part), "%s.part", order->file) >= (int)sizeof(b->part))
        return fab_fail(err, PMIXFAB_ERR_RANGE, "backup: %.200s...: the path is too long", order->file);
    snprintf(b->file, sizeof(b->file), "%.*s", (int)sizeof(b->file) - 1, order->file);
    if (order->restore != 0)
        store_copy_name(b->part, sizeof(b->part), b->config->store);
    int rc = order->restore != 0 || order->verify ? PMIXFAB_OK : backup_check_target(b, order->force, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (!order->verify)
        remove_part(b);
    b->order = *order;
    b->order.file = b->file;
    b->bytes = b->all = 0;
    b->doing = "copied";
    b->err.text[0] = '\0';
    atomic_store(&b->stop, false);
    b->running = work_run(b->base, backup_run, backup_on_done, b);
    return b->running != NULL ? PMIXFAB_OK
                              : fab_fail(err, PMIXFAB_ERR_NOMEM, "backup: cannot start a thread");
}

const struct store_history_checked *backup_verified(const struct backup *backup)
{
    return &backup->checked;
}

void backup_give_up(struct backup *b)
{
    atomic_store(&b->stop, true);
    b->order.progress = NULL;
    b->order.done = NULL;
}

int backup_new(struct event_base *base, const struct config *config, struct counts *counts,
               struct backup **out, struct fab_err *err)
{
    struct backup *b = calloc(1, sizeof(*b));
    *out = NULL;
    if (b == NULL || (b->tell = timer_new(base, on_tell, b)) == NULL) {
        free(b);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    pthread_mutex_init(&b->lock, NULL);
    b->base = base;
    b->config = config;
    b->counts = counts;
    *out = b;
    return PMIXFAB_OK;
}

void backup_free(struct backup *b)
{
    if (b == NULL)
        return;
    backup_give_up(b);
    if (b->running != NULL) {
        work_wait(b->running);
        backup_end(b);
    }
    timer_free(b->tell);
    pthread_mutex_destroy(&b->lock);
    free(b);
}
