/* history_trim.c - docs/design/store.md describes how the age is determined, and when the clock is trusted.
 */
#include "fabricd/jobs/history_trim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/base/work.h"
#include "fabricd/store/store_tables.h"

/* Treat the clock as if it had just jumped. */
static void clock_doubt(struct clock_trust *trust, int64_t boot)
{
    trust->jumped = true;
    trust->jump_at = boot;
}

bool clock_trusted(struct clock_trust *trust, int64_t wall, int64_t boot, int64_t latest)
{
    int64_t offset = wall - boot, jump = offset - trust->offset;
    if (trust->read && (jump > CLOCK_JUMP || jump < -CLOCK_JUMP))
        clock_doubt(trust, boot);
    trust->read = true;
    trust->offset = offset;
    return (!trust->jumped || boot - trust->jump_at >= CLOCK_TRUST) && latest <= wall + CLOCK_JUMP;
}

#define FIRST_MS 1000 /* from a publication to the first step */
#define NEXT_MS  50   /* from one step to the next: the steps take a tenth of the time */
#define BUSY_MS  500
#define QUIET_MS 5000    /* from the last commit until the log is folded into the store */
#define KEPT_MS  3600000 /* between checks of the age of stores of older schemas */
#define MONTH    (30 * CLOCK_TRUST)

struct trim {
    const struct config *config;
    struct counts *counts;
    struct store *store;
    bool (*busy)(void *cbdata);
    void *cbdata;
    struct timer *timer, *kept, *quiet;
    int folded;    /* the last result of folding the log */
    uint64_t rows; /* removed since the first step */
    bool shrinking;
    struct clock_trust clock;
    bool doubted; /* the clock is not trusted, and that was logged */
};

static bool trim_is_clock_trusted(struct trim *trim, int64_t published)
{
    bool believed =
        clock_trusted(&trim->clock, clock_now(CLOCK_REALTIME), clock_now(CLOCK_BOOTTIME), published);
    if (!believed && !trim->doubted)
        log_warning("history: the clock may be wrong, since it was set or has jumped: no change is removed "
                    "for its age until the clock has run for a day");
    trim->doubted = !believed;
    return believed;
}

/* Return the time before which changes are removed; 0: none for their age. */
static int64_t trim_cutoff(struct trim *trim, int64_t published)
{
    if (trim->config->history_days == 0 || !trim_is_clock_trusted(trim, published))
        return 0;
    return published - (int64_t)trim->config->history_days * 86400 * 1000000;
}

static int trim_step(struct trim *trim, bool *more, struct fab_err *err)
{
    struct store_limits limits = {.changes = trim->config->history_changes};
    struct store_trimmed trimmed = {0};
    uint64_t newest;
    int64_t published;
    int rc = store_generation(trim->store, &newest, &published, err);
    if (rc != PMIXFAB_OK)
        return rc;
    if (trim->shrinking)
        return store_shrink(trim->store, more, err);
    limits.before = trim_cutoff(trim, published);
    rc = store_trim(trim->store, &limits, &trimmed, err);
    trim->rows += trimmed.rows;
    if (trimmed.rows > 0)
        count_add(trim->counts, COUNT_TRIMMED, trimmed.rows);
    if (rc == PMIXFAB_OK && !trimmed.more && trim->rows > 0) {
        log_info("history: %llu change%s removed, up to generation %llu", (unsigned long long)trim->rows,
                 trim->rows == 1 ? "" : "s", (unsigned long long)trimmed.trimmed);
        trim->rows = 0;
    }
    trim->shrinking = !trimmed.more;
    *more = true;
    return rc;
}

static void trim_on_timeout(void *arg)
{
    struct trim *trim = arg;
    struct fab_err err = {""};
    bool more = false;
    if (trim->busy(trim->cbdata)) {
        timer_after(trim->timer, BUSY_MS);
        return;
    }
    int64_t start = clock_now(CLOCK_MONOTONIC);
    int rc = trim_step(trim, &more, &err);
    log_debug("history: a step of %.1f ms%s", (double)(clock_now(CLOCK_MONOTONIC) - start) / 1e3,
              more ? "" : ", the last");
    if (rc != PMIXFAB_OK)
        log_warning("history: cannot be trimmed to its bounds: %s", err.text);
    else if (more)
        timer_after(trim->timer, NEXT_MS);
}

/* Remove old stores of older schemas, under the same condition of the clock. */
static void on_kept(void *arg)
{
    struct trim *trim = arg;
    const int64_t now = clock_now(CLOCK_REALTIME);
    timer_after(trim->kept, KEPT_MS);
    if (trim->config->store_keep_days > 0 && trim_is_clock_trusted(trim, 0))
        store_forget_kept(trim->store, now - (int64_t)trim->config->store_keep_days * 86400 * 1000000);
}

