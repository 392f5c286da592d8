#include "fabricd/node/node_deliver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/counts.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"
#include "fabricd/node/node_state.h"
#include "fabricd/node/node_wait.h"
#include "topo/base/backoff.h"
#include "topo/base/text.h"
#include "topo/model/delivery.h"

#define DELIVER_MS     30000 /* timeout of an attempt: each munged may need 10 s */
#define ONCE_MS        5000  /* ... with --once, waiting for a connection included */
#define FIRST_PAUSE_MS 200
#define MAX_PAUSE_MS   30000
#define REFUSED_MS     300000 /* a refused report is retried after that time, or when it changes */

struct deliver {
    struct event_base *base;
    const struct config *config;
    struct counts *counts;
    struct channel_client *client;
    struct deliver_calls calls;
    struct timer *again;
    struct node_state keep;  /* the report; to be delivered once status.digest is set */
    struct fab_report acked; /* the report that the scheduler holds: base of a delta */
    uint64_t acked_digest;
    struct state_announced sent; /* the delivery that waits for its answer; digest 0: none */
    bool sent_delta;
    uint64_t kept; /* digest of the report in the file; 0: none */
    bool must, connected;
    int no_entry; /* code and reason why the scheduler rejects connections of this host; 0: it does not */
    char no_entry_reason[480];
    struct backoff pause; /* milliseconds */
    struct deliver_status status;
};

static void try_now(struct deliver *d);

static void after_a_pause(struct deliver *d)
{
    wait_at_random(d->again, (unsigned)backoff_next(&d->pause));
}

/* ---- the end of an attempt ---------------------------------------------------------------------- */

/* Store the scheduler's reason without control characters, since it goes into our log and status. */
static void upload_set_reason(struct deliver *d, const char *reason)
{
    char clean[sizeof(d->status.reason)];
    fab_text_clean(clean, sizeof(clean), reason, strlen(reason), NULL);
    memcpy(d->status.reason, clean, sizeof(clean));
}

static void upload_succeeded(struct deliver *d)
{
    if (d->status.reason[0] != '\0')
        log_info("deliver: acknowledged");
    d->must = d->status.under_way = d->status.refused = false;
    d->status.reason[0] = '\0';
    timer_cancel(d->again);
    d->calls.done(PMIXFAB_OK, "", d->calls.cbdata);
}

/* Note a failure that is retried after a pause, or when there is a connection. */
static void upload_failed(struct deliver *d, int code, const char *reason)
{
    bool told = strcmp(d->status.reason, reason) == 0;
    upload_set_reason(d, reason);
    d->status.refused = false;
    if (!told && d->connected) /* a missing connection is logged elsewhere */
        log_warning("deliver: %s", d->status.reason);
    if (d->connected)
        after_a_pause(d);
    d->calls.done(code, d->status.reason, d->calls.cbdata);
}

/* Note a refusal that an early retry would not change. */
static void upload_rejected(struct deliver *d, int code, const char *reason)
{
    bool told = d->status.refused && strcmp(d->status.reason, reason) == 0;
    upload_set_reason(d, reason);
    d->status.refused = true;
    if (!told)
        log_error("deliver: refused: %s", d->status.reason);
    wait_at_random(d->again, REFUSED_MS);
    d->calls.done(code, d->status.reason, d->calls.cbdata);
}

/* Keep a copy of the report that the scheduler holds bit by bit, as the base of a delta. */
static void remember_acked(struct deliver *d)
{
    struct fab_report copy;
    const uint64_t digest = d->keep.announced.digest;
    if (digest != d->acked_digest && fab_report_copy(&copy, &d->keep.report) == PMIXFAB_OK) {
        fab_report_destroy(&d->acked);
        d->acked = copy;
        d->acked_digest = digest;
    }
}

/* Return whether the scheduler has all our data. For sources that are unknown to us it holds more. */
static bool is_told(const struct deliver *d)
{
    const struct state_announced *told = &d->keep.announced;
    if (told->digest == 0 || told->failed != d->keep.failed || told->unknown != d->keep.unknown)
        return false;
    return d->status.acked == d->status.digest ||
           (d->keep.unknown != 0 && told->digest == d->status.digest && told->acked == d->status.acked);
}

static void upload_acked(struct deliver *d, const struct state_announced *sent)
{
    d->status.delivered = clock_now(CLOCK_REALTIME);
    count(d->counts, COUNT_DELIVERIES);
    d->keep.announced = *sent;
    d->keep.announced.acked = d->status.acked;
    if (sent->digest == d->status.acked && sent->digest == d->status.digest)
        remember_acked(d);
    deliver_state(d);
    log_debug("deliver: acknowledged %016llx", (unsigned long long)sent->digest);
    if (is_told(d))
        upload_succeeded(d);
    else if (sent->digest != d->status.digest || sent->failed != d->keep.failed ||
             sent->unknown != d->keep.unknown)
        try_now(d); /* the report has changed meanwhile */
    else
        upload_failed(
            d, PMIXFAB_ERR_CONFLICT,
            "the scheduler holds another report of this host: check that no other node has its name");
}

