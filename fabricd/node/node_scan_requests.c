#include "fabricd/node/node_scan_requests.h"

#include <pmix.h>
#include <stdlib.h>

#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/loop.h"
#include "fabricd/base/timer.h"

#define SCAN_REQUESTS_MS (RELAY_SUBSCRIBE_SECONDS * 1000 + 10000)
#define MAX_PAUSE_MS     30000
#define ODD_PAUSE_MS     1000 /* before the next question, where an answer was not as agreed */
#define MAX_QUICK        4    /* so many in turn may come within that time */

struct scan_requests {
    const struct config *config;
    struct loop_queue *queue;
    struct scan_requests_calls calls;
    struct timer *again;
    bool connected, asking; /* asking: the question is open */
    int64_t asked;          /* when */
    unsigned quick;         /* answers in turn that came at once */
};

/* From half of it to one and a half: a thousand nodes do not come back at the same moment. */
void scan_requests_after(struct timer *timer, unsigned milliseconds)
{
    timer_after(timer, milliseconds / 2 + chance_below(milliseconds + 1));
}

static void ask_scan_requests(struct scan_requests *o);

static void on_scan_requests(struct loop_queue_answer *answer, void *cbdata)
{
    struct scan_requests *o = cbdata;
    const pmix_value_t *order = loop_queue_value(answer, RELAY_SCAN_REQUEST, PMIX_STRING);
    const pmix_value_t *held = loop_queue_value(answer, RELAY_DIGEST, PMIX_UINT64);
    o->asking = false;
    if (answer->status == PMIX_SUCCESS && order != NULL && order->data.string != NULL && held != NULL) {
        o->quick = clock_now(CLOCK_MONOTONIC) - o->asked < ODD_PAUSE_MS * 1000 ? o->quick + 1 : 0;
        o->calls.take(order->data.string, held->data.uint64, o->quick > 0, o->calls.cbdata);
        if (o->quick < MAX_QUICK)
            ask_scan_requests(o);
        else
            scan_requests_after(o->again,
                                ODD_PAUSE_MS); /* many requests, or something is wrong: no tight loop */
    } else if (answer->status == PMIX_ERR_UNREACH || answer->status == PMIX_ERR_TIMEOUT) {
        scan_requests_after(o->again, ODD_PAUSE_MS);
    } else {
        log_debug("deliver: the scheduler gives no orders: %s", PMIx_Error_string(answer->status));
        scan_requests_after(o->again, MAX_PAUSE_MS);
    }
}

static void ask_scan_requests(struct scan_requests *o)
{
    const uint64_t held = o->calls.held(o->calls.cbdata);
    pmix_info_t info[2];
    if (!o->connected || o->asking || o->config->once)
        return;
    o->asked = clock_now(CLOCK_MONOTONIC);
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, o->config->host, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], RELAY_DIGEST, &held, PMIX_UINT64);
    o->asking = loop_queue_ask(o->queue, RELAY_SCAN_REQUESTS, info, 2, SCAN_REQUESTS_MS, on_scan_requests,
                               o) == PMIXFAB_OK;
    PMIX_INFO_DESTRUCT(&info[0]);
    timer_cancel(o->again);
}

static void scan_requests_on_retry(void *arg)
{
    ask_scan_requests(arg);
}

void scan_requests_connected(struct scan_requests *o, bool connected)
{
    bool back = connected && !o->connected;
    o->connected = connected;
    if (back)
        ask_scan_requests(o);
}

int scan_requests_new(struct event_base *base, const struct config *config, struct loop_queue *queue,
                      const struct scan_requests_calls *calls, struct scan_requests **out)
{
    struct scan_requests *o = *out = calloc(1, sizeof(*o));
    if (o == NULL)
        return PMIXFAB_ERR_NOMEM;
    *o = (struct scan_requests){.config = config, .queue = queue, .calls = *calls};
    o->again = timer_new(base, scan_requests_on_retry, o);
    if (o->again != NULL)
        return PMIXFAB_OK;
    scan_requests_free(o);
    *out = NULL;
    return PMIXFAB_ERR_NOMEM;
}

void scan_requests_free(struct scan_requests *o)
{
    if (o == NULL)
        return;
    timer_free(o->again);
    free(o);
}
