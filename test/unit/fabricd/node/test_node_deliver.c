/* A node's delivering where it is refused, or not answered: pauses, and no tight loop. Time, munge, the relay
 * and the file in which a report is kept over a restart are played here. (test_node_restart.py: what gets
 * lost on the way, with a whole scheduler.) */
#include <event2/event.h>
#include <pmix.h>

#include "fabricd/node/node_credential.h"
#include "fabricd/node/node_deliver.h"
#include "fabricd/node/node_state.h"
#include "test/unit/report_say.h"
#include "test/unit/test.h"

/* ---- time: a timer goes off when a test says so ----------------------------------------------------- */

#define MAX_TIMERS 4

static struct timer {
    const struct event *event;
    int64_t ms; /* when it goes off; -1: not set */
} timers[MAX_TIMERS];
static int64_t now; /* milliseconds */

static struct timer *timer_of(const struct event *event)
{
    for (size_t i = 0; i < MAX_TIMERS; i++) {
        if (timers[i].event == NULL)
            timers[i] = (struct timer){event, -1};
        if (timers[i].event == event)
            return &timers[i];
    }
    fail_msg("more timers than a deliver has");
    return NULL;
}

int event_add(struct event *event, const struct timeval *tv)
{
    timer_of(event)->ms = tv == NULL ? -1 : now + (int64_t)tv->tv_sec * 1000 + tv->tv_usec / 1000;
    return 0;
}

int event_del(struct event *event)
{
    timer_of(event)->ms = -1;
    return 0;
}

/* Pauses come by chance: by one that a failure can be repeated with. */
void evutil_secure_rng_get_bytes(void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)(rand() >> 4);
}

static void let_munge_answer(void);

/* The next one that is due; false: none is set. */
static bool let_time_pass(void)
{
    struct timer *next = NULL;
    for (size_t i = 0; i < MAX_TIMERS; i++)
        if (timers[i].event != NULL && timers[i].ms >= 0 && (next == NULL || timers[i].ms < next->ms))
            next = &timers[i];
    if (next == NULL)
        return false;
    now = next->ms;
    next->ms = -1;
    event_get_callback(next->event)(-1, EV_TIMEOUT, event_get_callback_arg(next->event));
    let_munge_answer();
    return true;
}

/* ---- munge ---------------------------------------------------------------------- */

#define CREDENTIAL "the only one"

static munge_err_t munge_status;

static struct credential {
    credential_done_fn done; /* NULL: none is being made */
    void *cbdata;
    unsigned char *bytes;
} making;

int credential_make(struct event_base *base, void *bytes, size_t size, credential_done_fn done, void *cbdata,
                    struct credential **out)
{
    (void)base;
    assert_null(making.done); /* one at a time */
    (void)size;
    making = (struct credential){done, cbdata, bytes};
    *out = &making;
    return PMIXFAB_OK;
}

void credential_cancel(struct credential *credential)
{
    if (credential != NULL)
        free(making.bytes);
    making.done = NULL;
}

/* It answers when it can, once the node is waiting for it. */
static void let_munge_answer(void)
{
    struct credential was = making;
    if (was.done == NULL)
        return;
    making.done = NULL;
    free(was.bytes);
    was.done(munge_status, munge_status == EMUNGE_SUCCESS ? CREDENTIAL : NULL, was.cbdata);
}

/* ---- the relay: one delivery and one question for orders at most ------------------------------------ */

struct asked {
    loop_queue_answer_fn fn;
    void *cbdata;
    uint64_t known; /* what the node believes to be held of it */
};
static struct asked delivery, orders;

int loop_queue_ask(struct loop_queue *queue, const char *op, const pmix_info_t *info, size_t n,
                   unsigned deadline_ms, loop_queue_answer_fn fn, void *cbdata)
{
    (void)queue, (void)deadline_ms;
    struct asked *asked = strcmp(op, RELAY_DELIVER) == 0 ? &delivery : &orders;
    assert_null(asked->fn); /* one at a time */
    *asked = (struct asked){.fn = fn, .cbdata = cbdata};
    if (asked == &delivery) {
        assert_int_equal(n, 1);
        assert_string_equal(info[0].key, RELAY_CREDENTIAL);
        assert_string_equal(info[0].value.data.string, CREDENTIAL);
    } else {
        assert_int_equal(n, 2);
        assert_string_equal(info[0].value.data.string, "node1");
        asked->known = info[1].value.data.uint64;
    }
    return PMIXFAB_OK;
}

