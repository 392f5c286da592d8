/*
 * ops_verify.c - a separate sweep that is compared with the served state and not published.
 *
 * A request during such a sweep waits for the next one, so that no answer is older than its request. When all
 * callers are gone, the sweep is cancelled.
 */
#include <stdlib.h>
#include <utlist.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/timer.h"
#include "fabricd/engine/publish.h"
#include "fabricd/engine/scheduler.h"
#include "fabricd/jobs/history_json.h"
#include "fabricd/operations/ops.h"
#include "fabricd/sources/host_reports.h"
#include "fabricd/sources/host_scan.h"
#include "fabricd/sources/sweep.h"

#define TRIES 3 /* sweeps, when a publication happens during each */

/* A waiting caller. */
struct verify_asking {
    struct pending pending; /* first member */
    struct verify_asking *prev, *next;
    struct ops_parts *parts;
    bool in_time; /* the request came before the running sweep began */
};

static void verify_stop(struct verifying *v)
{
    sweep_cancel(v->sweep);
    v->sweep = NULL;
    timer_free(v->tick);
    v->tick = NULL;
}

static void verify_on_caller_gone(struct pending *pending)
{
    struct verify_asking *asking = (struct verify_asking *)pending;
    struct verifying *v = &asking->parts->verifying;
    DL_DELETE(v->asking, asking);
    connection_answered(pending);
    free(asking);
    if (v->asking == NULL)
        verify_stop(v);
}

/* Answer the callers of this sweep; takes the reference. line NULL: send the error. */
static void verify_answer(struct verifying *v, json_t *line, int code, const char *why)
{
    struct verify_asking *asking, *next, *answered = NULL;
    DL_FOREACH_SAFE(v->asking, asking, next)
    {
        if (!asking->in_time || v->asking == NULL)
            continue;
        DL_DELETE(v->asking, asking);
        DL_APPEND(answered, asking);
        asking->pending.gone = NULL; /* a connection may end with its answer, and all its requests with it */
    }
    DL_FOREACH_SAFE(answered, asking, next)
    {
        struct connection *connection = asking->pending.connection;
        if (connection != NULL && line == NULL)
            connection_fail(connection, code, "verify: %s", why);
        else if (connection != NULL)
            connection_send(connection, json_incref(line));
        connection_answered(&asking->pending);
        free(asking);
    }
    json_decref(line);
}

static json_t *answer_of(const struct ops_parts *parts, const struct fab_diff *diff)
{
    json_t *changes = json_array();
    struct publisher_waits waits;
    publisher_waits(parts->publisher, &waits);
    change_json_diff(diff, clock_now(CLOCK_REALTIME), changes);
    return json_pack("{s:b, s:b, s:I, s:o, s:I, s:I}", "ok", 1, "equal", diff->n == 0, "generation",
                     (json_int_t)parts->verifying.generation, "changes", changes, "suppressed",
                     (json_int_t)waits.suppressed, "suppressed_switches",
                     (json_int_t)waits.suppressed_switches);
}

static void verify_on_swept(struct sweep_result *result, void *arg);

/* Start a sweep for all callers that wait now. */
static int verify_begin(struct ops_parts *parts, struct fab_err *err)
{
    struct verifying *v = &parts->verifying;
    struct verify_asking *asking;
    DL_FOREACH(v->asking, asking)
    {
        asking->in_time = true;
    }
    v->generation = publisher_generation(parts->publisher);
    return sweep_start(parts->base, parts->config, NULL, verify_on_swept, parts, &v->sweep, err);
}

/* Start a sweep for the callers that came during the last one. */
static void verify_next(struct ops_parts *parts)
{
    struct verifying *v = &parts->verifying;
    struct fab_err err = {""};
    v->tries = 0;
    int rc = v->asking == NULL ? PMIXFAB_OK : verify_begin(parts, &err);
    if (rc != PMIXFAB_OK)
        verify_answer(v, NULL, rc, err.text);
    if (v->asking == NULL)
        verify_stop(v);
}

static void verify_on_swept(struct sweep_result *result, void *arg)
{
    struct ops_parts *parts = arg;
    struct verifying *v = &parts->verifying;
    struct fab_diff diff = {0};
    struct fab_err err = result->err;
    json_t *line = NULL;
    int rc = result->code;
    v->sweep = NULL;
    /* A publication during the sweep may be newer than the sweep's data. */
    if (rc == PMIXFAB_OK && v->generation != publisher_generation(parts->publisher) && ++v->tries < TRIES) {
        rc = verify_begin(parts, &err);
        if (rc == PMIXFAB_OK)
            return;
    } else if (rc == PMIXFAB_OK) {
        struct publish_request request = {.inv = &result->inv};
        request.reports = host_reports_all(parts->reports, &request.n_reports);
        rc = publish_verify(parts->publisher, &request, &diff, &err);
        if (rc == PMIXFAB_OK && (line = answer_of(parts, &diff)) == NULL)
            rc = fab_fail(&err, PMIXFAB_ERR_NOMEM, "out of memory");
    }
    verify_answer(v, line, rc, err.text);
    fab_diff_destroy(&diff);
    verify_next(parts);
}

static void on_tick(void *arg)
{
    struct ops_parts *parts = arg;
    struct verifying *v = &parts->verifying;
    struct verify_asking *asking, *next;
    char text[SCHEDULER_PROGRESS_TEXT];
    scheduler_progress_text(parts->scheduler, v->since, text);
    timer_after(v->tick, SCHEDULER_PROGRESS_MS);
    DL_FOREACH_SAFE(v->asking, asking, next)
    {
        connection_progress(asking->pending.connection, text);
    }
}

static int verify_start(struct ops_parts *parts, struct fab_err *err)
{
    struct verifying *v = &parts->verifying;
    v->tries = 0;
    v->since = clock_now(CLOCK_REALTIME);
    v->tick = timer_new(parts->base, on_tick, parts);
    if (v->tick == NULL)
        return fab_fail(err, PMIXFAB_ERR_NOMEM, "out of memory");
    timer_after(v->tick, SCHEDULER_FIRST_PROGRESS_MS);
    return verify_begin(parts, err);
}

void control_op_verify(struct connection *connection, json_t *request)
{
    struct ops_parts *parts = connection->control->owner;
    struct verifying *v = &parts->verifying;
    struct fab_err err = {""};
    (void)request;
    if (!connection_allowed(connection, "verify"))
        return;
    if (!sweep_wanted(parts->config) || publisher_generation(parts->publisher) == 0) {
        connection_fail(connection, PMIXFAB_ERR_NOTFOUND, "verify: %s",
                        sweep_wanted(parts->config) ? "nothing was published yet: see fabricctl status"
                                                    : "no probe of the fabric is configured");
        return;
    }
    log_info("verify requested by uid %u", (unsigned)connection->uid);
    struct verify_asking *asking = calloc(1, sizeof(*asking));
    if (asking == NULL) {
        connection_fail(connection, PMIXFAB_ERR_NOMEM, "verify: out of memory");
        return;
    }
    bool first = v->asking == NULL;
    asking->parts = parts;
    asking->pending.gone = verify_on_caller_gone;
    DL_APPEND(v->asking, asking);
    connection_later(connection, &asking->pending);
    int rc = first ? verify_start(parts, &err) : PMIXFAB_OK;
    if (rc != PMIXFAB_OK) {
        asking->in_time = true;
        verify_answer(v, NULL, rc, err.text);
        verify_stop(v);
    }
}
