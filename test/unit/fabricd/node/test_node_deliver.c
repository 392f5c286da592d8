/* A node's delivering where it is refused, or not answered: pauses, and no tight loop. Time, the channel
 * and the file in which a report is kept over a restart are played here. (test_node_restart.py: what gets
 * lost on the way, with a whole scheduler.) */
#include <event2/event.h>

#include "fabricd/node/node_deliver.h"
#include "fabricd/node/node_state.h"
#include "test/unit/report_say.h"
#include "test/unit/test.h"
#include "topo/model/delivery.h"

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
    return true;
}

/* ---- the channel: one delivery at most -------------------------------------------------------------- */

struct asked {
    channel_reply_fn fn;
    void *cbdata;
};
static struct asked delivery;

int channel_client_ask(struct channel_client *client, enum channel_type type, void *body, size_t size,
                       size_t most, unsigned deadline_ms, channel_reply_fn fn, void *cbdata)
{
    struct fab_delivery opened;
    (void)client, (void)deadline_ms, (void)most;
    assert_null(delivery.fn); /* one at a time */
    assert_int_equal(type, CHANNEL_DELIVER);
    assert_int_equal(fab_delivery_decode(body, size, &opened, NULL), PMIXFAB_OK);
    assert_string_equal(opened.host, "node1");
    free(body);
    delivery = (struct asked){fn, cbdata};
    return PMIXFAB_OK;
}

static void reply(struct channel_reply *reply)
{
    struct asked was = delivery;
    delivery = (struct asked){.fn = NULL};
    was.fn(reply, was.cbdata);
}

static void reply_status(int code)
{
    reply(&(struct channel_reply){.code = code, .reason = "why", .away = true});
}

static void reply_delivery(int code, const char *reason, uint64_t acked)
{
    struct channel_outcome outcome = {.code = code, .held = acked};
    uint8_t body[CHANNEL_MAX_WORDS];
    snprintf(outcome.reason, sizeof(outcome.reason), "%s", reason);
    const size_t size = channel_put_outcome(&outcome, body);
    reply(&(struct channel_reply){.reason = "", .body = body, .size = size});
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
    delivery = (struct asked){.fn = NULL};
    deliver_free(node);
}

static int open_node(void **state)
{
    n_looks = 0;
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

FIXTURE(say_little)
{
    pmixfab_set_log(NULL, NULL);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------ */

TEST_WITH(test_scan, open_node, close_node)
{
    deliver_connected(node, true);
    report(1);
    take_delivery();
    deliver_heard(node, status().digest, true, true);
    assert_int_equal(n_looks, 1);
    deliver_heard(node, status().digest, false, true);
    assert_int_equal(n_looks, 1);
    deliver_heard(node, 77, false, true); /* it holds another one */
    assert_true(status().under_way);
    agree_in_time();
}

/* The scheduler lets nobody of this host in. */
TEST_WITH(test_no_connection, open_node, close_node)
{
    report(1);
    assert_true(status().under_way && !status().refused);
    deliver_refused(node, PMIXFAB_ERR_PERM, "uid 1000 may not");
    assert_true(status().refused);
    assert_string_equal(status().reason, "uid 1000 may not");
    deliver_connected(node, true);
    assert_true(let_time_pass());
    take_delivery();
    assert_false(status().refused);
}

TEST_WITH(test_refused, open_node, close_node)
{
    deliver_connected(node, true);
    report(1);
    reply_delivery(PMIXFAB_ERR_PERM, "uid 1000 may\nnot", 0);
    assert_true(status().refused);
    assert_null(strchr(status().reason, '\n'));
    assert_int_equal(last_code, PMIXFAB_ERR_PERM);
    deliver_heard(node, 77, false, true); /* it holds another one: no reason to try */
    assert_null(delivery.fn);
    report(2); /* a change is one */
    assert_non_null(delivery.fn);
    reply_status(PMIXFAB_ERR_FOREIGN); /* no fabricd */
    assert_true(status().refused);
    agree_in_time(); /* minutes later */
    assert_false(status().refused);
}

TEST_WITH(test_pauses_grow, open_node, close_node)
{
    static const int lost[] = {PMIXFAB_ERR_TIMEOUT, PMIXFAB_ERR_UNREACH, PMIXFAB_ERR_IO};
    int64_t sum[2] = {0, 0};
    deliver_connected(node, true);
    report(1);
    for (int i = 0; i < 40; i++) {
        if (i % 4 == 0)
            reply_delivery(PMIXFAB_ERR_BUSY, "busy", 0);
        else
            reply_status(lost[i % 4 - 1]);
        int64_t pause = (timers[0].ms >= 0 ? timers[0].ms : timers[1].ms) - now;
        assert_true(pause >= 100 && pause <= 45000);
        sum[i / 20] += pause;
        assert_true(let_time_pass());
    }
    assert_true(sum[1] > sum[0]);
    reply_status(PMIXFAB_ERR_TIMEOUT);
    agree_in_time();
}

/* Two nodes of one name: each puts its report over the other's, ever more slowly. */
TEST_WITH(test_two_of_one_name, open_node, close_node)
{
    deliver_connected(node, true);
    report(1);
    reply_delivery(PMIXFAB_OK, "", 4711); /* it has been there before the answer */
    assert_non_null(strstr(status().reason, "check that no other node has its name"));
    const int64_t start = now;
    for (int deliveries = 0; deliveries < 20;) {
        if (delivery.fn != NULL) {
            reply_delivery(PMIXFAB_OK, "", status().digest);
            deliveries++;
        } else if (deliver_acked(node) != 4711) {
            deliver_heard(node, 4711, false, true);
        } else {
            assert_true(let_time_pass());
        }
    }
    assert_true(now - start > 60000);
}

TEST_GROUP(say_little, NULL)