static void reply(struct asked *asked, struct loop_queue_answer *answer)
{
    struct asked was = *asked;
    *asked = (struct asked){.fn = NULL};
    was.fn(answer, was.cbdata);
    let_munge_answer();
}

static void reply_status(struct asked *asked, pmix_status_t status)
{
    struct loop_queue_answer answer = {.status = status};
    reply(asked, &answer);
}

static void load(pmix_pdata_t *data, const char *key, pmix_data_type_t type)
{
    PMIX_PDATA_CONSTRUCT(data);
    PMIX_LOAD_KEY(data->key, key);
    data->value.type = type;
}

static void reply_delivery(int code, const char *reason, uint64_t acked)
{
    pmix_pdata_t data[3];
    load(&data[0], RELAY_CODE, PMIX_INT32);
    load(&data[1], RELAY_REASON, PMIX_STRING);
    load(&data[2], RELAY_DIGEST, PMIX_UINT64);
    data[0].value.data.int32 = code;
    data[1].value.data.string = (char *)reason;
    data[2].value.data.uint64 = acked;
    struct loop_queue_answer answer = {.status = PMIX_SUCCESS, .data = data, .n = 3};
    reply(&delivery, &answer);
}

static void reply_orders(const char *order, uint64_t acked)
{
    pmix_pdata_t data[2];
    load(&data[0], RELAY_SCAN_REQUEST, PMIX_STRING);
    load(&data[1], RELAY_DIGEST, PMIX_UINT64);
    data[0].value.data.string = (char *)order;
    data[1].value.data.uint64 = acked;
    struct loop_queue_answer answer = {.status = PMIX_SUCCESS, .data = data, .n = 2};
    reply(&orders, &answer);
}

/* ---- the file: there is none ------------------------------------------------------------------------- */

int node_state_write(const char *rundir, const struct node_state *keep, struct fab_err *err)
{
    (void)err;
    assert_string_equal(rundir, "/run");
    assert_true(keep->report.finished);
    return PMIXFAB_OK;
}

int node_state_read(const char *rundir, const char *host, struct node_state *out, struct fab_err *err)
{
    (void)rundir, (void)host, (void)err;
    *out = (struct node_state){.failed = 0};
    fab_report_init(&out->report);
    return PMIXFAB_OK;
}

/* ---- the node ----------------------------------------------------------------------------------- */

static const struct config config = {.host = "node1", .rundir = "/run"};
static struct deliver *node;
static struct event_base *base;
static unsigned n_looks;
static int last_code;

static void on_done(int code, const char *reason, void *cbdata)
{
    (void)cbdata;
    assert_true((code == PMIXFAB_OK) == (reason[0] == '\0'));
    last_code = code;
}

static void on_look(void *cbdata)
{
    (void)cbdata;
    n_looks++;
}

static void start_node(void)
{
    const struct deliver_calls calls = {on_done, on_look, NULL};
    memset(timers, 0, sizeof(timers));
    assert_int_equal(deliver_new(base, &config, NULL, NULL, &calls, &node), PMIXFAB_OK);
}

/* At once, with whatever is under way: nobody hears of it any more. */
static void kill_node(void)
{
    delivery = orders = (struct asked){.fn = NULL};
    deliver_free(node);
}

static int open_node(void **state)
{
    n_looks = 0;
    munge_status = EMUNGE_SUCCESS;
    *state = base = event_base_new();
    start_node();
    return base == NULL;
}

static int close_node(void **state)
{
    kill_node();
    event_base_free(*state);
    return 0;
}

/* A host with a device of this firmware. */
static void report(unsigned firmware)
{
    struct fab_report r = {0};
    assert_int_equal(fab_report_host(&r, "node1", NULL), PMIXFAB_OK);
    report_say(&r, "verbs: name mlx5_0, port 1, firmware 20.%u", firmware);
    assert_int_equal(fab_report_finish(&r, NULL), PMIXFAB_OK);
    deliver_report(node, &r, 0, 0, false);
    let_munge_answer();
}

