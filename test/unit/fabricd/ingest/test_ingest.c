/* What nodes deliver, on its way in, and scan requests on their way out. */

#include <event2/thread.h>
#include <unistd.h>
#include <utlist.h>

#include "fabricd/server/long_poll.h"
#include "pmix/relay/relay.h"
#include "test/unit/ingest_lab.h"

/* ---- the queue ---- */

struct answers {
    unsigned n, good, busy, other, refused;
    char reason[512];
};

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void on_answer(pmix_status_t status, pmix_pdata_t data[], size_t n, void *cbdata)
{
    struct answers *answers = cbdata;
    pthread_mutex_lock(&counting);
    answers->n++;
    if (status != PMIX_SUCCESS) {
        answers->refused++;
    } else {
        assert_int_equal(n, 3);
        assert_true(PMIX_CHECK_KEY(&data[0], RELAY_CODE) && data[0].value.type == PMIX_INT32);
        assert_true(PMIX_CHECK_KEY(&data[1], RELAY_REASON) && data[1].value.type == PMIX_STRING);
        assert_true(PMIX_CHECK_KEY(&data[2], RELAY_DIGEST) && data[2].value.type == PMIX_UINT64);
        int code = data[0].value.data.int32;
        answers->good += code == PMIXFAB_OK;
        answers->busy += code == PMIXFAB_ERR_BUSY;
        answers->other += code != PMIXFAB_OK && code != PMIXFAB_ERR_BUSY;
        if (code != PMIXFAB_OK) /* the good ones may be answered last: that is another thread */
            snprintf(answers->reason, sizeof(answers->reason), "%s", data[1].value.data.string);
    }
    pthread_mutex_unlock(&counting);
}

static unsigned read_counter(const unsigned *counter)
{
    pthread_mutex_lock(&counting);
    unsigned n = *counter;
    pthread_mutex_unlock(&counting);
    return n;
}

static unsigned count(const struct answers *answers)
{
    return read_counter(&answers->n);
}

static pmix_proc_t asking = {.nspace = "asking"};

static pmix_status_t give(const char *credential, struct answers *answers)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, RELAY_CREDENTIAL, credential, PMIX_STRING);
    pmix_status_t rc = ingest_deliver(&asking, &info, 1, on_answer, answers);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

static void take_all(struct ingest_item *list, void *cbdata)
{
    struct ingest_item *item, *next;
    (void)cbdata;
    DL_FOREACH_SAFE(list, item, next)
    {
        assert_string_equal(item->delivery.host, "node7");
        assert_int_equal(item->uid, lab.uid);
        ingest_answer(item, PMIXFAB_OK, item->delivery.digest, "");
    }
}

static struct config config;
static struct event_base *base;

static void start_ingest(void)
{
    config_init(&config);
    assert_int_equal(config_text(&config.host, "head"), PMIXFAB_OK);
    evthread_use_pthreads();
    base = event_base_new();
    assert_non_null(base);
    must_do(ingest_start(base, &config, take_all, NULL, fresh_err()));
}

static void stop_ingest(void)
{
    ingest_stop();
    config_destroy(&config);
    event_base_free(base);
}

static void give_many(unsigned n, const char *credential, struct answers *answers)
{
    for (unsigned i = 0; i < n; i++)
        give(credential, answers);
}

