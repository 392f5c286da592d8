#include "fabricd/node_deliver.h"

#include <munge.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabricd/count.h"
#include "fabricd/log.h"
#include "topo/delivery.h"
#include "topo/text.h"

#define DELIVER_MS     15000 /* until an attempt is given up */
#define ONCE_MS        5000  /* ... with --once, waiting for a connection included */
#define ORDERS_MS      (RELAY_WATCH_SECONDS * 1000 + 10000)
#define FIRST_PAUSE_MS 200
#define MAX_PAUSE_MS   30000
#define REFUSED_MS     300000 /* what was refused is tried again after that, or when it changes */
#define ODD_PAUSE_MS   1000   /* before the next question, where an answer was not as agreed */
#define MAX_QUICK      4      /* so many in turn may come within that time */

struct deliver {
    const struct config *config;
    struct mail *mail;
    struct deliver_calls calls;
    struct event *again, *ask_orders;
    struct fab_report report; /* to be delivered */
    struct fab_report acked;  /* what the scheduler acknowledged last: a change can be told against it */
    uint64_t acked_digest;
    uint64_t sent; /* digest of what is on its way; 0: nothing is */
    bool sent_delta;
    bool must, connected, ordering; /* ordering: the question for orders is open */
    int64_t ordered;                /* when it was asked */
    unsigned quick;                 /* answers in turn that came at once */
    unsigned pause_ms;
    struct deliver_status status;
};

static void try_now(struct deliver *d);

static int64_t microseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* From half of it to one and a half: a thousand nodes do not come back at the same moment. */
static void after(struct event *event, unsigned milliseconds)
{
    uint32_t chance;
    evutil_secure_rng_get_bytes(&chance, sizeof(chance));
    unsigned ms = milliseconds / 2 + chance % (milliseconds + 1);
    const struct timeval pause = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    event_add(event, &pause);
}

static void after_a_pause(struct deliver *d)
{
    after(d->again, d->pause_ms);
    d->pause_ms = d->pause_ms * 2 > MAX_PAUSE_MS ? MAX_PAUSE_MS : d->pause_ms * 2;
}

/* ---- the end of an attempt ---------------------------------------------------------------------- */

/* The scheduler's words stand in our log and status: what is not text does not. */
static void keep_reason(struct deliver *d, const char *reason)
{
    char clean[sizeof(d->status.reason)];
    fab_text_clean(clean, sizeof(clean), reason, strlen(reason), NULL);
    memcpy(d->status.reason, clean, sizeof(clean));
}

static void succeed(struct deliver *d)
{
    if (d->status.reason[0] != '\0')
        log_info("deliver: acknowledged");
    d->must = d->status.under_way = d->status.refused = false;
    d->status.reason[0] = '\0';
    evtimer_del(d->again);
    d->calls.done(PMIXFAB_OK, "", d->calls.cbdata);
}

/* It is tried again after a pause, or when there is a connection. */
static void fail(struct deliver *d, int code, const char *reason)
{
    bool told = strcmp(d->status.reason, reason) == 0;
    keep_reason(d, reason);
    d->status.refused = false;
    if (!told && d->connected) /* that there is no connection is said by others */
        log_warning("deliver: %s", d->status.reason);
    if (d->connected)
        after_a_pause(d);
    d->calls.done(code, d->status.reason, d->calls.cbdata);
}

/* Trying again soon would change nothing. */
static void refuse(struct deliver *d, int code, const char *reason)
{
    bool told = d->status.refused && strcmp(d->status.reason, reason) == 0;
    keep_reason(d, reason);
    d->status.refused = true;
    if (!told)
        log_error("deliver: refused: %s", d->status.reason);
    after(d->again, REFUSED_MS);
    d->calls.done(code, d->status.reason, d->calls.cbdata);
}

static bool may_pass(int code)
{
    return code == PMIXFAB_ERR_BUSY || code == PMIXFAB_ERR_TIMEOUT || code == PMIXFAB_ERR_UNREACH ||
           code == PMIXFAB_ERR_NOMEM || code == PMIXFAB_ERR_IO;
}

static void acknowledged(struct deliver *d, uint64_t sent)
{
    struct fab_report copy;
    d->status.delivered = microseconds(CLOCK_REALTIME);
    count(COUNT_DELIVERIES);
    if (sent == d->status.held && sent != d->acked_digest && sent == d->status.digest &&
        fab_report_copy(&copy, &d->report) == PMIXFAB_OK) {
        fab_report_destroy(&d->acked);
        d->acked = copy;
        d->acked_digest = sent;
    }
    log_debug("deliver: acknowledged %016llx", (unsigned long long)sent);
    if (sent == d->status.digest && sent == d->status.held)
        succeed(d);
    else if (sent != d->status.digest)
        try_now(d); /* there is another one meanwhile */
    else
        fail(d, PMIXFAB_ERR_CONFLICT,
             "the scheduler holds another report of this host: does another node have its name?");
}