bool deliver_may_pass(int code)
{
    return code == PMIXFAB_ERR_BUSY || code == PMIXFAB_ERR_TIMEOUT || code == PMIXFAB_ERR_UNREACH ||
           code == PMIXFAB_ERR_NOMEM || code == PMIXFAB_ERR_IO;
}

static void upload_on_answer(struct channel_reply *reply, void *cbdata)
{
    struct deliver *d = cbdata;
    const struct state_announced sent = d->sent;
    struct channel_outcome outcome;
    const char *reason = reply->reason;
    int code = reply->code;
    if (code == PMIXFAB_OK && channel_get_outcome(reply->body, reply->size, &outcome) == PMIXFAB_OK) {
        code = outcome.code;
        reason = outcome.reason;
        d->status.acked = outcome.held;
    } else if (code == PMIXFAB_OK) {
        code = PMIXFAB_ERR_FOREIGN;
        reason = "the scheduler's answer is invalid";
    }
    d->sent.digest = 0;
    if (code == PMIXFAB_OK) {
        upload_acked(d, &sent);
    } else if (code == PMIXFAB_ERR_CONFLICT && d->sent_delta) {
        log_debug("deliver: the scheduler does not hold the base of the delta: sending the whole report");
        d->acked_digest = 0;
        try_now(d);
    } else if (deliver_may_pass(code)) {
        upload_failed(d, code, reason);
    } else {
        upload_rejected(d, code, reason);
    }
}

/* ---- an attempt --------------------------------------------------------------------------------- */

/* Encode a delivery: a delta if we have a copy of the report that the scheduler holds. */
static int make_bytes(struct deliver *d, void **bytes, size_t *size)
{
    struct fab_delivery delivery = {
        .digest = d->status.digest, .failed = d->keep.failed, .unknown = d->keep.unknown};
    void *body = NULL;
    memcpy(delivery.host, d->keep.report.host, sizeof(delivery.host));
    d->sent_delta =
        d->acked_digest != 0 && d->acked_digest == d->status.acked && d->status.acked != d->status.digest;
    int rc;
    if (d->sent_delta) {
        delivery.base = d->acked_digest;
        rc = fab_report_delta(&d->acked, &d->keep.report, &body, &delivery.size);
    } else {
        rc = fab_report_encode(&d->keep.report, &body, &delivery.size);
    }
    delivery.body = body;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_encode(&delivery, bytes, size);
    free(body);
    return rc;
}

static void send_report(struct deliver *d)
{
    void *bytes = NULL;
    size_t size;
    char text[200];
    int rc = make_bytes(d, &bytes, &size);
    if (rc != PMIXFAB_OK) {
        snprintf(text, sizeof(text), "cannot encode the report: %s", pmixfab_strerror(rc));
        upload_rejected(d, rc, text);
        return;
    }
    log_debug("deliver: %s, %zu bytes", d->sent_delta ? "a delta" : "the whole report", size);
    rc = channel_client_ask(d->client, CHANNEL_DELIVER, bytes, size, CHANNEL_MAX_WORDS,
                            d->config->once ? ONCE_MS : DELIVER_MS, upload_on_answer, d);
    if (rc == PMIXFAB_OK)
        d->sent = (struct state_announced){
            .digest = d->status.digest, .failed = d->keep.failed, .unknown = d->keep.unknown};
    else
        upload_failed(d, rc, pmixfab_strerror(rc));
}

static void try_now(struct deliver *d)
{
    if (d->sent.digest != 0 || d->status.digest == 0)
        return; /* the end of that attempt triggers the next one */
    if (!d->must && is_told(d)) {
        upload_succeeded(d);
        return;
    }
    d->status.under_way = true;
    timer_cancel(d->again);
    if (d->no_entry != PMIXFAB_OK)
        upload_rejected(d, d->no_entry, d->no_entry_reason);
    else if (d->connected || d->config->once) /* --once waits for a connection as long as for an answer */
        send_report(d);
    else
        upload_failed(d, PMIXFAB_ERR_UNREACH, "the scheduler cannot be reached");
}

static void upload_on_retry(void *arg)
{
    struct deliver *d = arg;
    if (d->status.under_way)
        try_now(d);
}

/* ---- requests ------------------------------------------------------------------------------------- */

