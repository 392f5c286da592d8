/* A node's question for news: always open, and no tight loop. Time and the channel are played here. */
#include <event2/event.h>

#include "fabricd/node/node_wait.h"
#include "test/unit/test.h"

static const struct event *timer_event;
static bool is_set; /* the one timer */

int event_add(struct event *event, const struct timeval *tv)
{
    (void)tv;
    timer_event = event;
    is_set = true;
    return 0;
}

int event_del(struct event *event)
{
    (void)event;
    is_set = false;
    return 0;
}

static void let_time_pass(void)
{
    assert_true(is_set);
    is_set = false;
    event_get_callback(timer_event)(-1, EV_TIMEOUT, event_get_callback_arg(timer_event));
}

static struct {
    channel_reply_fn fn;
    void *cbdata;
    struct channel_wait wait;
    unsigned resets;
} asked;

int channel_client_ask(struct channel_client *client, enum channel_type type, void *body, size_t size,
                       size_t most, unsigned deadline_ms, channel_reply_fn fn, void *cbdata)
{
    (void)client, (void)deadline_ms;
    assert_null(asked.fn);
    assert_int_equal(type, CHANNEL_WAIT);
    assert_int_equal(most, CHANNEL_MAX_NEWS);
    assert_int_equal(channel_get_wait(body, size, &asked.wait), PMIXFAB_OK);
    free(body);
    asked.fn = fn;
    asked.cbdata = cbdata;
    return PMIXFAB_OK;
}

void channel_client_reset(struct channel_client *client)
{
    (void)client;
    asked.resets++;
}

static void reply(struct channel_reply *reply)
{
    const channel_reply_fn fn = asked.fn;
    assert_non_null(fn);
    asked.fn = NULL;
    fn(reply, asked.cbdata);
}

static void reply_news(const struct channel_news *news)
{
    void *body;
    size_t size;
    assert_int_equal(channel_put_news(news, &body, &size), PMIXFAB_OK);
    reply(&(struct channel_reply){.reason = "", .body = body, .size = size});
    free(body);
}

static struct {
    unsigned n, scans;
    uint64_t acked;
    bool at_once;
} heard;

static uint64_t on_acked(void *cbdata)
{
    (void)cbdata;
    return heard.acked;
}

static void on_news(const struct channel_news *news, bool at_once, void *cbdata)
{
    (void)cbdata;
    heard.n++;
    heard.scans += news->scan;
    heard.acked = news->held;
    heard.at_once = at_once;
}

static struct node_wait *node;

static int open_node(void **state)
{
    const struct node_wait_calls calls = {on_acked, on_news, NULL};
    memset(&asked, 0, sizeof(asked));
    memset(&heard, 0, sizeof(heard));
    *state = event_base_new();
    return node_wait_new(*state, NULL, &calls, &node);
}

static int close_node(void **state)
{
    node_wait_free(node);
    event_base_free(*state);
    return 0;
}

TEST_WITH(test_news, open_node, close_node)
{
    struct channel_plane plane = {.index = 1, .generation = 7, .published = 5, .size = 9, .name = "ib0"};
    const struct channel_news news = {
        .held = 11, .generation = 7, .published = 5, .stale = true, .scan = true, .n = 1, .planes = &plane};
    assert_null(asked.fn);
    node_wait_connected(node, true);
    assert_true(asked.wait.at_once && asked.wait.held == 0);
    reply_news(&news);
    assert_true(heard.n == 1 && heard.scans == 1 && heard.acked == 11 && heard.at_once);
    assert_true(!asked.wait.at_once && asked.wait.held == 11 && asked.wait.generation == 7);
    assert_true(asked.wait.published == 5 && asked.wait.stale);
    node_wait_connected(node, false);
    reply(&(struct channel_reply){.code = PMIXFAB_ERR_UNREACH, .reason = "gone", .away = true});
    assert_null(asked.fn);
    node_wait_connected(node, true); /* perhaps another scheduler */
    assert_true(asked.wait.at_once);
}

TEST_WITH(test_no_tight_loop, open_node, close_node)
{
    const struct channel_news news = {.held = 11, .generation = 7};
    node_wait_connected(node, true);
    unsigned n = 0;
    for (; n < 100 && asked.fn != NULL; n++)
        reply_news(&news); /* at once and without any reason */
    assert_true(n < 100);
    let_time_pass();
    assert_non_null(asked.fn);
    for (unsigned i = 0; i < 10; i++) {
        reply(&(struct channel_reply){.code = PMIXFAB_ERR_BUSY, .reason = "busy"});
        assert_null(asked.fn);
        let_time_pass();
    }
    reply(&(struct channel_reply){.reason = "", .body = (uint8_t *)"odd", .size = 3});
    assert_null(asked.fn);
    let_time_pass();
    assert_non_null(asked.fn);
    assert_int_equal(asked.resets, 0);
}

TEST_GROUP(NULL, NULL)