/* What the scheduler said: code, reason, and what it holds. False: it is no fabricd's answer. */
static bool read_answer(struct mail_answer *answer, int *code, const char **reason, uint64_t *held)
{
    const pmix_value_t *c = mail_value(answer, RELAY_CODE, PMIX_INT32);
    const pmix_value_t *r = mail_value(answer, RELAY_REASON, PMIX_STRING);
    const pmix_value_t *h = mail_value(answer, RELAY_DIGEST, PMIX_UINT64);
    if (c == NULL || r == NULL || r->data.string == NULL || h == NULL)
        return false;
    *code = c->data.int32;
    *reason = r->data.string;
    *held = h->data.uint64;
    return true;
}

/* What the relay or the library says instead of the scheduler. */
static int error_of(pmix_status_t status, const char **reason)
{
    switch (status) {
    case PMIX_ERR_UNREACH:
        *reason = "the scheduler cannot be reached";
        return PMIXFAB_ERR_UNREACH;
    case PMIX_ERR_TIMEOUT:
        *reason = "the scheduler does not answer in time";
        return PMIXFAB_ERR_TIMEOUT;
    case PMIX_ERR_NOT_AVAILABLE:
        *reason = "the scheduler takes no deliveries now";
        return PMIXFAB_ERR_BUSY;
    default:
        *reason = "the scheduler takes no deliveries: is it older than this fabricd?";
        return PMIXFAB_ERR_UNSUPPORTED;
    }
}

static void on_delivered(struct mail_answer *answer, void *cbdata)
{
    struct deliver *d = cbdata;
    uint64_t sent = d->sent;
    bool delta = d->sent_delta;
    int code = 0;
    const char *reason = "";
    d->sent = 0;
    if (answer->status != PMIX_SUCCESS) {
        code = error_of(answer->status, &reason);
    } else if (!read_answer(answer, &code, &reason, &d->status.held)) {
        code = PMIXFAB_ERR_FOREIGN;
        reason = "the scheduler's answer is not what a fabricd says";
    }
    if (code == PMIXFAB_OK) {
        acknowledged(d, sent);
    } else if (code == PMIXFAB_ERR_CONFLICT && delta) {
        log_debug("deliver: the scheduler does not hold what we thought: it gets the whole");
        d->acked_digest = 0;
        try_now(d);
    } else if (may_pass(code)) {
        fail(d, code, reason);
    } else {
        refuse(d, code, reason);
    }
}

/* ---- an attempt --------------------------------------------------------------------------------- */

/* The bytes of a delivery; what changed, where the scheduler holds what we have a copy of. */
static int make_bytes(struct deliver *d, void **bytes, size_t *size)
{
    struct fab_delivery delivery = {.digest = d->status.digest};
    void *body = NULL;
    memcpy(delivery.host, d->report.host, sizeof(delivery.host));
    d->sent_delta =
        d->acked_digest != 0 && d->acked_digest == d->status.held && d->status.held != d->status.digest;
    int rc;
    if (d->sent_delta) {
        delivery.base = d->acked_digest;
        rc = fab_report_delta(&d->acked, &d->report, &body, &delivery.size);
    } else {
        rc = fab_report_encode(&d->report, &body, &delivery.size);
    }
    delivery.body = body;
    if (rc == PMIXFAB_OK)
        rc = fab_delivery_encode(&delivery, bytes, size);
    free(body);
    return rc;
}

static int send_credential(struct deliver *d, const char *credential)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, RELAY_CREDENTIAL, credential, PMIX_STRING);
    unsigned deadline = d->config->once ? ONCE_MS : DELIVER_MS;
    int rc = mail_ask(d->mail, RELAY_DELIVER, &info, 1, deadline, on_delivered, d);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

static void send_report(struct deliver *d)
{
    void *bytes = NULL;
    char *credential = NULL;
    size_t size;
    char text[200];
    int rc = make_bytes(d, &bytes, &size);
    if (rc != PMIXFAB_OK) {
        snprintf(text, sizeof(text), "the report cannot be encoded: %s", pmixfab_strerror(rc));
        refuse(d, rc, text);
        return;
    }
    log_debug("deliver: %s, %zu bytes", d->sent_delta ? "what changed" : "the whole report", size);
    munge_err_t failed = munge_encode(&credential, NULL, bytes, (int)size);
    free(bytes);
    if (failed == EMUNGE_SUCCESS) {
        d->sent = d->status.digest;
        rc = send_credential(d, credential);
    } else {
        snprintf(text, sizeof(text), "munge makes no credential: %s: does munged run on this host?",
                 munge_strerror(failed));
    }
    free(credential);
    if (failed != EMUNGE_SUCCESS) {
        fail(d, PMIXFAB_ERR_IO, text);
    } else if (rc != PMIXFAB_OK) {
        d->sent = 0;
        fail(d, rc, pmixfab_strerror(rc));
    }
}

static void try_now(struct deliver *d)
{
    if (d->sent != 0 || d->status.digest == 0)
        return; /* the end of that attempt goes on */
    if (!d->must && d->status.digest == d->status.held) {
        succeed(d);
        return;
    }
    d->status.under_way = true;
    evtimer_del(d->again);
    if (d->connected || d->config->once) /* --once waits for a connection as long as for an answer */
        send_report(d);
    else
        fail(d, PMIXFAB_ERR_UNREACH, "the scheduler cannot be reached");
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    struct deliver *d = arg;
    (void)fd, (void)what;
    if (d->status.under_way)
        try_now(d);
}

