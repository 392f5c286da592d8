#include "fabricd/jobs/slurm_rounds.h"

#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/control/connection.h"
#include "fabricd/jobs/hook.h"
#include "fabricd/process/child.h"

#define SECOND              INT64_C(1000000)
#define SLURM_REMARKED      3   /* exit status of diff --quiet: no difference, and a remark */
#define SLURM_APPLY_SECONDS 600 /* a reconfigure of a large slurmctld takes minutes */

/* A file for Slurm. */
struct slurm_file {
    char *path;
    bool fresh;            /* not compared since it was written */
    unsigned failures;     /* comparisons in a row that found a difference or failed */
    int64_t ended;         /* end of the last comparison, microseconds of CLOCK_MONOTONIC; 0: none yet */
    int64_t agreed;        /* time of the last agreement, microseconds since 1970; 0: none yet */
    int64_t since;         /* time of the first failure in a row */
    struct fab_err err;    /* of the last comparison, if it failed */
    struct fab_err remark; /* of the last diff that found no difference; "": none */
};

struct slurm_rounds {
    struct event_base *base;
    const struct config *config;
    const char *program;
    void (*changed)(void *cbdata);
    void *cbdata;
    struct timer *timer;
    struct child *child;
    struct slurm_file *running;
    bool held, applying; /* applying: the child runs apply */
    unsigned n;
    struct slurm_file files[CONFIG_MAX_LIST];
};

/* Return the number of failures in a row from which on a difference is a finding. */
static unsigned slurm_patience(const struct slurm_rounds *r)
{
    return r->config->slurm_apply ? 1 : 2;
}

/* Return the microseconds until the next comparison; 0 or less: it is due. */
static int64_t slurm_wait(const struct slurm_rounds *r, const struct slurm_file *file)
{
    const int64_t round = r->config->slurm_round;
    const bool again = file->failures > 0 && file->failures < slurm_patience(r);
    const int64_t pause = again && SLURM_AGAIN < round ? SLURM_AGAIN : round;
    if (file->fresh || file->ended == 0)
        return 0;
    return file->ended + pause * SECOND - clock_now(CLOCK_MONOTONIC);
}

static void slurm_go_on(struct slurm_rounds *r);

static void slurm_end(struct slurm_rounds *r, const struct fab_err *err)
{
    struct slurm_file *file = r->running;
    const bool differed = file->failures >= slurm_patience(r);
    const bool another = err != NULL && strcmp(err->text, file->err.text) != 0;
    r->running = NULL;
    file->ended = clock_now(CLOCK_MONOTONIC);
    if (err == NULL) {
        if (differed)
            log_info("slurm: Slurm agrees with %s again", file->path);
        file->failures = 0;
        file->err.text[0] = '\0';
        file->agreed = clock_now(CLOCK_REALTIME);
    } else {
        if (file->failures++ == 0)
            file->since = clock_now(CLOCK_REALTIME);
        file->err = *err;
        if (file->failures >= slurm_patience(r) && (!differed || another))
            log_warning("%s", err->text);
    }
    if (differed != (file->failures >= slurm_patience(r)) || (differed && another))
        r->changed(r->cbdata);
    slurm_go_on(r);
}

static void slurm_start(struct slurm_rounds *r, struct slurm_file *file, bool apply);

/* Keep the line about nodes or switches that only one side has; NULL: there are none. */
static void slurm_remark(struct slurm_rounds *r, const struct fab_err *remark)
{
    struct slurm_file *file = r->running;
    const struct fab_err none = {""};
    remark = remark != NULL ? remark : &none;
    if (strcmp(remark->text, file->remark.text) == 0)
        return;
    file->remark = *remark;
    r->changed(r->cbdata);
}

static void slurm_on_ended(struct child_result *result, void *arg)
{
    struct slurm_rounds *r = arg;
    const bool remarked = !r->applying && result->exit_status == SLURM_REMARKED;
    r->child = NULL;
    if (r->applying && result->code == PMIXFAB_OK) { /* apply reports no remarks */
        slurm_start(r, r->running, false);
        return;
    }
    if (remarked || result->code == PMIXFAB_OK)
        slurm_remark(r, remarked ? &result->err : NULL);
    slurm_end(r, remarked || result->code == PMIXFAB_OK ? NULL : &result->err);
}

