#include "fabricd/jobs/history_check.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "fabricd/base/log.h"
#include "fabricd/base/work.h"
#include "fabricd/store/store.h"

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