static struct deliver_status status(void)
{
    struct deliver_status s;
    deliver_status(node, &s);
    return s;
}

static void take_delivery(void)
{
    const uint64_t digest = status().digest;
    reply_delivery(PMIXFAB_OK, "", digest);
    assert_true(!status().under_way && status().acked == digest);
}

static void agree_in_time(void)
{
    assert_true(let_time_pass());
    take_delivery();
}

static void disconnect(void)
{
    deliver_connected(node, false);
    reply_status(&orders, PMIX_ERR_UNREACH);
}

FIXTURE(say_little)
{
    pmixfab_set_log(NULL, NULL);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------ */

TEST_WITH(test_orders, open_node, close_node)
{
    deliver_connected(node, true);
    report(1);
    take_delivery();
    reply_orders(RELAY_SCAN, status().digest);
    assert_int_equal(n_looks, 1);
    assert_non_null(orders.fn); /* the next question is open */
    assert_int_equal(orders.known, status().digest);
    for (int i = 0; i < 100 && orders.fn != NULL; i++)
        reply_orders("", status().digest); /* at once and without any reason */
    assert_null(orders.fn);                /* no tight loop */
    assert_true(let_time_pass());
    assert_non_null(orders.fn);
    disconnect();
    assert_true(let_time_pass());
    assert_null(orders.fn);
    deliver_connected(node, true);
    assert_non_null(orders.fn);
}

TEST_WITH(test_refused, open_node, close_node)
{
    deliver_connected(node, true);
    report(1);
    reply_delivery(PMIXFAB_ERR_PERM, "uid 1000 may\nnot", 0);
    assert_true(status().refused);
    assert_null(strchr(status().reason, '\n'));
    assert_int_equal(last_code, PMIXFAB_ERR_PERM);
    reply_orders("", 77); /* it holds another one: no reason to try */
    assert_null(delivery.fn);
    report(2); /* a change is one */
    assert_non_null(delivery.fn);
    reply_status(&delivery, PMIX_ERR_NOT_FOUND); /* an old fabricd */
    assert_true(status().refused);
    agree_in_time(); /* minutes later */
    assert_false(status().refused);
}

TEST_WITH(test_pauses_grow, open_node, close_node)
{
    static const pmix_status_t lost[] = {PMIX_ERR_TIMEOUT, PMIX_ERR_UNREACH, PMIX_ERR_NOT_AVAILABLE};
    int64_t sum[2] = {0, 0};
    deliver_connected(node, true);
    report(1);
    for (int i = 0; i < 40; i++) {
        if (i % 4 == 0)
            reply_delivery(PMIXFAB_ERR_BUSY, "busy", 0);
        else
            reply_status(&delivery, lost[i % 4 - 1]);
        int64_t pause = (timers[0].ms >= 0 ? timers[0].ms : timers[1].ms) - now;
        assert_true(pause >= 100 && pause <= 45000);
        sum[i / 20] += pause;
        assert_true(let_time_pass());
    }
    assert_true(sum[1] > sum[0]);
    munge_status = EMUNGE_SOCKET;
    reply_status(&delivery, PMIX_ERR_TIMEOUT);
    assert_true(let_time_pass());
    assert_null(delivery.fn);
    assert_non_null(strstr(status().reason, "munged"));
    munge_status = EMUNGE_SUCCESS;
    agree_in_time();
}

/* Two nodes of one name: each puts its report over the other's, ever more slowly. */
TEST_WITH(test_two_of_one_name, open_node, close_node)
{
    deliver_connected(node, true);
    report(1);
    reply_delivery(PMIXFAB_OK, "", 4711); /* it has been there before the answer */
    assert_non_null(strstr(status().reason, "does another node have its name?"));
    const int64_t start = now;
    for (int deliveries = 0; deliveries < 20;) {
        if (delivery.fn != NULL) {
            reply_delivery(PMIXFAB_OK, "", status().digest);
            deliveries++;
            if (orders.fn != NULL && orders.known != status().digest)
                reply_orders("", status().digest);
        } else if (orders.fn != NULL && orders.known != 4711) {
            reply_orders("", 4711);
        } else {
            assert_true(let_time_pass());
        }
    }
    assert_true(now - start > 60000);
}

TEST_GROUP(say_little, NULL)