static void slurm_start(struct slurm_rounds *r, struct slurm_file *file, bool apply)
{
    /* apply --quiet writes no line about a repeated failure, and diff without it writes many */
    const char *const words[] = {
        "fabricctl",
        "slurm",
        apply ? "apply" : "diff",
        file->path,
        !apply                    ? "--quiet"
        : r->config->slurm_repair ? "--repair"
                                  : NULL,
    };
    const unsigned deadline = r->config->export_deadline;
    const struct child_order order = {
        .what = "slurm",
        .program = r->program,
        .deadline = apply && deadline < SLURM_APPLY_SECONDS ? SLURM_APPLY_SECONDS : deadline,
        .done = slurm_on_ended,
        .cbdata = r};
    struct config_list list = {.n = 0};
    struct fab_err err = {""};
    int rc = PMIXFAB_OK;
    for (size_t i = 0; rc == PMIXFAB_OK && i < sizeof(words) / sizeof(words[0]) && words[i] != NULL; i++)
        rc = config_append(&list, words[i]);
    r->running = file;
    r->applying = apply;
    file->fresh = false;
    rc = rc != PMIXFAB_OK ? fab_fail(&err, rc, "slurm: out of memory")
                          : hook_start_program(r->base, r->config, 0, &list, order, &r->child, &err);
    config_clear(&list);
    if (rc != PMIXFAB_OK)
        slurm_end(r, &err);
}

/* Start the comparison that is due, or set the timer for the next one. */
static void slurm_go_on(struct slurm_rounds *r)
{
    struct slurm_file *next = NULL;
    int64_t wait = 0;
    if (r->running != NULL || r->held || r->config->slurm_round == 0)
        return;
    for (unsigned i = 0; i < r->n; i++)
        if (next == NULL || slurm_wait(r, &r->files[i]) < wait) {
            next = &r->files[i];
            wait = slurm_wait(r, next);
        }
    if (next != NULL && wait <= 0)
        slurm_start(r, next, r->config->slurm_apply);
    else if (next != NULL)
        timer_after(r->timer, wait / 1000 + 1);
}

static void slurm_on_time(void *arg)
{
    slurm_go_on(arg);
}

void slurm_rounds_file(struct slurm_rounds *r, const char *path, const char *format)
{
    struct slurm_file *file = NULL;
    if (r == NULL || strncmp(format, "slurm-", strlen("slurm-")) != 0)
        return;
    for (unsigned i = 0; i < r->n && file == NULL; i++)
        if (strcmp(r->files[i].path, path) == 0)
            file = &r->files[i];
    if (file == NULL && r->n < CONFIG_MAX_LIST && (r->files[r->n].path = strdup(path)) != NULL)
        file = &r->files[r->n++];
    if (file == NULL)
        return;
    file->fresh = true;
    slurm_go_on(r);
}

void slurm_rounds_hold(struct slurm_rounds *r, bool hold)
{
    if (r == NULL)
        return;
    r->held = hold;
    slurm_go_on(r);
}

void slurm_rounds_reload(struct slurm_rounds *r)
{
    if (r == NULL)
        return;
    slurm_go_on(r);
    r->changed(r->cbdata);
}

bool slurm_rounds_busy(const struct slurm_rounds *r)
{
    for (unsigned i = 0; r != NULL && !r->held && r->config->slurm_round > 0 && i < r->n; i++)
        if (r->files[i].fresh || r->running == &r->files[i])
            return true;
    return false;
}

static bool slurm_differs(const struct slurm_rounds *r, const struct slurm_file *file)
{
    return r->config->slurm_round > 0 && file->failures >= slurm_patience(r);
}

void slurm_rounds_differing(const struct slurm_rounds *r,
                            void (*fn)(const char *path, const char *why, bool differs, void *cbdata),
                            void *cbdata)
{
    for (unsigned i = 0; r != NULL && i < r->n; i++)
        if (slurm_differs(r, &r->files[i]))
            fn(r->files[i].path, r->files[i].err.text, true, cbdata);
        else if (r->config->slurm_round > 0 && r->files[i].remark.text[0] != '\0')
            fn(r->files[i].path, r->files[i].remark.text, false, cbdata);
}

json_t *slurm_rounds_json(const struct slurm_rounds *r)
{
    json_t *list = json_array();
    for (unsigned i = 0; r != NULL && r->config->slurm_round > 0 && i < r->n; i++) {
        const struct slurm_file *file = &r->files[i];
        const bool differs = slurm_differs(r, file);
        json_array_append_new(list, json_pack("{s:s, s:b, s:o, s:o, s:o}", "file", file->path, "differs",
                                              differs, "agreed", control_time(file->agreed), "since",
                                              control_time(differs ? file->since : 0), "why",
                                              differs ? json_string(file->err.text) : json_null()));
    }
    return list;
}

int slurm_rounds_new(struct event_base *base, const struct config *config, const char *program,
                     void (*changed)(void *cbdata), void *cbdata, struct slurm_rounds **out,
                     struct fab_err *err)
{
    struct slurm_rounds *r = *out = calloc(1, sizeof(*r));
    if (r == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    *r = (struct slurm_rounds){
        .base = base, .config = config, .program = program, .changed = changed, .cbdata = cbdata};
    r->timer = timer_new(base, slurm_on_time, r);
    return r->timer == NULL ? fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory") : PMIXFAB_OK;
}

void slurm_rounds_free(struct slurm_rounds *r)
{
    if (r == NULL)
        return;
    child_cancel(r->child);
    timer_free(r->timer);
    for (unsigned i = 0; i < r->n; i++)
        free(r->files[i].path);
    free(r);
}