static void turn_until(struct answers *answers, unsigned n)
{
    for (int i = 0; i < 20000 && count(answers) < n; i++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    assert_int_equal(count(answers), n);
}

static char *credential_of(size_t size)
{
    char *text = must_have(size + 1);
    memset(text, 'x', size);
    return memcpy(text, "MUNGE:", 6);
}

LAB_TEST(test_at_the_door)
{
    struct answers answers = {0};
    pmix_info_t info;
    assert_int_equal(give("MUNGE:x:", &answers), PMIX_SUCCESS); /* not started */
    assert_int_equal(answers.refused, 1);
    start_ingest();
    assert_int_equal(ingest_deliver(&asking, NULL, 0, on_answer, &answers), PMIX_ERR_BAD_PARAM);
    PMIX_INFO_LOAD(&info, RELAY_CREDENTIAL, &(bool){true}, PMIX_BOOL);
    assert_int_equal(ingest_deliver(&asking, &info, 1, on_answer, &answers), PMIX_ERR_BAD_PARAM);
    give("", &answers);
    give("x", &answers);
    assert_int_equal(answers.other, 2);
    assert_string_equal(answers.reason, "what was delivered is no munge credential");
    OWNED(free) char *large = credential_of(INGEST_MAX_CREDENTIAL + 1);
    give(large, &answers);
    assert_int_equal(answers.other, 3);
    assert_non_null(strstr(answers.reason, "bytes: at most"));
    large[INGEST_MAX_CREDENTIAL] = '\0';
    give(large, &answers);
    turn_until(&answers, 5);
    assert_int_equal(answers.good, 1);
    stop_ingest();
}

LAB_TEST(test_bounds)
{
    struct answers answers = {0};
    start_ingest();
    set_gate(true);
    give_many(INGEST_MAX_ITEMS, "MUNGE:x:", &answers);
    assert_int_equal(count(&answers), 0);
    give("MUNGE:x:", &answers);
    assert_int_equal(answers.busy, 1);
    assert_non_null(strstr(answers.reason, "come again later"));
    set_gate(false);
    turn_until(&answers, INGEST_MAX_ITEMS + 1);
    assert_true(answers.good >= INGEST_BURST); /* the rest is more than one host may deliver at once */
    assert_int_equal(answers.good + answers.busy, answers.n);
    assert_non_null(strstr(answers.reason, "node7 delivers more often"));

    memset(&answers, 0, sizeof(answers));
    OWNED(free) char *large = credential_of(INGEST_MAX_CREDENTIAL);
    set_gate(true);
    unsigned fit = INGEST_MAX_BYTES / INGEST_MAX_CREDENTIAL;
    give_many(fit, large, &answers);
    assert_int_equal(count(&answers), 0);
    give(large, &answers);
    assert_int_equal(answers.busy, 1);
    set_gate(false);
    turn_until(&answers, fit + 1);
    stop_ingest();
}

LAB_TEST(test_no_munged)
{
    struct answers answers = {0};
    lab.error = EMUNGE_SOCKET;
    start_ingest();
    give_many(100, "MUNGE:x:", &answers);
    turn_until(&answers, 100);
    assert_int_equal(answers.other, 100);
    assert_string_equal(answers.reason, INGEST_NO_MUNGED);
    stop_ingest();
}

/* Opens the gate when the stop has begun: the door turns away who comes then. */
static void *open_gate(void *arg)
{
    struct answers *knocks = arg;
    while (read_counter(&knocks->refused) == 0) {
        give("MUNGE:x:", knocks);
        usleep(1000);
    }
    set_gate(false);
    return NULL;
}

LAB_TEST(test_stop)
{
    struct answers answers = {0}, knocks = {0}, late = {0};
    pthread_t thread;
    start_ingest();
    set_gate(true);
    give_many(50, "MUNGE:x:", &answers);
    assert_int_equal(pthread_create(&thread, NULL, open_gate, &knocks), 0);
    stop_ingest();
    pthread_join(thread, NULL);
    assert_int_equal(answers.refused, 50);
    give("MUNGE:x:", &late);
    assert_int_equal(late.refused, 1);
    start_ingest(); /* and again */
    give("MUNGE:x:", &late);
    turn_until(&late, 2);
    assert_int_equal(late.good, 1);
    stop_ingest();
}

/* A munged that does not come back is not waited for: who asked is answered, and the rest is let go later. */
LAB_TEST(test_stop_without_waiting)
{
    struct answers answers = {0};
    ingest_calls = &hasty_calls;
    lab.error = EMUNGE_CRED_INVALID; /* so that the thread asks nothing of the lab after the gate */
    start_ingest();
    set_gate(true);
    give_many(3, "MUNGE:x:", &answers);
    wait_until_at_the_gate(true);
    stop_ingest();
    assert_int_equal(answers.refused, 3);
    set_gate(false);
    wait_until_at_the_gate(false);
    usleep(100000); /* its thread goes its way; what it leaves behind is for the leak checker */
    assert_int_equal(answers.n, 3);
}

/* ---- orders ---- */

struct order {
    unsigned n;
    pmix_status_t status;
    char order[16];
    uint64_t held;
};

static void on_scan_request(pmix_status_t status, pmix_pdata_t data[], size_t n, void *cbdata)
{
    struct order *order = cbdata;
    order->n++;
    order->status = status;
    if (status == PMIX_SUCCESS) {
        assert_int_equal(n, 2);
        assert_true(PMIX_CHECK_KEY(&data[0], RELAY_SCAN_REQUEST) && PMIX_CHECK_KEY(&data[1], RELAY_DIGEST));
        snprintf(order->order, sizeof(order->order), "%s", data[0].value.data.string);
        order->held = data[1].value.data.uint64;
    }
}

static pmix_status_t wait_order(const char *host, uint64_t digest, struct order *order)
{
    pmix_info_t info[2];
    memset(order, 0, sizeof(*order));
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, host, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], RELAY_DIGEST, &digest, PMIX_UINT64);
    pmix_status_t rc = ingest_scan_requests(&asking, info, 2, on_scan_request, order);
    PMIX_INFO_DESTRUCT(&info[0]);
    return rc;
}