/* ---- orders ------------------------------------------------------------------------------------- */

static void take_order(struct deliver *d, const char *order, uint64_t held)
{
    bool news = held != d->status.held || order[0] != '\0';
    d->status.held = held;
    if (!news && d->quick == 0)
        d->pause_ms = FIRST_PAUSE_MS; /* it was quiet for a while */
    if (strcmp(order, RELAY_LOOK) == 0) {
        log_info("deliver: the scheduler asks for a look");
        d->calls.look(d->calls.cbdata); /* a look may fail: what it does not hold goes out without one, too */
    }
    if (news && d->sent == 0 && d->status.digest != 0 && held != d->status.digest && !d->status.refused) {
        log_info("deliver: the scheduler does not hold this host's report");
        d->status.under_way = true;
        after_a_pause(d); /* it asks all its nodes at the same moment */
    }
}

static void ask_orders(struct deliver *d);

static void on_orders(struct mail_answer *answer, void *cbdata)
{
    struct deliver *d = cbdata;
    const pmix_value_t *order = mail_value(answer, RELAY_ORDER, PMIX_STRING);
    const pmix_value_t *held = mail_value(answer, RELAY_DIGEST, PMIX_UINT64);
    d->ordering = false;
    if (answer->status == PMIX_SUCCESS && order != NULL && order->data.string != NULL && held != NULL) {
        d->quick = microseconds(CLOCK_MONOTONIC) - d->ordered < ODD_PAUSE_MS * 1000 ? d->quick + 1 : 0;
        take_order(d, order->data.string, held->data.uint64);
        if (d->quick < MAX_QUICK)
            ask_orders(d);
        else
            after(d->ask_orders, ODD_PAUSE_MS); /* many orders, or something is wrong: not in a tight loop */
    } else if (answer->status == PMIX_ERR_UNREACH || answer->status == PMIX_ERR_TIMEOUT) {
        after(d->ask_orders, ODD_PAUSE_MS);
    } else {
        log_debug("deliver: the scheduler gives no orders: %s", PMIx_Error_string(answer->status));
        after(d->ask_orders, MAX_PAUSE_MS);
    }
}

static void ask_orders(struct deliver *d)
{
    pmix_info_t info[2];
    if (!d->connected || d->ordering || d->config->once)
        return;
    d->ordered = microseconds(CLOCK_MONOTONIC);
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, d->config->host, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], RELAY_DIGEST, &d->status.held, PMIX_UINT64);
    d->ordering = mail_ask(d->mail, RELAY_ORDERS, info, 2, ORDERS_MS, on_orders, d) == PMIXFAB_OK;
    PMIX_INFO_DESTRUCT(&info[0]);
    evtimer_del(d->ask_orders);
}

static void on_ask_orders(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ask_orders(arg);
}

/* ---- for the node ------------------------------------------------------------------------------- */

void deliver_connected(struct deliver *d, bool connected)
{
    bool back = connected && !d->connected;
    d->connected = connected;
    if (!back)
        return;
    ask_orders(d);
    d->pause_ms = FIRST_PAUSE_MS;
    if (d->status.under_way && d->sent == 0)
        after_a_pause(d);
}

void deliver_report(struct deliver *d, struct fab_report *report, bool must)
{
    uint64_t digest = fab_report_digest(report);
    if (digest != d->status.digest) {
        d->pause_ms = FIRST_PAUSE_MS;
        d->status.refused = false;
    }
    fab_report_destroy(&d->report);
    d->report = *report;
    fab_report_init(report);
    d->status.digest = digest;
    d->must |= must;
    try_now(d);
}

const struct fab_report *deliver_current(const struct deliver *d)
{
    return d->status.digest == 0 ? NULL : &d->report;
}

void deliver_status(const struct deliver *d, struct deliver_status *out)
{
    *out = d->status;
}

int deliver_new(struct event_base *base, const struct config *config, struct mail *mail,
                const struct deliver_calls *calls, struct deliver **out)
{
    struct deliver *d = *out = calloc(1, sizeof(*d));
    if (d == NULL)
        return PMIXFAB_ERR_NOMEM;
    *d = (struct deliver){.config = config, .mail = mail, .calls = *calls, .pause_ms = FIRST_PAUSE_MS};
    fab_report_init(&d->report);
    fab_report_init(&d->acked);
    d->again = evtimer_new(base, on_again, d);
    d->ask_orders = evtimer_new(base, on_ask_orders, d);
    if (d->again != NULL && d->ask_orders != NULL)
        return PMIXFAB_OK;
    deliver_free(d);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void deliver_free(struct deliver *d)
{
    if (d == NULL)
        return;
    if (d->again != NULL)
        event_free(d->again);
    if (d->ask_orders != NULL)
        event_free(d->ask_orders);
    fab_report_destroy(&d->report);
    fab_report_destroy(&d->acked);
    free(d);
}