/* After a time without writes, fold the log into the store, so that the file alone is complete. */
static void trim_on_quiet(void *arg)
{
    struct trim *trim = arg;
    struct fab_err err = {""};
    int rc = trim->busy(trim->cbdata) ? PMIXFAB_ERR_BUSY : store_checkpoint(trim->store, &err);
    if (rc == PMIXFAB_ERR_BUSY)
        timer_after(trim->quiet, QUIET_MS);
    else if (rc != PMIXFAB_OK && rc != trim->folded)
        log_error("%s", err.text);
    else if (rc == PMIXFAB_OK)
        log_debug("store: its log was folded into it");
    if (rc != PMIXFAB_ERR_BUSY)
        trim->folded = rc;
}

static void trim_on_commit(void *arg)
{
    struct trim *trim = arg;
    timer_after(trim->quiet, QUIET_MS);
}

void trim_soon(struct trim *trim)
{
    if (trim == NULL)
        return;
    trim->shrinking = false;
    if (!timer_pending(trim->timer))
        timer_after(trim->timer, FIRST_MS);
}

/*
 * The state of the clock is lost when the process ends. So at the start, the clock can be distrusted for a
 * day, too. This is done if the clock is a month ahead of the newest generation, as after a boot with a wrong
 * clock. It is also done if the newest generation is a month ahead of the generation before.
 */
static int look_at_clock(struct trim *trim, struct fab_err *err)
{
    const int64_t wall = clock_now(CLOCK_REALTIME), boot = clock_now(CLOCK_BOOTTIME);
    int64_t published[2];
    int rc = store_newest_times(trim->store, published, err);
    clock_trusted(&trim->clock, wall, boot, 0);
    if ((published[0] != 0 && wall - published[0] > MONTH) ||
        (published[1] != 0 && published[0] - published[1] > MONTH))
        clock_doubt(&trim->clock, boot);
    return rc;
}

int trim_new(struct event_base *base, const struct config *config, struct counts *counts, struct store *store,
             bool (*busy)(void *cbdata), void *cbdata, struct trim **out, struct fab_err *err)
{
    *out = NULL;
    struct trim *trim = calloc(1, sizeof(*trim));
    if (trim == NULL || (trim->timer = timer_new(base, trim_on_timeout, trim)) == NULL ||
        (trim->kept = timer_new(base, on_kept, trim)) == NULL ||
        (trim->quiet = timer_new(base, trim_on_quiet, trim)) == NULL) {
        trim_free(trim);
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    trim->config = config;
    trim->counts = counts;
    trim->store = store;
    trim->busy = busy;
    trim->cbdata = cbdata;
    timer_after(trim->kept, FIRST_MS);
    timer_after(trim->quiet, QUIET_MS);
    store_on_commit(store, trim_on_commit, trim);
    int rc = look_at_clock(trim, err);
    if (rc == PMIXFAB_OK)
        *out = trim;
    else
        trim_free(trim);
    return rc;
}

void trim_free(struct trim *trim)
{
    if (trim == NULL)
        return;
    if (trim->store != NULL)
        store_on_commit(trim->store, NULL, NULL);
    timer_free(trim->timer);
    timer_free(trim->kept);
    timer_free(trim->quiet);
    free(trim);
}

/* ---- comparison of the history with its digests ---- */

struct history_check {
    void (*changed)(void *cbdata);
    void *cbdata;
    struct work *work; /* NULL: it has ended */
    const char *path;
    uint64_t newest;
    atomic_bool left;
    int code;
    struct fab_err err;
};

static bool history_check_goes_on(uint64_t done, void *arg)
{
    const struct history_check *check = arg;
    (void)done;
    return !atomic_load(&check->left);
}

static void history_check_run(void *arg)
{
    struct history_check *check = arg;
    struct store_history_checked checked;
    check->code =
        store_verify(check->path, check->newest, history_check_goes_on, check, &checked, &check->err);
}

static void history_check_done(void *arg)
{
    struct history_check *check = arg;
    check->work = NULL;
    if (check->code == PMIXFAB_OK)
        return;
    log_line(check->code == PMIXFAB_ERR_CORRUPT ? PMIXFAB_LOG_ERROR : PMIXFAB_LOG_WARNING,
             "check of the history: %s", check->err.text);
    check->changed(check->cbdata);
}

struct history_check *history_check_new(struct event_base *base, const char *path, uint64_t newest,
                                        void (*changed)(void *cbdata), void *cbdata)
{
    struct history_check *check = calloc(1, sizeof(*check));
    if (check == NULL)
        return NULL;
    check->changed = changed;
    check->cbdata = cbdata;
    check->path = path;
    check->newest = newest;
    check->work = work_run(base, history_check_run, history_check_done, check);
    return check;
}

void history_check_free(struct history_check *check)
{
    if (check == NULL)
        return;
    atomic_store(&check->left, true);
    work_wait(check->work);
    free(check);
}

const char *history_check_fault(const struct history_check *check)
{
    return check != NULL && check->work == NULL && check->code == PMIXFAB_ERR_CORRUPT ? check->err.text
                                                                                      : NULL;
}
