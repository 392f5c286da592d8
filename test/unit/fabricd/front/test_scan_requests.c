/* What the scheduler wants of nodes: each keeps a question open. */
#include <event2/thread.h>

#include "fabricd/front/side/side.h"
#include "fabricd/server/long_poll.h"
#include "pmix/relay/relay.h"
#include "test/unit/test.h"

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

static pmix_proc_t asking = {.nspace = "asking"};

static pmix_status_t wait_order(const char *host, uint64_t digest, struct order *order)
{
    pmix_info_t info[2];
    memset(order, 0, sizeof(*order));
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, host, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], RELAY_DIGEST, &digest, PMIX_UINT64);
    pmix_status_t rc = side_scan_requests(&asking, info, 2, on_scan_request, order);
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

TEST(orders)
{
    struct order one, again, two, three;
    assert_int_equal(wait_order("node1", 0, &one), PMIX_ERR_NOT_AVAILABLE);
    evthread_use_pthreads();
    struct event_base *base = event_base_new();
    assert_int_equal(scan_requests_start_all(base), PMIXFAB_OK);
    assert_int_equal(wait_order("no name", 0, &one), PMIX_ERR_BAD_PARAM);
    assert_int_equal(wait_order("", 0, &one), PMIX_ERR_BAD_PARAM);
    assert_int_equal(side_scan_requests(&asking, NULL, 0, on_scan_request, &one), PMIX_ERR_BAD_PARAM);

    assert_int_equal(wait_order("node1", 11, &one), PMIX_SUCCESS); /* nothing is held */
    was_told(&one, "", 0);
    side_held("node1", 11);
    side_held("node2", 22);
    wait_order("node1", 11, &one);
    wait_order("node1", 11, &again);
    wait_order("node2", 22, &two);
    wait_order("node3", 0, &three); /* has delivered nothing, and nothing is held */
    assert_int_equal(one.n + again.n + two.n + three.n, 0);
    assert_int_equal(side_request_scan("node1"), 1);
    was_told(&one, RELAY_SCAN, 11);
    was_told(&again, RELAY_SCAN, 11);
    assert_int_equal(two.n + three.n, 0);
    assert_int_equal(side_request_scan("node9"), 0);
    assert_int_equal(side_request_scan(NULL), 2);
    was_told(&two, RELAY_SCAN, 22);
    was_told(&three, RELAY_SCAN, 0);

    wait_order("node1", 11, &one); /* the order to all came between two questions of this one */
    was_told(&one, RELAY_SCAN, 11);
    wait_order("node1", 11, &one); /* and it is one order */
    assert_int_equal(one.n, 0);
    side_held("node1", 12);
    was_told(&one, "", 12);
    wait_order("node1", 12, &one);
    wait_order("node2", 22, &two);
    side_held("node1", 12);
    assert_int_equal(one.n, 0);
    side_held("node2", 0); /* forgotten */
    was_told(&two, "", 0);
    scan_requests_stop_all();
    assert_int_equal(one.n, 1);
    assert_int_equal(one.status, PMIX_ERR_NOT_AVAILABLE);
    event_base_free(base);
}

TEST(who_asks_too_often_and_who_goes)
{
    struct order orders[LONG_POLL_MOST + 1], other;
    evthread_use_pthreads();
    struct event_base *base = event_base_new();
    assert_int_equal(scan_requests_start_all(base), PMIXFAB_OK);
    side_held("node1", 11);
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
    assert_int_equal(side_request_scan("node1"), 1);
    was_told(&other, RELAY_SCAN, 11);
    long_poll_left(&asking); /* has nothing left */
    scan_requests_stop_all();
    event_base_free(base);
}