static void was_told(const struct order *order, const char *what, uint64_t held)
{
    assert_int_equal(order->n, 1);
    assert_int_equal(order->status, PMIX_SUCCESS);
    assert_string_equal(order->order, what);
    assert_int_equal(order->held, held);
}

LAB_TEST(test_orders)
{
    struct order one, again, two, three;
    assert_int_equal(wait_order("node1", 0, &one), PMIX_ERR_NOT_AVAILABLE);
    start_ingest();
    assert_int_equal(wait_order("no name", 0, &one), PMIX_ERR_BAD_PARAM);
    assert_int_equal(wait_order("", 0, &one), PMIX_ERR_BAD_PARAM);
    assert_int_equal(ingest_scan_requests(&asking, NULL, 0, on_scan_request, &one), PMIX_ERR_BAD_PARAM);

    assert_int_equal(wait_order("node1", 11, &one), PMIX_SUCCESS); /* nothing is held */
    was_told(&one, "", 0);
    ingest_acked("node1", 11);
    ingest_acked("node2", 22);
    wait_order("node1", 11, &one);
    wait_order("node1", 11, &again);
    wait_order("node2", 22, &two);
    wait_order("node3", 0, &three); /* has delivered nothing, and nothing is held */
    assert_int_equal(one.n + again.n + two.n + three.n, 0);
    assert_int_equal(ingest_request_scan("node1"), 1);
    was_told(&one, RELAY_SCAN, 11);
    was_told(&again, RELAY_SCAN, 11);
    assert_int_equal(two.n + three.n, 0);
    assert_int_equal(ingest_request_scan("node9"), 0);
    assert_int_equal(ingest_request_scan(NULL), 2);
    was_told(&two, RELAY_SCAN, 22);
    was_told(&three, RELAY_SCAN, 0);

    wait_order("node1", 11, &one); /* the order to all came between two questions of this one */
    was_told(&one, RELAY_SCAN, 11);
    wait_order("node1", 11, &one); /* and it is one order */
    assert_int_equal(one.n, 0);
    ingest_acked("node1", 12);
    was_told(&one, "", 12);
    wait_order("node1", 12, &one);
    wait_order("node2", 22, &two);
    ingest_acked("node1", 12);
    assert_int_equal(one.n, 0);
    ingest_acked("node2", 0); /* forgotten */
    was_told(&two, "", 0);
    stop_ingest();
    assert_int_equal(one.n, 1);
    assert_int_equal(one.status, PMIX_ERR_NOT_AVAILABLE);
}

LAB_TEST(test_who_asks_too_often_and_who_goes)
{
    struct order orders[LONG_POLL_MOST + 1], other;
    start_ingest();
    ingest_acked("node1", 11);
    for (unsigned i = 0; i < LONG_POLL_MOST; i++)
        assert_int_equal(wait_order("node1", 11, &orders[i]), PMIX_SUCCESS);
    assert_int_equal(wait_order("node1", 11, &orders[LONG_POLL_MOST]), PMIX_ERR_NOT_AVAILABLE);
    asking.rank = 1;
    assert_int_equal(wait_order("node1", 11, &other), PMIX_SUCCESS);
    asking.rank = 0;
    long_poll_left(&asking);
    for (unsigned i = 0; i < LONG_POLL_MOST; i++)
        assert_true(orders[i].n == 1 && orders[i].status == PMIX_ERR_NOT_AVAILABLE);
    assert_int_equal(other.n, 0);
    assert_int_equal(wait_order("node1", 11, &orders[0]), PMIX_SUCCESS); /* there is room again */
    assert_int_equal(ingest_request_scan("node1"), 1);
    was_told(&other, RELAY_SCAN, 11);
    long_poll_left(&asking); /* has nothing left */
    stop_ingest();
}