void deliver_heard(struct deliver *d, uint64_t acked, bool scan, bool at_once)
{
    bool news = acked != d->status.acked || scan;
    d->status.acked = acked;
    if (!news && !at_once)
        backoff_reset(&d->pause); /* no news for a while */
    if (scan) {
        log_info("deliver: the scheduler requests a scan");
        d->calls.scan(d->calls.cbdata); /* the scan may fail, so a report that the scheduler lacks is sent
                                           below in any case */
    }
    if (news && d->sent.digest == 0 && d->status.digest != 0 && !is_told(d) && !d->status.refused) {
        log_info("deliver: the scheduler does not hold this host's report");
        d->status.under_way = true;
        after_a_pause(d); /* the scheduler sends this request to all nodes at once */
    }
}

uint64_t deliver_acked(const struct deliver *d)
{
    return d->status.acked;
}

void deliver_refused(struct deliver *d, int code, const char *reason)
{
    d->no_entry = code;
    snprintf(d->no_entry_reason, sizeof(d->no_entry_reason), "%s", reason);
    if (code != PMIXFAB_OK && d->sent.digest == 0 && d->status.under_way)
        upload_rejected(d, code, reason);
}

/* ---- for the node ------------------------------------------------------------------------------- */

void deliver_connected(struct deliver *d, bool connected)
{
    bool back = connected && !d->connected;
    d->connected = connected;
    d->no_entry = connected ? PMIXFAB_OK : d->no_entry;
    if (!back)
        return;
    backoff_reset(&d->pause);
    if (d->keep.failed != 0 && d->status.digest != 0) { /* a restarted scheduler has lost that state */
        d->keep.announced.digest = 0;
        d->status.under_way = true;
    }
    if (d->status.under_way && d->sent.digest == 0)
        after_a_pause(d);
}

void deliver_report(struct deliver *d, struct fab_report *report, uint32_t failed, uint32_t unknown,
                    bool must)
{
    uint64_t digest = fab_report_digest(report);
    if (digest != d->status.digest) {
        backoff_reset(&d->pause);
        d->status.refused = false;
    }
    const bool other = digest != d->kept || failed != d->keep.failed || unknown != d->keep.unknown;
    fab_report_destroy(&d->keep.report);
    d->keep.report = *report;
    fab_report_init(report);
    d->keep.failed = failed;
    d->keep.unknown = unknown;
    d->status.digest = digest;
    if (failed != d->keep.announced.failed) /* if the answer gets lost, the scheduler's state is not known */
        d->keep.announced.digest = 0;
    if (other)
        deliver_state(d);
    d->must |= must;
    try_now(d);
}

const struct fab_report *deliver_current(const struct deliver *d, uint32_t *unknown)
{
    *unknown = d->keep.unknown;
    return d->keep.report.finished ? &d->keep.report : NULL;
}

void deliver_state(struct deliver *d)
{
    struct fab_err err = {""};
    if (!d->keep.report.finished)
        return;
    if (node_state_write(d->config->rundir, &d->keep, &err) == PMIXFAB_OK)
        d->kept = fab_report_digest(&d->keep.report);
    else
        log_error("deliver: %s", err.text);
}

/* A report from before the restart is delivered only after a new scan. */
static void load_state(struct deliver *d)
{
    struct fab_err err = {""};
    if (node_state_read(d->config->rundir, d->config->host, &d->keep, &err) != PMIXFAB_OK)
        log_error("deliver: %s", err.text);
    if (!d->keep.report.finished)
        return;
    d->kept = fab_report_digest(&d->keep.report);
    if (d->keep.announced.digest == d->kept && d->keep.announced.acked == d->kept)
        remember_acked(d);
    if (d->keep.announced.failed != 0) /* the scheduler may have been restarted and lost it */
        d->keep.announced.digest = 0;
    log_debug("deliver: the report from before the restart is %016llx", (unsigned long long)d->kept);
}

void deliver_status(const struct deliver *d, struct deliver_status *out)
{
    *out = d->status;
    out->unknown = d->keep.unknown;
}

int deliver_new(struct event_base *base, const struct config *config, struct counts *counts,
                struct channel_client *client, const struct deliver_calls *calls, struct deliver **out)
{
    struct deliver *d = *out = calloc(1, sizeof(*d));
    if (d == NULL)
        return PMIXFAB_ERR_NOMEM;
    *d = (struct deliver){.base = base,
                          .config = config,
                          .counts = counts,
                          .client = client,
                          .calls = *calls,
                          .pause = {.first = FIRST_PAUSE_MS, .most = MAX_PAUSE_MS}};
    fab_report_init(&d->acked);
    load_state(d);
    d->again = timer_new(base, upload_on_retry, d);
    if (d->again != NULL)
        return PMIXFAB_OK;
    deliver_free(d);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void deliver_free(struct deliver *d)
{
    if (d == NULL)
        return;
    timer_free(d->again);
    fab_report_destroy(&d->keep.report);
    fab_report_destroy(&d->acked);
    free(d);
}
